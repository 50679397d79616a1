"""How often the offline reader is right when it says that sources contradict each other.

Usage: ``python -m evals.wording [--data PATH] [--questions N]``.

BriefContext with the offline reader over the nearest passages. Of the sample corpus, which nothing was
fitted on: a conflict is right if all of its sources are gold notes of the question, which contradict each
other wherever a question has several (but for one question, whose two gold notes agree). Of PubMedQA,
from question 150 on (the first were looked at while the word lists were written): there is no gold,
so every conflict is printed for a reader to judge.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import numpy as np

from posology.corpus import sample
from posology.index.embedders import DEFAULT, PACKAGED, load
from posology.llm.offline.reader import NAME, ExtractiveReader
from posology.llm.offline.wording import asks_for_a_side
from posology.query import make_query
from posology.text.sentences import split
from posology.text.tokens import wordpiece_counter
from posology.types import Answer, Conflict, Extract, Passage, Query, Reduction, Retrieved
from strategies.briefcontext.strategy import DEFAULT_SIZE, extract, partition, reduce

_FILES = ("pool.jsonl.gz", "pool.minilm.f16.npy", "pubmedqa_train.jsonl.gz")
_LOOKED_AT = 150
_MAX_TOKENS = 4_000

#: gives the nearest passages of a question
Near = Callable[[Query], Sequence[Passage]]


async def _conflicts(
    query: Query, passages: Sequence[Passage], reader: ExtractiveReader
) -> tuple[Conflict, ...]:
    none = np.zeros(0, np.float32)
    retrieved = [
        Retrieved(
            passage=p,
            sentences=split(p.text),
            vector=none,
            sentence_vectors=np.zeros((0, 0), np.int8),
        )
        for p in passages
    ]
    parts = partition(retrieved, DEFAULT_SIZE)
    extractions = [
        await extract(
            Extract(query=query, partition=part, model=NAME, max_tokens=_MAX_TOKENS), reader
        )
        for part in parts
    ]
    outcome = await reduce(
        Reduction(
            query=query,
            partitions=parts,
            extractions=tuple(extractions),
            model=NAME,
            max_tokens=_MAX_TOKENS,
        ),
        reader,
    )
    return outcome.conflicts if isinstance(outcome, Answer) else ()


def _show(query: Query, conflict: Conflict) -> None:
    print(f"  {query.text}")
    for name, sides in (("for", conflict.supporting), ("against", conflict.opposing)):
        for side in sides:
            print(f"    {name} {side.passage_id}: {' / '.join(c.quote for c in side.citations)}")
    print(f"    {conflict.how}")


async def _sample(near: Near, reader: ExtractiveReader) -> None:
    right = wrong = 0
    several = [q for q in sample.questions() if len(q.gold) > 1]
    for question in sample.questions():
        for conflict in await _conflicts(question.query, near(question.query), reader):
            sources = {s.passage_id for s in (*conflict.supporting, *conflict.opposing)}
            good = sources <= question.gold
            right, wrong = right + good, wrong + (not good)
            _show(question.query, conflict)
    print(
        f"sample: {len(sample.questions())} questions, {len(several)} with several gold notes; "
        f"conflicts reported right {right}, wrong {wrong}"
    )


async def _pubmedqa(rows: Sequence[Any], near: Near, reader: ExtractiveReader) -> None:
    queries = [make_query(row["question"]) for row in rows]
    asked = [query for query in queries if asks_for_a_side(query.text)]
    reported = 0
    for query in asked:
        for conflict in await _conflicts(query, near(query), reader):
            reported += 1
            _show(query, conflict)
    print(f"pubmedqa: {len(rows)} questions, {len(asked)} of yes or no; reported {reported}")


def _rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _passage(row: dict[str, Any]) -> Passage:
    return Passage(
        id=row["id"],
        text=row["text"],
        title=row.get("title") or "",
        year=row.get("year"),
        publication_types=tuple(row.get("publication_types") or ()),
        retracted=bool(row.get("retracted")),
    )


def main(argv: list[str] | None = None) -> int:
    """Run both sets and print what was reported."""
    parser = argparse.ArgumentParser(prog="evals.wording", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--questions", type=int, default=120, help="of PubMedQA")
    arguments = parser.parse_args(argv)
    data: Path = arguments.data
    if missing := [name for name in _FILES if not (data / name).exists()]:
        sys.exit(f"{data} has no {missing[0]}: name the data sets' folder with --data")
    embedder = load()
    reader = ExtractiveReader(embedder, wordpiece_counter(PACKAGED[DEFAULT]() / "tokenizer.json"))
    with sample.notes_file() as path:
        notes = [_passage(json.loads(line)) for line in path.read_text("utf-8").splitlines()]
    encoded = embedder.embed_passages(notes, [()] * len(notes))

    def nearest(
        passages: Sequence[Any], vectors: np.ndarray, k: int, read: Callable[[Any], Passage]
    ) -> Near:
        def near(query: Query) -> list[Passage]:
            (vector,) = embedder.embed_queries([query.text])
            return [read(passages[i]) for i in np.argsort(-(vectors @ vector))[:k].tolist()]

        return near

    of_sample = nearest(notes, np.array([e.vector for e in encoded]), 12, lambda note: note)
    anyio.run(_sample, of_sample, reader)
    pool = nearest(
        _rows(data / _FILES[0]), np.load(data / _FILES[1]).astype(np.float32), 16, _passage
    )
    rows = _rows(data / _FILES[2])[_LOOKED_AT : _LOOKED_AT + arguments.questions]
    anyio.run(_pubmedqa, rows, pool, reader)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
