"""Measures how often conflicts between partitions that answer are resolved rightly, and compares with direct RAG.

Usage: ``python -m evals.conflicts [--data PATH] [--size N] [--seed N]``

BriefContext, section 5.3: a conflict is that partitions of the same passages answer differently; it is resolved rightly
if the final answer is right; it wins or loses against one call over all passages if only one of both is right. The
model is :class:`~evals.conflicts.reader.ScriptedReader`, which gets no gold label. The order of passages is drawn.
HealthVer: only claims that the cross-encoder was not trained on, with the verdict of most of their evidence.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio

from evals.conflicts.cases import FILES, Case, healthver, ramdocs
from evals.conflicts.reader import ScriptedReader
from evals.papers.literature import retrieval
from evals.pooled import shown
from posology.llm.offline.answering import KeptReadings
from posology.llm.structured import Structured
from posology.query import make_query
from posology.reading.crossencoder import CrossEncoder
from posology.reading.judge import Judge
from posology.testing import ScriptedModel
from posology.types import Answer, PartitionMode, Stage, Task
from strategies.briefcontext.answers import agree
from strategies.briefcontext.conclusion import DIFFERENT
from strategies.briefcontext.strategy import DEFAULT_SIZE, BriefContext
from strategies.direct import Direct
from training.pruner_cases import part_of

#: (resolved rightly, cases) by model, table S2
PAPER = {"Mixtral-7x8b": (171, 217), "GPT-3.5-turbo": (225, 313)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """One question, answered in both ways."""

    #: whether partitions answered differently
    conflict: bool
    #: whether the rule on evidence decided
    ruled: bool
    #: whether BriefContext's answer is right, and that of direct RAG
    right: bool
    direct: bool


async def measure(
    cases: Sequence[Case],
    reader: ScriptedReader,
    *,
    mode: PartitionMode = "answer",
    size: int = DEFAULT_SIZE,
    seed: int = 0,
) -> list[Outcome]:
    """Answer each case by direct RAG and by BriefContext.

    Args:
        cases: questions with at least one right answer.
        reader: replies to every call.
        mode: what partitions are asked for.
        size: passages a partition.
        seed: of the order of passages.
    """
    return [await _one(case, reader, mode, size, seed) for case in cases]


async def _one(
    case: Case, reader: ScriptedReader, mode: PartitionMode, size: int, seed: int
) -> Outcome:
    drawn = random.Random(f"{seed} {case.question}")
    case = replace(case, passages=tuple(drawn.sample(case.passages, len(case.passages))))
    query = make_query(case.question, form=case.form)
    task = Task(
        query=query,
        retrieval=retrieval(query, case.passages),
        model="openai:scripted",
        max_tokens=2_000,
        partitions=mode,
    )
    one, parted = ScriptedModel(reader), ScriptedModel(reader)
    await Direct()(task, Structured(one))
    found = await BriefContext(size=size)(task, Structured(parted))
    told = found.conflicts[0].how if isinstance(found, Answer) and found.conflicts else ""
    last = parted.calls[-1]
    return Outcome(
        conflict=any(note.startswith(DIFFERENT) for note in found.notes),
        ruled=bool(told) and "by the reduce call" not in told and not told.startswith("Not"),
        right=last.stage is Stage.REDUCE and is_right(case, reader.answer(last)),
        direct=is_right(case, reader.answer(one.calls[-1])),
    )


def is_right(case: Case, answer: str) -> bool:
    """Return whether a short answer is one of the right ones, and none of the wrong ones."""
    return any(agree(answer, gold) for gold in case.right) and not any(
        agree(answer, wrong) for wrong in case.wrong
    )


def summary(found: Sequence[Outcome]) -> str:
    """Return the figures of a set in one paragraph."""
    conflicts = [one for one in found if one.conflict]
    lines = [
        (
            f"{len(found)} questions; right: direct {_share(found, lambda o: o.direct)}, BriefContext "
            f"{_share(found, lambda o: o.right)}"
        ),
    ]
    if conflicts:
        wins = sum(one.right > one.direct for one in conflicts)
        losses = sum(one.right < one.direct for one in conflicts)
        lines.append(
            f"{len(conflicts)} with partitions that answer differently; resolved rightly "
            f"{_share(conflicts, lambda o: o.right)}, by the rule {sum(o.ruled for o in conflicts)}; against direct: "
            f"win {wins}, tie {len(conflicts) - wins - losses}, lose {losses}"
        )
    return "\n  ".join(lines)


def _share(found: Sequence[Outcome], of: Callable[[Outcome], bool]) -> str:
    return shown([float(of(one)) for one in found])


def main(argv: list[str] | None = None) -> int:
    """Measure both sets and print the figures."""
    parser = argparse.ArgumentParser(prog="evals.conflicts", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--size", type=int, default=DEFAULT_SIZE, help="passages a partition")
    parser.add_argument("--seed", type=int, default=0, help="of the order of passages")
    given = parser.parse_args(argv)
    if missing := [name for name in FILES if not (given.data / name).exists()]:
        sys.exit(f"{given.data} has no {missing[0]}. Pass --data with the folder of the data sets.")
    model = CrossEncoder.packaged()
    reader = ScriptedReader(KeptReadings(model), Judge.packaged())
    print(f"Reader: scripted, by {model.name}; it is no language model.")
    for name, (right, cases) in PAPER.items():
        print(f"The paper, {name}: {right} of {cases} resolved rightly ({right / cases:.3f})")
    aside = [
        case
        for case in healthver(given.data)
        if case.right and part_of(f"healthver:{case.question}") != "train"
    ]
    for name, found in (("RAMDocs", ramdocs(given.data)), ("HealthVer", aside)):
        asked = partial(measure, found, reader, size=given.size, seed=given.seed)
        outcomes = anyio.run(asked)
        print(f"{name}: {summary(outcomes)}")
    return 0
