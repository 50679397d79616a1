"""A data set from end to end: what will it cost, then the conversations, then the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from anyio import to_thread

from orchestrator.budget import open_purse
from orchestrator.models import Models
from orchestrator.question.estimates.tokens import Counting, packaged_counter
from orchestrator.service import open_connections
from orchestrator.settings import Settings
from orchestrator.spending import balance_fields
from orchestrator.training.paid.calls import Purchase
from orchestrator.training.paid.estimates import Costs
from orchestrator.training.summaries.conversations import Maker, recalled
from orchestrator.training.summaries.pairs import Pair, split_of, write_pairs
from orchestrator.training.summaries.price import estimate
from orchestrator.training.summaries.rows import Begin, RunFile
from orchestrator.training.summaries.sample import Drawn, Wish, lot
from orchestrator.training.summaries.shortener import Ending, Shortened, Shortener
from posology.errors import ConfigurationError
from posology.llm.models import parse
from posology.published.money import BalanceOutput
from posology.published.training import DatasetEstimate, DatasetOutput, LeftOutPassage
from posology.text.sentences import split
from posology.types import Balance, Passage
from prompts.template import digests

PROMPTS = ("shorten", "shorten_again")


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What is to be made."""

    drawn: Drawn
    wish: Wish
    shortener: Shortener
    tenant: str
    #: dollars for all of the run; ``None``: the tenant's limits alone
    cap: Decimal | None
    settings: Settings


@dataclass(frozen=True, kw_only=True, slots=True)
class Prepared:
    """What is known before anything is spent."""

    #: that are not done yet
    todo: tuple[Passage, ...]
    estimate: DatasetEstimate


async def prepare(wanted: Wanted, models: Models, run: RunFile) -> Prepared:
    """Find out what is not done yet, and estimate it. Nothing is spent.

    Raises:
        PosologyError: nobody knows what the model costs, or it writes no summaries.
    """
    settings, shortener = wanted.settings, wanted.shortener
    if parse(shortener.model).provider == "offline":
        raise ConfigurationError(
            f"{shortener.model} quotes, and writes no summaries: name another model with --model"
        )
    done = [await recalled(shortener, one, run) for one in wanted.drawn.passages]
    todo = tuple(
        one for one, found in zip(wanted.drawn.passages, done, strict=True) if found is None
    )
    async with (
        open_purse(settings, wanted.tenant) as purse,
        open_connections(settings, models, purse.meter) as connections,
    ):
        prices = connections.prices
        prices.worst(shortener.model, input_tokens=1, output_tokens=1)
        free = prices.cost(shortener.model, None) == 0
        counting = Counting(packaged_counter(), native_schema=settings.native_schema)

        def count() -> Costs:
            return estimate(
                todo, shortener, prices=prices, bound=connections.bound, counting=counting
            )

        costs = Costs(calls=len(todo)) if free else await to_thread.run_sync(count)
        balances = await purse.ledger.balances()
    return Prepared(todo=todo, estimate=_estimate(wanted, costs, run, balances, free=free))


async def make(
    wanted: Wanted,
    prepared: Prepared,
    models: Models,
    run: RunFile,
    tell: Callable[[int], None],
) -> None:
    """Shorten what is not done yet, through the tenant's budget.

    Raises:
        PosologyError: what would stop every call, such as a budget that is spent. What was replied is in
            the run's file.
    """
    shortener = wanted.shortener
    run.write(
        Begin(
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            model=shortener.model,
            share=shortener.share,
            tolerance=shortener.tolerance,
            rounds=shortener.rounds,
            seed=wanted.wish.seed,
            prompts=digests(PROMPTS),
        )
    )
    async with (
        open_purse(wanted.settings, wanted.tenant) as purse,
        open_connections(wanted.settings, models, purse.meter) as connections,
    ):
        maker = Maker(
            shortener=shortener,
            purchase=Purchase(
                completes=connections.complete,
                ledger=purse.ledger,
                cap=wanted.cap,
                at_once=wanted.settings.concurrency,
            ),
            run=run,
            tell=tell,
        )
        await maker(prepared.todo)


