"""Training of a Q-table: every action on every question as a paid run, then the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from anyio import to_thread

from orchestrator.compressors import make_compressor
from orchestrator.connections import Connections
from orchestrator.question.embedding import Spend, encoded
from orchestrator.question.estimates.costs import Dollars, Estimate, make_estimator
from orchestrator.question.estimates.tokens import packaged_counter
from orchestrator.question.request import Request
from orchestrator.retrieval import make_retriever
from orchestrator.service import index_place
from orchestrator.settings import Settings
from orchestrator.training.forms import Explored as ExploredOutput
from orchestrator.training.forms import LeftOut, TrainingEstimate, TrainOutput
from orchestrator.training.paid.calls import Buys
from orchestrator.training.paid.rows import Row
from orchestrator.training.paid.run import Costs, PaidRun, Quote, Terms
from orchestrator.training.qtable.description import describe
from orchestrator.training.qtable.learner import Lesson, Recipe, learn, taught
from orchestrator.training.qtable.plan import Actions, Plan, Planner, dose
from orchestrator.training.qtable.questions import Examples
from orchestrator.training.qtable.rewards import Said
from orchestrator.training.qtable.rows import (
    Arm,
    Asked,
    Begin,
    Explored,
    Replied,
    RunFile,
    calls_of,
)
from policies.qtable import QTable
from posology.concurrency import map_concurrently
from posology.index.store import Index
from posology.llm.memo import call_key
from posology.types import Query, Retrieval, Tier
from strategies.single_call import conclude as read_reply

#: concurrent estimates
_AT_ONCE = 4
#: reason for a question without passages
NO_PASSAGE = "the index has no passage for this question"

#: digest of a call, its question, and one arm that needs it
Missing: TypeAlias = tuple[str, Asked, Arm]


class Exploration(PaidRun[Explored, Missing]):
    """Full exploration ("Training algorithm"): every action on every question, once.

    Identical calls are made once, whichever actions need them: of a few sentences, 5 % and 10 % are the same.

    Args:
        file: keeps the replies.
        plan: questions.
        actions: to explore.
        begin: describes how questions are asked.
        annotated: whether the index has the phrases that compressors reduce sentences by.
    """

    def __init__(
        self,
        file: RunFile,
        plan: Plan,
        actions: Actions,
        begin: Begin,
        *,
        annotated: bool = True,
    ) -> None:
        needed = calls_of(ground.asked for ground in plan.grounds.values())
        replies = file.content.replies
        super().__init__(
            file,
            [(key, *found) for key, found in needed.items() if key not in replies],
            model=actions.model,
        )
        self.plan = plan
        self.annotated = annotated
        self._actions = actions
        self._begin = begin

    def begin(self) -> Sequence[Row]:
        """Return the ``begin`` row and all questions; earlier ones may be of another index."""
        return (self._begin, *(ground.asked for ground in self.plan.grounds.values()))

    def kept(self, call: str) -> bool:
        """See :meth:`PaidRun.kept`."""
        return call in self.file.content.replies

    async def price(self, connections: Connections, settings: Settings, tier: Tier) -> Costs:
        """Estimate the missing calls; see :meth:`PaidRun.price`."""
        estimator = make_estimator(settings, connections)

        async def price(one: Missing) -> Estimate:
            _, asked, arm = one
            task = self._actions.task(self.plan.grounds[asked.digest].retrieval)
            return await estimator(replace(task, tier=tier), dose(arm.keep))

        found = await map_concurrently(price, self.todo, limit=_AT_ONCE)
        return Costs(
            calls=len(found),
            input=sum(one.input for one in found),
            output=sum(one.output for one in found),
            dollars=sum((one.dollars for one in found), Dollars()),
        )

    async def ask(self, item: Missing, buyer: Buys) -> None:
        """Make one call and keep its reply."""
        key, asked, arm = item
        retrieval = self.plan.grounds[asked.digest].retrieval
        # rendered once more: all calls together do not fit into memory
        call = await to_thread.run_sync(self._actions.call, retrieval, arm.keep)
        assert call is not None
        assert call_key(call) == key
        bought = await buyer(call)
        reply = Said.by(
            read_reply(call.query, bought.completion, call.excerpts, strategy=call.strategy)
        )
        await self.file.keep(
            Replied(
                call=key,
                text=reply.text,
                choice=reply.choice,
                refused=reply.refused,
                cost=bought.cost,
            )
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Questions to explore, and how they are asked."""

    examples: Examples
    #: folder of the index; ``None``: as configured
    index: str | None
    #: model, number of passages and ranking for all questions
    request: Request
    #: shares of the sentences kept whole
    shares: tuple[float, ...]

    async def plan(self, terms: Terms, file: RunFile) -> Exploration:
        """Retrieve for all questions. Nothing is spent.

        Raises:
            PosologyError: the index cannot serve.
        """
        settings, request = terms.settings, self.request
        actions = Actions(
            # the whole context is the reference of all grades
            shares=tuple(sorted({*self.shares, 1.0})),
            compressor=make_compressor(settings),
            model=request.model,
            max_tokens=request.max_tokens,
            effort=request.effort,
        )
        index = await to_thread.run_sync(Index.open, index_place(settings, self.index))
        retriever = await make_retriever(settings, terms.models, index)

        async def retrieve(query: Query) -> Retrieval:
            # free: a paid embedder's vectors of these questions are cached
            vectors = await encoded(retriever.embedder, query.text, Spend(tenant=terms.tenant))
            return await retriever.retrieve(query, request.k, request.mode, encoded=vectors)

        planner = Planner(retrieve=retrieve, actions=actions, count=packaged_counter())
        plan = await planner(self.examples.good)
        begin = Begin(
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            model=request.model,
            k=request.k,
            mode=request.mode,
            compressor=actions.compressor.name,
            embedder=index.meta.embedder,
            index=plan.index,
            prompts=dict(plan.prompts),
        )
        annotated = index.meta.annotator is not None
        return Exploration(file, plan, actions, begin, annotated=annotated)

    def bad_lines(self, plan: Plan | None = None) -> dict[int, str]:
        """Return the reason for each line whose question is not explored."""
        found = {bad.line: bad.reason for bad in self.examples.bad}
        if plan is not None:
            found |= {example.line: NO_PASSAGE for example in plan.without}
        return found


