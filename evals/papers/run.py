"""A run of a suite: price, cap, items, rows. An interrupted run resumes and repeats nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal

from evals.papers.readers import Called, Reader, Simulated, is_simulated, named
from evals.papers.report import report
from evals.papers.rows import REPORT, Begun, Folder, Result, check, digest_of, key_of
from evals.papers.suite import Given, Item, Suite, Values
from orchestrator.cli.purchases import progress, say
from orchestrator.evaluation.simulation import profiles
from orchestrator.models import Models
from orchestrator.question.estimates.costs import Dollars, Estimator, make_estimator
from orchestrator.rendering.words import money
from orchestrator.settings import load_settings
from orchestrator.training.paid.calls import buy_all
from orchestrator.training.paid.run import Terms
from posology.errors import InputError
from posology.version import __version__


@dataclass(frozen=True, kw_only=True, slots=True)
class Payment:
    """How readers with a price are paid."""

    #: dollars for all calls of the folder, interrupted runs included; ``None``: required if a reader costs anything
    cap: Decimal | None = None
    #: whether only the price is printed
    dry: bool = False
    #: questions in work at the same time
    at_once: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """What a run came to."""

    #: the report, in Markdown; empty after a dry run
    text: str = ""
    #: items without a row; the same command makes them
    missing: int = 0


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Todo:
    """An item that has no row yet, with the reader that answers it; ``None``: the suite measures it alone."""

    item: Item
    key: str
    reader: Reader | None


async def run(
    suite: Suite,
    given: Given,
    readers: Sequence[str],
    folder: Folder,
    payment: Payment = Payment(),
) -> Done:
    """Measure every item that has no row yet, and write the report.

    Args:
        suite: the experiment.
        given: data, questions and seed.
        readers: profiles, ``simulated``, ``offline``, or models; empty: those of the suite.
        folder: keeps rows and calls.
        payment: for models with a price.

    Raises:
        InputError: data is missing, the folder has other rows, or a maximum cost is missing.
        PosologyError: a call failed for a reason that concerns all calls. Rows so far are kept.
    """
    begun = Begun(
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        version=__version__,
        suite=suite.name,
        seed=given.seed,
        data=digest_of(given.data, suite.files),
    )
    check(folder, begun)
    items = [item for item in suite.items(given) if given.arms in item.arm]
    if not items:
        raise InputError(f"{suite.name}: no question, or no arm that contains {given.arms!r}")
    async with _opened(suite, named(readers or suite.readers), folder, payment, given) as found:
        pairs = [
            _Todo(item=item, key=key_of(suite, item, _identity(one)), reader=one)
            for item in items
            for one in (found or (None,))
        ]
        todo = [one for one in pairs if one.key not in folder.rows.content.results]
        if not await _priced(suite, todo, folder, payment):
            return Done()
        if folder.rows.content.begun is None:
            folder.rows.write(begun)
        try:
            with progress(len(todo), "rows") as tick:
                await _measure(suite, todo, folder, payment.at_once, tick)
        finally:
            rows = folder.rows.content.results
            missing = sum(one.key not in rows for one in pairs)
            text = report(
                suite,
                found,
                [rows[one.key] for one in pairs if one.key in rows],
                begun=folder.rows.content.begun or begun,
                missing=missing,
            )
            # of an interrupted run, too
            (folder.path / REPORT).write_text(text, encoding="utf-8")
    return Done(text=text, missing=missing)


@asynccontextmanager
async def _opened(
    suite: Suite, names: Sequence[str], folder: Folder, payment: Payment, given: Given
) -> AsyncIterator[list[Reader]]:
    """Yield the readers; none for a suite that needs none."""
    if not suite.reads:
        yield []
        return
    if all(map(is_simulated, names)):
        yield [Simulated(profiles()[name], given.seed) for name in names]
        return
    settings = load_settings()
    models = Models(settings.embedder, settings.embedding)
    terms = Terms(tenant=settings.tenant, cap=payment.cap, settings=settings, models=models)
    cap = payment.cap
    if cap is not None:
        cap = max(Decimal(0), cap - folder.calls.content.spent)
    async with terms.open() as (budget, connections):
        yield [
            Simulated(profiles()[name], given.seed)
            if is_simulated(name)
            else Called(name, budget, connections, folder, cap)
            for name in names
        ]


async def _priced(suite: Suite, todo: Sequence[_Todo], folder: Folder, payment: Payment) -> bool:
    """Print what the rows that are missing will cost; return whether they are to be made.

    Raises:
        InputError: they cost something, and no maximum was given.
        UnpricedModel: a model has no price.
    """
    total, calls = Dollars(), 0
    estimators: dict[str, Estimator] = {}
    for one in todo:
        if not isinstance(one.reader, Called):
            continue
        if one.reader.name not in estimators:
            estimator = make_estimator(load_settings(), one.reader.connections)
            estimator.check(one.reader.name)
            estimators[one.reader.name] = estimator
        estimator = estimators[one.reader.name]
        if estimator.free(one.reader.name):
            continue
        asked = suite.asked(one.item)
        priced = await estimator(
            replace(asked.task, model=one.reader.name),
            asked.dose,
            partition_size=asked.partition_size,
        )
        total, calls = total + priced.dollars, calls + priced.calls
    spent = folder.calls.content.spent
    say([f"{suite.name}: {len(todo):,} rows to make"])
    if calls:
        cost = f"Expected cost {money(total.expected)}, maximum {money(total.worst)}"
        say([f"At most {calls:,} calls. {cost}; spent before: {money(spent)}"])
        if payment.cap is None and not payment.dry:
            raise InputError(
                f"the run is not free: say with --max-cost how many dollars it may cost. {cost}."
            )
    return not payment.dry


async def _measure(
    suite: Suite, todo: Sequence[_Todo], folder: Folder, at_once: int, tick: Callable[[int], None]
) -> None:
    async def work(one: _Todo) -> None:
        values = await _values(suite, one)
        folder.rows.write(
            Result(
                key=one.key,
                reader="" if one.reader is None else one.reader.name,
                question=one.item.question,
                arm=one.item.arm,
                values=dict(values),
            ),
            sync=False,  # a paid reply is on disk by itself
        )

    await buy_all(work, todo, at_once=at_once, tick=tick)


def _identity(reader: Reader | None) -> tuple[str, ...]:
    return () if reader is None else reader.identity


async def _values(suite: Suite, one: _Todo) -> Values:
    if one.reader is None:
        return suite.measured(one.item)
    asked = suite.asked(one.item)
    answered = await one.reader.ask(asked, one.key)
    return {**suite.graded(one.item, asked, answered), **answered.effort}
