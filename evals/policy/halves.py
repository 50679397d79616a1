"""Explores every action on SQuAD's pooled questions with the code of ``posology policy train``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from evals import pooled
from orchestrator.training.paid.calls import Purchase
from orchestrator.training.qtable.learner import Lesson, Taught, taught
from orchestrator.training.qtable.plan import Actions, Planner
from orchestrator.training.qtable.questions import Example
from orchestrator.training.qtable.rows import Begin, Explored, open_run
from orchestrator.training.qtable.run import Exploration
from policies.qtable import ACTIONS, QTable, nearest
from posology.budget.ledger.memory import MemoryLedger
from posology.llm.offline.reader import NAME, ExtractiveReader
from posology.llm.offline.replies import NOTICE
from posology.types import Query, Retrieval
from strategies.compression.leancontext import LeanContext

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Half:
    """What each of A actions came to on each of n questions."""

    begin: Begin
    taught: Taught
    #: tokens that are shown of the context, shape ``(n, A)``
    tokens: NDArray[np.float64]
    #: tokens of the whole context, shape ``(n,)``
    whole: NDArray[np.float64]
    #: ROUGE-1 against the answer from the whole context, shape ``(n, A)``
    rouge: NDArray[np.float64]
    #: whether the answer holds a gold answer, shape ``(n, A)``
    gold: NDArray[np.float64]

    @property
    def lessons(self) -> tuple[Lesson, ...]:
        """What is learned from."""
        return self.taught.lessons

    def rewards(self, alpha: float) -> NDArray[np.float64]:
        """R of each action on each question, shape ``(n, A)``."""
        tau = self.tokens / self.whole[:, None]
        found: NDArray[np.float64] = -(1 - alpha) * tau + alpha * (2 * self.rouge - 1)
        return found

    def states(self, table: QTable) -> NDArray[np.int64]:
        """The state of each question, shape ``(n,)``."""
        found = [nearest(table.centroids, one.state(table.kind))[0] for one in self.lessons]
        return np.array(found, np.int64)


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
        return _half(run.content, questions)


def _ticker(part: str) -> Callable[[int], None]:
    done = 0

    def tell(n: int) -> None:
        nonlocal done
        done += n
        if done % 500 == 0:
            print(f"{part}: {done} calls made", file=sys.stderr, flush=True)

    return tell


def _half(explored: Explored, questions: Sequence[pooled.Question]) -> Half:
    assert explored.begin is not None
    found = taught(explored, "rouge1")
    asked = list(explored.questions.values())
    if len(found.lessons) != len(questions) or found.actions != ACTIONS:
        sys.exit("not every question was answered by every action")

    def holds(call: str | None, question: pooled.Question) -> bool:
        if call is None or (reply := explored.replies[call]).refused:
            return False
        return pooled.holds(reply.text.replace(NOTICE, ""), question.answers)

    return Half(
        begin=explored.begin,
        taught=found,
        tokens=np.array([[arm.tokens for arm in one.arms] for one in asked], float),
        whole=np.array([one.tokens for one in asked], float),
        rouge=np.array([[grade.r for grade in one.grades] for one in found.lessons]),
        gold=np.array(
            [
                [holds(arm.call, question) for arm in one.arms]
                for one, question in zip(asked, questions, strict=True)
            ],
            float,
        ),
    )