def conclude(
    answers: Explored,
    recipe: Recipe,
    *,
    shares: tuple[float, ...] | None,
    run: Path,
    out: Path,
    bad: Mapping[int, str],
    estimate: TrainingEstimate | None = None,
) -> tuple[TrainOutput, QTable]:
    """Compute the table of a run, and its published form.

    Args:
        answers: content of the run's file.
        recipe: how the table is computed.
        shares: actions of the table; ``None``: all that were explored.
        run: the run's file.
        out: the table's file.
        bad: reason for each line that was not explored.
        estimate: made before the run.

    Raises:
        InputError: no question was answered from its whole context, or a share was not explored.
    """
    found = taught(answers, recipe.score)
    table = learn(found, answers.begin, recipe, shares)
    output = TrainOutput(
        estimate=estimate,
        run=str(run),
        out=str(out),
        learned=len(found.lessons),
        left_out=left_out({**bad, **found.without}),
        failed=len(answers.failures),
        spent_usd=answers.spent,
        actions=_explored(found.lessons),
        table=describe(table),
    )
    return output, table


def planned(wanted: Wanted, run: Exploration, estimate: TrainingEstimate) -> TrainOutput:
    """Return the published form of a run that was only planned."""
    return TrainOutput(
        estimate=estimate,
        run=str(run.file.path),
        out=None,
        learned=0,
        left_out=left_out(wanted.bad_lines(run.plan)),
        failed=0,
        spent_usd=run.file.content.spent,
        actions=(),
        table=None,
    )


def training_estimate(quote: Quote, *, questions: int, answered: int) -> TrainingEstimate:
    """Return the published form of a quote.

    Args:
        quote: of the calls to make.
        questions: of the run.
        answered: calls that already have a reply.
    """
    return TrainingEstimate(
        questions=questions, calls=quote.costs.calls, answered=answered, **quote.fields()
    )


def left_out(reasons: Mapping[int, str]) -> tuple[LeftOut, ...]:
    """Return the lines that teach nothing, in order."""
    return tuple(LeftOut(line=line, reason=reasons[line]) for line in sorted(reasons))


def _explored(lessons: Iterable[Lesson]) -> tuple[ExploredOutput, ...]:
    """Return the means of each action, the smallest share first."""
    grades: dict[float, list[tuple[float, float]]] = {}
    for lesson in lessons:
        for grade in lesson.grades:
            grades.setdefault(grade.keep, []).append((grade.tau, grade.r))
    return tuple(
        ExploredOutput(
            keep=keep,
            questions=len(pairs),
            tokens=sum(tau for tau, _ in pairs) / len(pairs),
            quality=sum(r for _, r in pairs) / len(pairs),
        )
        for keep, pairs in sorted(grades.items())
    )
