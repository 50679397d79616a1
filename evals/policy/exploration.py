"""Explores every action on SQuAD's pooled questions with the code of ``posology policy train``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from evals import pooled
from orchestrator.training.paid.calls import Purchase
from orchestrator.training.qtable.learner import Taught, taught
from orchestrator.training.qtable.plan import Actions, Planner
from orchestrator.training.qtable.questions import Example
from orchestrator.training.qtable.rows import Begin, Explored, open_run
from orchestrator.training.qtable.run import Exploration
from policies.qtable import ACTIONS
from posology.budget.ledger.memory import MemoryLedger
from posology.llm.offline.reader import NAME, ExtractiveReader
from posology.types import Query, Retrieval
from strategies.compression.leancontext import LeanContext

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, kw_only=True, slots=True)
class Half:
    """Lessons of one half of the questions, and how they came about."""

    begin: Begin
    taught: Taught


async def explore(
    pool: pooled.Pool, part: pooled.Part, given: argparse.Namespace, reader: ExtractiveReader
) -> Half:
    """Ask each action of each question, where it is not kept from an earlier run."""
    questions = pool.sample(part, given.questions)
    examples = [
        Example(line=line, query=question.query, references=())
        for line, question in enumerate(questions, 1)
    ]
    actions = Actions(shares=ACTIONS, compressor=LeanContext(), model=NAME, max_tokens=None)

    async def retrieve(query: Query) -> Retrieval:
        return await pool.retriever.retrieve(query, given.k)

    plan = await Planner(retrieve=retrieve, actions=actions, count=pooled.counter())(examples)
    begin = Begin(
        started=datetime.now(UTC).isoformat(),
        model=NAME,
        k=given.k,
        mode="fused",
        compressor=actions.compressor.name,
        embedder=pool.embedder.name,
        index=plan.index,
        prompts=dict(plan.prompts),
    )
    given.work.mkdir(parents=True, exist_ok=True)
    with open_run(given.work / f"qtable-{part}.run.jsonl") as run:
        exploration = Exploration(run, plan, actions, begin)
        print(
            f"{part}: {len(examples)} questions, {len(exploration.todo)} calls to make", flush=True
        )
        purchase = Purchase(
            completes=lambda *_: reader,
            ledger=MemoryLedger(),
            cap=None,
            at_once=2,
        )
        await exploration.buy(purchase, _ticker(part))
        return _half(run.content, len(questions))


def _ticker(part: str) -> Callable[[int], None]:
    done = 0

    def tell(n: int) -> None:
        nonlocal done
        done += n
        if done % 500 == 0:
            print(f"{part}: {done} calls made", file=sys.stderr, flush=True)

    return tell


def _half(explored: Explored, questions: int) -> Half:
    assert explored.begin is not None
    found = taught(explored, "rouge1")
    if len(found.lessons) != questions or found.actions != ACTIONS:
        sys.exit("not every question was answered by every action")
    return Half(begin=explored.begin, taught=found)
