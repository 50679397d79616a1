"""Chooses how many passages a partition of BriefContext holds.

Usage: ``python -m evals.partitions [--data PATH] [--questions N]``.

PubMedQA questions and SciFact claims, each with the 16 passages whose given vectors are nearest, the
gold one among them. For every size: the share of questions whose gold passage is quoted by some
extraction of the offline reader, and what answering sends, in tokens of the packaged encoder,
relative to direct RAG over the same 16 passages (BriefContext, equations 4 and 5).

This measures an extractive reader, which scores each passage by itself: it loses nothing in the
middle of a long context. What it shows is what competition within a partition costs, and what the
repeated instructions cost. How much a language model gains from a short context it cannot show.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import numpy as np

from posology.index.embedders import DEFAULT, PACKAGED, load
from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder
from posology.llm.offline.choice import choose
from posology.llm.offline.reader import NAME, ExtractiveReader
from posology.llm.offline.scores import Scored, SentenceScorer
from posology.query import make_query
from posology.seams import TokenCounter
from posology.text.sentences import split
from posology.text.tokens import wordpiece_counter
from posology.types import Citation, Extract, Partition, Passage, Query, Retrieved
from prompts.answer import render_answer
from prompts.extract import render_extract
from prompts.reduce import Sourced, render_reduce
from prompts.template import Rendered
from strategies.briefcontext.strategy import DEFAULT_SIZE, extract, partition

SIZES = (1, 2, 3, 4, 5, 8, 16)
_K = 16
_FILES = (
    "pool.jsonl.gz",
    "pool.minilm.f16.npy",
    "pubmedqa_train.jsonl.gz",
    "scifact_claims_train.jsonl.gz",
)
_MAX_TOKENS = 100_000


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Case:
    """A question with its nearest passages, scored."""

    kind: str
    query: Query
    passages: tuple[Retrieved, ...]
    gold: frozenset[str]
    #: over all passages; a sentence's score does not depend on the others'
    scored: tuple[Scored, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """One question at one size."""

    quoted: bool
    #: tokens of all prompts, and of those of direct RAG
    sent: int
    direct: int


def _rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _asked(data: Path) -> dict[str, list[tuple[str, frozenset[str]]]]:
    """Of each set: questions and the ids of their gold passages."""
    pubmedqa = [(r["question"], frozenset([f"pmid:{r['pmid']}"])) for r in _rows(data / _FILES[2])]
    scifact = [
        (r["claim"], frozenset(f"scifact:{doc}" for doc in r["evidence"]))
        for r in _rows(data / _FILES[3])
        if r["evidence"]
    ]
    return {"pubmedqa": pubmedqa, "scifact": scifact}


def cases(data: Path, embedder: SentenceTransformerEmbedder, n: int) -> Iterator[Case]:
    """The first ``n`` questions of each set that have a gold passage among their nearest."""
    pool = _rows(data / _FILES[0])
    vectors = np.load(data / _FILES[1]).astype(np.float32)
    scorer = SentenceScorer(embedder)
    for kind, asked in _asked(data).items():
        taken = 0
        for text, gold in asked:
            query = make_query(text)
            (vector,) = embedder.embed_queries([query.text])
            near = np.argsort(-(vectors @ vector))[:_K].tolist()
            if not gold & {pool[i]["id"] for i in near}:
                continue
            passages = tuple(_retrieved(pool[i], vectors[i]) for i in near)
            (whole,) = partition(passages, _K)
            yield Case(
                kind=kind,
                query=query,
                passages=passages,
                gold=gold,
                scored=tuple(scorer(query.text, whole.excerpts)),
            )
            taken += 1
            if taken == n:
                break


def _retrieved(row: dict[str, Any], vector: np.ndarray) -> Retrieved:
    passage = Passage(
        id=row["id"], text=row["text"], title=row.get("title") or "", year=row.get("year")
    )
    sentences = split(passage.text)
    return Retrieved(
        passage=passage,
        sentences=sentences,
        vector=vector,
        sentence_vectors=np.zeros((len(sentences), 0), np.int8),
    )


def _chosen(case: Case, part: Partition) -> list[Sourced]:
    """What the offline reader's extraction of a partition finds."""
    last = part.first_rank + len(part.excerpts)
    inside = [one for one in case.scored if part.first_rank <= one.excerpt < last]
    found = []
    for one in choose(inside):
        passage = case.passages[one.excerpt].passage
        words = one.sentence.of(passage.text)
        citation = Citation(
            passage_id=passage.id, start=one.sentence.start, end=one.sentence.end, quote=words
        )
        found.append(
            Sourced(statement=words, passage=passage, rank=one.excerpt, citations=(citation,))
        )
    return found


def _measure(case: Case, size: int, count: TokenCounter) -> Measured:
    def tokens(rendered: Rendered) -> int:
        return sum(count(message.content) for message in rendered.messages)

    parts = partition(case.passages, size)
    findings = [found for part in parts for found in _chosen(case, part)]
    sent = sum(tokens(render_extract(case.query, part.excerpts)) for part in parts)
    if findings:
        sent += tokens(render_reduce(case.query, findings))
    (whole,) = partition(case.passages, _K)
    return Measured(
        quoted=any(found.passage.id in case.gold for found in findings),
        sent=sent,
        direct=tokens(render_answer(case.query, whole.excerpts)),
    )


async def _check(case: Case, reader: ExtractiveReader) -> None:
    """That what is computed here is what an extraction gives."""
    for part in partition(case.passages, DEFAULT_SIZE):
        asked = Extract(query=case.query, partition=part, model=NAME, max_tokens=_MAX_TOKENS)
        extraction = await extract(asked, reader)
        given = [finding.citations for finding in extraction.findings]
        computed = [found.citations for found in _chosen(case, part)]
        if given != computed:
            sys.exit(f"the extraction of {case.query.text!r} is not what was computed for it")


def _report(measured: Sequence[Measured], size: int) -> str:
    quoted = sum(m.quoted for m in measured) / len(measured)
    ratio = sum(m.sent for m in measured) / sum(m.direct for m in measured)
    return f"{size:>4} {-(-_K // size):>6} {quoted:>8.3f} {ratio:>8.2f}"


def main(argv: list[str] | None = None) -> int:
    """Measure every size and print the tables."""
    parser = argparse.ArgumentParser(prog="evals.partitions", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--questions", type=int, default=60, help="of each set")
    arguments = parser.parse_args(argv)
    if missing := [name for name in _FILES if not (arguments.data / name).exists()]:
        sys.exit(f"{arguments.data} has no {missing[0]}: name the data sets' folder with --data")
    embedder = load()
    count = wordpiece_counter(PACKAGED[DEFAULT]() / "tokenizer.json")
    read = list(cases(arguments.data, embedder, arguments.questions))
    for kind in ("pubmedqa", "scifact"):
        of_kind = [case for case in read if case.kind == kind]
        anyio.run(_check, of_kind[0], ExtractiveReader(embedder, count))
        print(
            f"\n{kind}: {len(of_kind)} questions\nsize  parts   quoted   tokens sent / direct RAG's"
        )
        for size in SIZES:
            print(_report([_measure(case, size, count) for case in of_kind], size))
    print(f"\nbuilt in: {DEFAULT_SIZE}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
