"""Measures follow-up questions over the packaged sample: recognised, and found with and without the question before.

Usage: ``python -m evals.follow_ups [--misses]``.

``evals/data/follow_ups.jsonl`` holds pairs of a question and the next one of a conversation, with the note that answers the
next. The rules were written beside these pairs, so what is recognised of them says what they do and not how they do on others;
that they leave questions alone is measured on those of ``claims.jsonl.gz`` (``--data``), which nobody wrote for them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.writer import Target
from orchestrator.models import Models
from orchestrator.retrieval import make_retriever
from orchestrator.settings import load_settings
from posology.corpus import sample
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.query import make_query
from posology.text.follow_ups import continued, stands_alone
from training.gold import DATA, rows

FILE = Path(__file__).parent / "data" / "follow_ups.jsonl"
CLAIMS = "claims.jsonl.gz"
#: passages among which the note must be
K = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """Two questions of a conversation."""

    first: str
    then: str
    #: note that answers the second
    passage: str
    #: whether the second changes the subject
    alone: bool


def pairs() -> Sequence[Pair]:
    """Return the written pairs."""
    return [Pair(**json.loads(line)) for line in FILE.read_text(encoding="utf-8").splitlines()]


async def _found(retriever: Retriever, question: str, passage: str) -> bool:
    retrieval = await retriever.retrieve(make_query(question), k=K)
    return passage in {one.passage.id for one in retrieval.passages}


async def _measure(*, misses: bool) -> None:
    settings = load_settings()
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "index")
        with sample.notes_file() as notes:
            run_ingest([notes], settings, Target(place=place))
        models = Models(settings.embedder, settings.embedding)
        retriever = await make_retriever(settings, models, Index.open(place))
        for alone in (False, True):
            chosen = [one for one in pairs() if one.alone is alone]
            right = [one for one in chosen if stands_alone(one.then) is alone]
            bare = [one for one in chosen if await _found(retriever, one.then, one.passage)]
            joined = [
                one
                for one in chosen
                if await _found(retriever, " ".join(continued([one.first, one.then])), one.passage)
            ]
            kind = "new subjects" if alone else "follow-ups"
            print(
                f"{kind}: {len(chosen)}, recognised {len(right)}; hit@{K} alone {len(bare)}, completed {len(joined)}"
            )
            if misses:
                for one in chosen:
                    if one not in right:
                        print(f"  not recognised: {one.then}")
                    if one not in joined:
                        print(f"  not found: {one.first} | {one.then} ({one.passage})")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--misses", action="store_true", help="list what goes wrong")
    parser.add_argument("--data", type=Path, default=DATA)
    args = parser.parse_args()
    anyio.run(lambda: _measure(misses=args.misses))
    if (args.data / CLAIMS).exists():
        questions = [row["question"] for row in rows(args.data / CLAIMS)]
        joined = [one for one in questions if not stands_alone(one)]
        print(
            f"questions that stand alone: {len(questions)}, of which {len(joined)} would be joined"
        )
        if args.misses:
            print("\n".join(f"  {one}" for one in joined))


if __name__ == "__main__":
    main()
