"""Training from end to end: what will it cost, then the exploration, then the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from anyio import to_thread

from orchestrator.budget import open_purse
from orchestrator.compressors import make_compressor
from orchestrator.models import Models
from orchestrator.question.embedding import Spend, encoded
from orchestrator.question.estimates.costs import make_estimator
from orchestrator.question.estimates.tokens import packaged_counter
from orchestrator.question.request import Request
from orchestrator.retrieval import make_retriever
from orchestrator.service import index_place, open_connections
from orchestrator.settings import Settings
from orchestrator.training.paid.calls import Purchase
from orchestrator.training.paid.estimates import Costs
from orchestrator.training.qtable.exploration import Explorer, missing
from orchestrator.training.qtable.learner import Recipe, learn, taught
from orchestrator.training.qtable.plan import Actions, Plan, Planner, estimate
from orchestrator.training.qtable.questions import Examples
from orchestrator.training.qtable.report import explored, left_out, training_estimate
from orchestrator.training.qtable.rows import Begin, Explored, RunFile
from orchestrator.training.qtable.view import describe
from policies.qtable import QTable
from posology.index.store import Index
from posology.published.training import TrainingEstimate, TrainOutput
from posology.types import Query, Retrieval

#: why a question without passages teaches nothing
_NO_PASSAGE = "the index has no passage for it"


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What is to be explored."""

    examples: Examples
    #: where the index is; ``None``: as configured
    index: str | None
    #: a question like all of them: by which model, over how many passages
    request: Request
    #: shares of the sentences that are kept whole
    shares: tuple[float, ...]
    tenant: str
    #: dollars for all of the run; ``None``: the tenant's limits alone
    cap: Decimal | None
    settings: Settings


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Prepared:
    """What is known before anything is spent."""

    plan: Plan
    actions: Actions
    begin: Begin
    estimate: TrainingEstimate
    #: whether reduced sentences leave anything: the index has an annotator
    annotated: bool


async def prepare(wanted: Wanted, models: Models, run: RunFile) -> Prepared:
    """Retrieve for all questions, and estimate what is not answered yet. Nothing is spent.

    Raises:
        PosologyError: the index cannot serve, or nobody knows what the model costs.
    """
    settings, request = wanted.settings, wanted.request
    actions = Actions(
        # the whole context is what others are graded by
        shares=tuple(sorted({*wanted.shares, 1.0})),
        compressor=make_compressor(settings),
        model=request.model,
        max_tokens=request.max_tokens,
    )
    async with (
        open_purse(settings, wanted.tenant) as purse,
        open_connections(settings, models, purse.meter) as connections,
    ):
        estimator = make_estimator(settings, connections)
        # before anything is retrieved
        estimator.check(request.model)
        index = await to_thread.run_sync(Index.open, index_place(settings, wanted.index))
        retriever = await make_retriever(settings, models, index)

        async def retrieve(query: Query) -> Retrieval:
            # nothing is spent here: vectors that are bought were bought before
            vectors = await encoded(retriever.embedder, query.text, Spend(tenant=wanted.tenant))
            return await retriever.retrieve(query, request.k, request.mode, encoded=vectors)

        planner = Planner(retrieve=retrieve, actions=actions, count=packaged_counter())
        plan = await planner(wanted.examples.good)
        todo = missing(plan, run)
        free = estimator.free(request.model)
        costs = Costs(calls=len(todo)) if free else await estimate(plan, todo, actions, estimator)
        balances = await purse.ledger.balances()
    return Prepared(
        plan=plan,
        actions=actions,
        begin=Begin(
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            model=request.model,
            k=request.k,
            mode=request.mode,
            compressor=actions.compressor.name,
            embedder=index.meta.embedder,
            index=plan.index,
            prompts=dict(plan.prompts),
        ),
        estimate=training_estimate(
            costs,
            spent=run.content.spent,
            questions=len(plan.grounds),
            answered=plan.calls - len(todo),
            free=free,
            cap=wanted.cap,
            tenant=wanted.tenant,
            balances=balances,
        ),
        annotated=index.meta.annotator is not None,
    )


async def explore(
    wanted: Wanted,
    prepared: Prepared,
    models: Models,
    run: RunFile,
    tell: Callable[[int], None],
) -> None:
    """Ask what is not answered yet, through the tenant's budget.

    Raises:
        PosologyError: what would stop every call, such as a budget that is spent. What was answered is in
            the run's file.
    """
    # what stands there may be of other questions, or of another index
    run.write(prepared.begin, *(ground.asked for ground in prepared.plan.grounds.values()))
    async with (
        open_purse(wanted.settings, wanted.tenant) as purse,
        open_connections(wanted.settings, models, purse.meter) as connections,
    ):
        explorer = Explorer(
            plan=prepared.plan,
            actions=prepared.actions,
            purchase=Purchase(
                completes=connections.complete,
                ledger=purse.ledger,
                cap=wanted.cap,
                at_once=wanted.settings.concurrency,
            ),
            run=run,
            tell=tell,
        )
        await explorer()


def bad_lines(wanted: Wanted, prepared: Prepared | None = None) -> dict[int, str]:
    """Line → why its question is not explored."""
    found = {bad.line: bad.reason for bad in wanted.examples.bad}
    if prepared is not None:
        found |= {example.line: _NO_PASSAGE for example in prepared.plan.without}
    return found


def conclude(
    answers: Explored,
    recipe: Recipe,
    *,
    shares: tuple[float, ...] | None,
    run: Path,
    out: Path,
    bad: dict[int, str],
    estimate: TrainingEstimate | None = None,
) -> tuple[TrainOutput, QTable]:
    """The table that a run teaches, and its published form.

    Args:
        answers: the run.
        recipe: how the table is made.
        shares: its actions; ``None``: all that were explored.
        run: the run's file.
        out: the table's file.
        bad: lines that were not explored.
        estimate: what was told before.

    Raises:
        InputError: there is nothing to learn from, or a share was not explored.
    """
    found = taught(answers, recipe.score)
    table = learn(found, answers.begin, recipe, shares)
    said = TrainOutput(
        estimate=estimate,
        run=str(run),
        out=str(out),
        learned=len(found.lessons),
        left_out=left_out(bad | dict(found.without)),
        failed=len(answers.failures),
        spent_usd=answers.spent,
        actions=explored(found.lessons),
        table=describe(table),
    )
    return said, table


def planned(wanted: Wanted, prepared: Prepared, answers: Explored, run: Path) -> TrainOutput:
    """The published form where nothing was asked: what it would cost."""
    return TrainOutput(
        estimate=prepared.estimate,
        run=str(run),
        out=None,
        learned=0,
        left_out=left_out(bad_lines(wanted, prepared)),
        failed=0,
        spent_usd=answers.spent,
        actions=(),
        table=None,
    )
