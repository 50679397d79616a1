"""A run: its price, and its questions through the pipeline and the tenant's budget. An interrupted run resumes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal

from anyio import to_thread

from orchestrator.budget import Budget
from orchestrator.connections import Connections
from orchestrator.evaluation.folder import Begun, Folder
from orchestrator.evaluation.forms import EvalEstimate, EvalOutput, Outcome
from orchestrator.evaluation.grading import answered_row, failed_row, regraded
from orchestrator.evaluation.journal import KeptCalls
from orchestrator.evaluation.measures import Other, cells, differences
from orchestrator.evaluation.plan import Item, Plan
from orchestrator.evaluation.simulated import Simulated, is_simulated
from orchestrator.question.embedding import Spend
from orchestrator.question.estimates.costs import Dollars, Estimate, make_estimator
from orchestrator.question.estimates.tokens import packaged_counter
from orchestrator.question.report import ask_output
from orchestrator.question.request import Request
from orchestrator.service import Service, make_service
from orchestrator.spending import balance_outputs
from orchestrator.training.paid.calls import REFUSED, buy_all
from orchestrator.training.paid.run import Terms
from posology.budget.ledger.journal import LedgerJournal
from posology.concurrency import map_concurrently
from posology.errors import InputError
from posology.llm.models.families import tier_of
from posology.store.keys import new_id
from posology.version import __version__

#: questions whose cost is estimated at the same time
_AT_ONCE = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Open:
    """Index, budget and connections of a run."""

    service: Service
    budget: Budget
    connections: Connections
    #: version of the index that all rows are from
    begun: Begun
    #: by name of a simulated model: the service in which it answers
    simulated: Mapping[str, Service] = field(default_factory=dict)

    def asked(self, item: Item) -> Service:
        """Return the service that answers a question."""
        return self.simulated.get(item.way.model, self.service)


@asynccontextmanager
async def opened(
    terms: Terms, index: str | None, folder: Folder, plan: Plan, version: int | None = None
) -> AsyncIterator[Open]:
    """Open index, budget and connections; a resumed run reads the version of the index that it began with.

    Args:
        terms: who pays.
        index: place of the index; ``None``: as configured.
        folder: of the run.
        plan: the questions, whose gold simulated models answer from.
        version: number of the index's version to begin with; ``None``: the newest.

    Raises:
        InputError: the folder's rows are from another index, or a question has no gold for a simulated model.
        VersionGone: the index no longer holds that version.
        PosologyError: as :func:`~orchestrator.service.make_service`.
    """
    async with terms.open() as (budget, connections):
        service = await make_service(terms.settings, terms.models, connections, index)
        begun = await to_thread.run_sync(_begun, service, folder, version)
        simulated = {
            model: await make_service(
                terms.settings, terms.models, _standing_in(model, plan, terms, budget), index
            )
            for model in dict.fromkeys(way.model for way in plan.ways)
            if is_simulated(model)
        }
        yield Open(
            service=service,
            budget=budget,
            connections=connections,
            begun=begun,
            simulated=simulated,
        )


def _standing_in(model: str, plan: Plan, terms: Terms, budget: Budget) -> Connections:
    """Return connections in which a simulated model takes the offline reader's place; they hold nothing to close."""
    cases = (case for suite in plan.suites for case in suite.cases)
    simulated = Simulated(model, cases, packaged_counter())
    return Connections(terms.settings, offline=lambda: simulated, meter=budget.meter)


def _begun(service: Service, folder: Folder, version: int | None) -> Begun:
    index, begun = service.index, folder.calls.content.begun
    if begun is None:
        view = index.view_at(version)
        return Begun(
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            version=__version__,
            index=view.version,
            index_version=view.number,
            index_created=index.meta.created,
        )
    if begun.index_created != index.meta.created or version not in (None, begun.index_version):
        raise InputError(
            f"the rows in {folder.path} are from {begun.index} of an index made {begun.index_created}: pass that index, or "
            "another folder with --out"
        )
    index.view_at(begun.index_version)
    return begun


def left(plan: Plan, folder: Folder) -> list[Item]:
    """Return the questions without a row; failed ones are asked again."""
    rows = folder.rows.content
    return [
        item
        for item in plan.items
        if item.key not in rows or rows[item.key].outcome is Outcome.FAILED
    ]


