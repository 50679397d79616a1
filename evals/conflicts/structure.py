"""A structural check: BriefContext reports exactly the contradictions that a perfect reader finds.

Usage: ``python -m evals.conflicts.structure [--data PATH]``; exits with 1 unless everything is right.

A scripted model plays reader and grouping from the gold labels, so no model's judgement is measured. The structure around it is checked: partitions, quotes, labels and the reduce step must lose no source, invent
none, and put each on its side.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from evals.conflicts.cases import FILES, Case, Sides, healthver, ramdocs
from evals.papers.literature import retrieval
from posology.llm.structured import Structured
from posology.query import make_query
from posology.testing import ScriptedModel
from posology.types import Answer, Call, Stage, Task
from prompts.extract import ExtractReply
from prompts.reduce import ReduceReply
from strategies.briefcontext.strategy import BriefContext
from training.gold import need

if TYPE_CHECKING:
    from pydantic import BaseModel


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


def _task(case: Case) -> Task:
    query = make_query(case.question)
    return Task(
        quotes="copied",
        query=query,
        retrieval=retrieval(query, case.passages),
        model="openai:scripted",
        max_tokens=2_000,
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
    parser = argparse.ArgumentParser(prog="evals.conflicts.structure", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    data = parser.parse_args(argv).data
    need(data, *FILES)
    perfect = True
    for name, cases in (("healthver", healthver(data)), ("ramdocs", ramdocs(data))):
        counts = anyio.run(evaluate, cases)
        _show(name, counts)
        perfect &= counts.perfect
    return 0 if perfect else 1


if __name__ == "__main__":
    raise SystemExit(main())