async def conclude(wanted: Wanted, prepared: Prepared, run: RunFile, out: Path) -> DatasetOutput:
    """Write the data set of what fits, and say what is left out.

    Raises:
        BadFile: it cannot be written.
    """
    found: list[Shortened] = []
    left_out: list[LeftOutPassage] = []
    for passage in wanted.drawn.passages:
        one = await recalled(wanted.shortener, passage, run)
        if one is None:
            left_out.append(LeftOutPassage(id=passage.id, reason="failed", rounds=0))
        elif one.ending is Ending.FITS:
            found.append(one)
        else:
            left_out.append(
                LeftOutPassage(id=passage.id, reason=str(one.ending), rounds=one.rounds)
            )
    pairs = pairs_of(found, wanted.shortener, seed=wanted.wish.seed)
    write_pairs(pairs, out)
    return _output(wanted, prepared, run, pairs=pairs, left_out=left_out, out=str(out))


def planned(wanted: Wanted, prepared: Prepared, run: RunFile) -> DatasetOutput:
    """The published form where nothing was asked: what it would cost."""
    return _output(wanted, prepared, run, pairs=(), left_out=(), out=None)


def pairs_of(found: Sequence[Shortened], shortener: Shortener, *, seed: int) -> tuple[Pair, ...]:
    """The data set: eight of ten to train on, one to validate by and one to test by, by lot.

    Args:
        found: that fit.
        shortener: that made them.
        seed: of the lots.
    """
    # not the lots that they were drawn by, or what is drawn later would all be tested
    ordered = sorted(found, key=lambda one: lot(~seed, one.passage.id))
    return tuple(
        Pair(
            id=one.passage.id,
            split=split_of(place, len(ordered)),
            text=one.passage.text,
            summary=one.summary,
            share=shortener.share,
            rounds=one.rounds,
            model=shortener.model,
        )
        for place, one in enumerate(ordered)
    )


def _output(
    wanted: Wanted,
    prepared: Prepared,
    run: RunFile,
    *,
    pairs: Sequence[Pair],
    left_out: Sequence[LeftOutPassage],
    out: str | None,
) -> DatasetOutput:
    splits = [pair.split for pair in pairs]
    return DatasetOutput(
        estimate=prepared.estimate,
        run=str(run.path),
        out=out,
        share=wanted.shortener.share,
        tolerance=wanted.shortener.tolerance,
        train=splits.count("train"),
        validation=splits.count("validation"),
        test=splits.count("test"),
        mean_share=_mean([len(p.summary.split()) / len(p.text.split()) for p in pairs]),
        mean_rounds=_mean([pair.rounds for pair in pairs]),
        first_sentence=_mean([_begins(pair) for pair in pairs]),
        left_out=tuple(left_out),
        spent_usd=run.content.spent,
    )


def _estimate(
    wanted: Wanted, costs: Costs, run: RunFile, balances: Sequence[Balance], *, free: bool
) -> DatasetEstimate:
    return DatasetEstimate(
        passages=costs.calls,
        done=len(wanted.drawn.passages) - costs.calls,
        free=free,
        input_tokens=costs.input,
        output_tokens=costs.output,
        low_usd=costs.dollars.low,
        expected_usd=costs.dollars.expected,
        worst_usd=costs.dollars.worst,
        spent_usd=run.content.spent,
        cap_usd=wanted.cap,
        balances=tuple(BalanceOutput(**balance_fields(wanted.tenant, one)) for one in balances),
    )


def _begins(pair: Pair) -> bool:
    """Whether a summary begins with its passage's first sentence."""
    first = split(pair.text)[0].of(pair.text)
    return " ".join(pair.summary.split()).startswith(" ".join(first.split()))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
