"""Checks that BriefContext reports exactly the contradictions in its sources.

Usage: ``python -m evals.conflicts [--data PATH]``; exits with 1 unless everything is right.

HealthVer: a claim with evidence that supports it, refutes it, or is neutral. RAMDocs: a question with documents that
give a right answer, a wrong one or none; each wrong answer is a claim that its documents support and those with a
right answer oppose. A scripted model plays reader and grouping from the gold labels, so no model's judgement is
tested. The structure around it is: partitions, quotes, labels and the reduce step must lose no source, invent none,
and put each on its side.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import numpy as np

from orchestrator.training.artefacts.gold import rows
from posology.llm.structured import Structured
from posology.query import make_query
from posology.testing import ScriptedModel
from posology.text.sentences import split
from posology.types import (
    Answer,
    Call,
    Hit,
    Passage,
    Query,
    Ranking,
    Retrieval,
    Retrieved,
    Stage,
    Task,
)
from prompts.extract import ExtractReply
from prompts.reduce import ReduceReply
from strategies.briefcontext.strategy import BriefContext

if TYPE_CHECKING:
    from pydantic import BaseModel

FILES = ("healthver_dev.jsonl.gz", "ramdocs_part1.jsonl.gz")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sides:
    """The passages on each side of a claim."""

    supporting: frozenset[str]
    opposing: frozenset[str]

    def of(self, claim: str) -> frozenset[tuple[str, str, str]]:
        """Claim, passage and side, one a source."""
        return frozenset(
            (claim, passage, side)
            for side, passages in (("supporting", self.supporting), ("opposing", self.opposing))
            for passage in passages
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A question with its passages, and what each says of each claim."""

    question: str
    passages: tuple[Passage, ...]
    claims: Mapping[str, Sides]

    @property
    def relevant(self) -> frozenset[str]:
        """The passages that take a side on any claim."""
        return frozenset().union(*(s.supporting | s.opposing for s in self.claims.values()))

    @property
    def gold(self) -> frozenset[tuple[str, str, str]]:
        """What is to be reported: the sources of every claim that has both sides."""
        return frozenset().union(
            *(s.of(claim) for claim, s in self.claims.items() if s.supporting and s.opposing)
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """What came out; sums over cases."""

    cases: int = 0
    #: claims with both sides
    conflicts: int = 0
    #: conflicts in the answers
    reported: int = 0
    #: (claim, passage, side) that are to be reported, that were, and that rightly were
    gold: int = 0
    named: int = 0
    right: int = 0
    #: passages that take a side, and those of them that the reduce call was given
    relevant: int = 0
    received: int = 0
    #: passages that take no side and were given all the same
    needless: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            **{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        )

    @property
    def perfect(self) -> bool:
        """Whether nothing is missing and nothing too much."""
        return (
            self.gold == self.named == self.right
            and self.conflicts == self.reported
            and self.relevant == self.received
            and not self.needless
        )


def healthver(data: Path) -> list[Case]:
    """One case a claim."""
    cases = []
    for i, row in enumerate(rows(data / FILES[0])):
        passages = _passages(f"hv:{i}", [e["text"] for e in row["evidence"]])
        by_label = {
            label: frozenset(
                p.id for p, e in zip(passages, row["evidence"], strict=True) if e["label"] == label
            )
            for label in ("Supports", "Refutes")
        }
        sides = Sides(supporting=by_label["Supports"], opposing=by_label["Refutes"])
        claim = " ".join(row["claim"].split())
        cases.append(Case(question=row["claim"], passages=passages, claims={claim: sides}))
    return cases


def ramdocs(data: Path) -> list[Case]:
    """One case a question; one claim a wrong answer, or where there is none, that there is an answer."""
    cases = []
    for i, row in enumerate(rows(data / FILES[1])):
        passages = _passages(f"rd:{i}", [d["text"] for d in row["documents"]])
        documents = list(zip(passages, row["documents"], strict=True))
        right = frozenset(p.id for p, d in documents if d["type"] == "correct")
        wrong = {
            answer: frozenset(
                p.id for p, d in documents if d["type"] == "misinfo" and d["answer"] == answer
            )
            for answer in row["wrong_answers"]
        }
        claims = {
            f"The answer is {' '.join(answer.split())}.": Sides(supporting=ids, opposing=right)
            for answer, ids in wrong.items()
        } or {"There is an answer.": Sides(supporting=right, opposing=frozenset())}
        cases.append(Case(question=row["question"], passages=passages, claims=claims))
    return cases


async def evaluate(cases: Iterable[Case]) -> Counts:
    """Run BriefContext over the cases and compare what it reports with the gold labels."""
    total = Counts()
    for case in cases:
        total += await _one(case)
    return total


async def _one(case: Case) -> Counts:
    model = ScriptedModel(lambda call: _play(case, call))
    outcome = await BriefContext()(_task(case), Structured(model))
    given = {
        excerpt.passage.id
        for call in model.calls
        if call.stage is Stage.REDUCE
        for excerpt in call.excerpts
    }
    conflicts = outcome.conflicts if isinstance(outcome, Answer) else ()
    named = frozenset().union(
        *(
            Sides(
                supporting=frozenset(s.passage_id for s in conflict.supporting),
                opposing=frozenset(s.passage_id for s in conflict.opposing),
            ).of(conflict.claim)
            for conflict in conflicts
        )
    )
    return Counts(
        cases=1,
        conflicts=sum(bool(s.supporting and s.opposing) for s in case.claims.values()),
        reported=len(conflicts),
        gold=len(case.gold),
        named=len(named),
        right=len(named & case.gold),
        relevant=len(case.relevant),
        received=len(given & case.relevant),
        needless=len(given - case.relevant),
    )


def _play(case: Case, call: Call) -> BaseModel:
    """What a model that knows the gold labels replies."""
    ids = [excerpt.passage.id for excerpt in call.excerpts]
    if call.stage is Stage.EXTRACT:
        findings = [
            {
                "statement": f"{id_} takes a side.",
                "quotes": [
                    {
                        "passage": f"P{i + 1}",
                        "quote": excerpt.sentences[0].of(excerpt.passage.text),
                    }
                ],
            }
            for i, (id_, excerpt) in enumerate(zip(ids, call.excerpts, strict=True))
            if id_ in case.relevant
        ]
        return ExtractReply.model_validate({"found": bool(findings), "findings": findings})

    def labels(passages: frozenset[str]) -> list[str]:
        return [f"F{i + 1}" for i, id_ in enumerate(ids) if id_ in passages]

    claims = [
        {
            "claim": claim,
            "supporting": labels(sides.supporting),
            "opposing": labels(sides.opposing),
            "resolution": "unresolved",
            "reason": "The labels say so.",
        }
        for claim, sides in case.claims.items()
    ]
    reply = {
        "answerable": True,
        "answer": "It is as the sources say.",
        "choice": None,
        "evidence": labels(case.relevant),
        "claims": claims,
    }
    return ReduceReply.model_validate(reply)


def _passages(prefix: str, texts: Sequence[str]) -> tuple[Passage, ...]:
    return tuple(Passage(id=f"{prefix}:{i}", text=text) for i, text in enumerate(texts))


def _task(case: Case) -> Task:
    query = make_query(case.question)
    return Task(
        quotes="copied",
        query=query,
        retrieval=_retrieval(query, case),
        model="openai:scripted",
        max_tokens=2_000,
    )


def _retrieval(query: Query, case: Case) -> Retrieval:
    ranking = Ranking(
        method="dense", hits=tuple(Hit(passage_id=p.id, score=0.0) for p in case.passages)
    )
    none = np.zeros(0, np.float32)
    return Retrieval(
        query=query,
        passages=tuple(
            Retrieved(
                passage=passage,
                sentences=split(passage.text),
                vector=none,
                sentence_vectors=np.zeros((0, 0), np.int8),
            )
            for passage in case.passages
        ),
        query_vector=none,
        dense=ranking,
        bm25_rerank=ranking,
        bm25=ranking,
        fused=ranking,
        index_version="gold@1",
    )


def _show(name: str, counts: Counts) -> None:
    precision = counts.right / max(counts.named, 1)
    recall = counts.right / max(counts.gold, 1)
    print(
        f"{name}: {counts.cases} cases; conflicts {counts.reported} of {counts.conflicts}; sources "
        f"named {counts.named}, of them right {counts.right} of {counts.gold} (precision "
        f"{precision:.3f}, recall {recall:.3f}); reduce received {counts.received} of "
        f"{counts.relevant} passages that take a side, and {counts.needless} others"
    )


def main(argv: list[str] | None = None) -> int:
    """Run all cases and print the counts."""
    parser = argparse.ArgumentParser(prog="evals.conflicts", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    data = parser.parse_args(argv).data
    if missing := [name for name in FILES if not (data / name).exists()]:
        sys.exit(f"{data} has no {missing[0]}. Pass --data with the folder of the data sets.")
    perfect = True
    for name, cases in (("healthver", healthver(data)), ("ramdocs", ramdocs(data))):
        counts = anyio.run(evaluate, cases)
        _show(name, counts)
        perfect &= counts.perfect
    return 0 if perfect else 1


if __name__ == "__main__":
    raise SystemExit(main())