async def estimate(plan: Plan, folder: Folder, terms: Terms, resources: Open) -> EvalEstimate:
    """Estimate what is left to ask, by the prices and bounds of reservations. Nothing is spent.

    Raises:
        UnpricedModel: a model has no price.
    """
    estimator = make_estimator(terms.settings, resources.connections, resources.service.compressors)
    todo = left(plan, folder)
    for item in todo:
        estimator.check(*item.request.models, tier=tier_of(item.request.tier))

    async def price(item: Item) -> Estimate | None:
        """Return the estimate of a question; ``None``: neither its model nor its vector costs anything."""
        request, pipeline = _pinned(item, resources), resources.service.pipeline
        before = await pipeline.unpaid(request.query, terms.tenant)
        if estimator.free(*request.models) and not before:
            return None
        # without a stored vector of a paid embedder, passages are found by words
        prepared = await pipeline.prepare(request, spend=Spend(tenant=terms.tenant, blind=True))
        dose = prepared.decision.dose
        one = await estimator(
            await pipeline.foreseen(request, prepared.retrieval, dose),
            dose,
            partition_size=request.partition_size,
        )
        return await to_thread.run_sync(estimator.vectors, one, before) if before else one

    priced = await map_concurrently(price, todo, limit=_AT_ONCE)
    prices = [one for one in priced if one is not None]
    dollars = sum((one.dollars for one in prices), Dollars())
    return EvalEstimate(
        questions=len(todo),
        answered=len(plan.items) - len(todo),
        calls=sum(one.calls for one in prices),
        free=not prices,
        input_tokens=sum(one.input for one in prices),
        output_tokens=sum(one.output for one in prices),
        low_usd=dollars.low,
        expected_usd=dollars.expected,
        worst_usd=dollars.worst,
        spent_usd=folder.calls.content.spent,
        cap_usd=terms.cap,
        balances=balance_outputs(terms.tenant, await resources.budget.ledger.balances()),
    )


async def ask_all(
    plan: Plan,
    folder: Folder,
    terms: Terms,
    resources: Open,
    *,
    at_once: int,
    tick: Callable[[int], None] = lambda _: None,
) -> None:
    """Ask what is left. Every attempt and every row is on disk before the next step.

    Policies decide without regard to the cap and the tenant's limits, so that these change no measure: a call that they do not
    pay for ends the run.

    Args:
        plan: the questions.
        folder: keeps calls and rows.
        terms: who pays, and the maximum cost of the folder's calls.
        resources: index, budget and connections.
        at_once: questions in work at the same time.
        tick: called with 1 for each question that has ended.

    Raises:
        PosologyError: an error that concerns all questions, such as a spent budget. Questions in progress have ended.
    """
    if folder.calls.content.begun is None:
        folder.calls.write(resources.begun)
    _regrade(plan, folder)
    cap = terms.cap
    if cap is not None:
        cap = max(Decimal(0), cap - folder.calls.content.spent)
    run = new_id("run")

    async def ask(item: Item) -> None:
        kept = KeptCalls(folder.calls, item.key)
        journal = LedgerJournal(resources.budget.ledger, kept, cap=cap, run=run)
        try:
            report = await resources.asked(item).ask(
                _pinned(item, resources), kept.account, journal, recall=kept.recall
            )
        except REFUSED as error:
            folder.rows.write(failed_row(item, error, kept.account))
            raise
        folder.rows.write(
            answered_row(item, ask_output(report), kept.account, replayed=kept.replayed)
        )

    await buy_all(ask, left(plan, folder), at_once=at_once, tick=tick)


def _regrade(plan: Plan, folder: Folder) -> None:
    """Write the rows again whose known answer was corrected since."""
    rows = folder.rows.content
    old = [(item, rows[item.key]) for item in plan.items if item.key in rows]
    new = [(row, regraded(item.case.gold, row)) for item, row in old]
    changed = [now for row, now in new if now != row]
    if changed:
        folder.rows.write(*changed)


def _pinned(item: Item, found: Open) -> Request:
    return replace(item.request, index_version=found.begun.index_version)


def output(
    plan: Plan, folder: Folder, priced: EvalEstimate, index: str, other: Other | None
) -> EvalOutput:
    """Return the measures of the rows so far."""
    rows = folder.rows.content
    return EvalOutput(
        folder=str(folder.path),
        index=index,
        estimate=priced,
        spent_usd=folder.calls.content.spent,
        skipped={
            f"{suite.name}, {reason}": count
            for suite in plan.suites
            for reason, count in suite.skipped.items()
        },
        cells=cells(plan, rows),
        differences=tuple(differences(plan, rows, other)),
    )
