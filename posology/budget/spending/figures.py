"""A tenant's spending by group, from the figures of each day."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from redis.asyncio import Redis

from posology.budget.ledger.base import dollars
from posology.budget.spending.periods import Period
from posology.store import keys
from posology.store.connection import translated
from posology.types import Grouping

#: days read at once
_AT_ONCE = 31


@dataclass(frozen=True, kw_only=True, slots=True)
class Spent:
    """Totals of some attempts."""

    attempts: int = 0
    #: dollars that count against limits: costs, or bounds if the cost is unknown
    charged: Decimal = Decimal(0)
    #: part of these charged at bounds
    at_bounds: Decimal = Decimal(0)
    #: number of attempts with unknown cost
    unknown: int = 0
    #: tokens
    input: int = 0
    output: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            attempts=self.attempts + other.attempts,
            charged=self.charged + other.charged,
            at_bounds=self.at_bounds + other.at_bounds,
            unknown=self.unknown + other.unknown,
            input=self.input + other.input,
            output=self.output + other.output,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """One total of one day."""

    tenant: str
    day: str
    stage: str
    strategy: str
    #: service tier that is billed; ``unknown`` in figures that were counted without it
    tier: str
    model: str
    #: ``attempts``, ``nano``, ``bound``, ``unknown``, ``idle`` (attempts that were refused before any work), ``input`` or ``output``
    what: str
    #: attempts, nano-dollars or tokens
    n: int

    @property
    def month(self) -> str:
        """The month of its day, ``YYYY-MM``."""
        return self.day[:7]

    def of(self, by: Grouping) -> str:
        """Return the group that it belongs to."""
        return str(getattr(self, by))


async def figures(
    redis: Redis, url: str, tenant: str, days: Iterable[str]
) -> AsyncIterator[Figure]:
    """Yield the figures of some days.

    Raises:
        InvalidQuery: the name is malformed.
        StoreUnavailable: Redis is unreachable.
    """
    prefix, wanted = keys.prefix(tenant), list(days)
    for start in range(0, len(wanted), _AT_ONCE):
        some = wanted[start : start + _AT_ONCE]
        with translated(url):
            async with redis.pipeline(transaction=False) as pipe:
                for day in some:
                    pipe.hgetall(f"{prefix}money:by:{day}")
                found = await pipe.execute()
        for day, sums in zip(some, found, strict=True):
            for name, n in sums.items():
                what, stage, strategy, rest = name.split("|", 3)
                tier, model = _tier_and_model(rest)
                yield Figure(
                    tenant=tenant,
                    day=day,
                    stage=stage,
                    strategy=strategy,
                    tier=tier,
                    model=model,
                    what=what,
                    n=int(n),
                )


def _tier_and_model(text: str) -> tuple[str, str]:
    """Divide the end of a figure's name. A model's name, ``provider:…``, may contain any character but as its first part."""
    tier, bar, model = text.partition("|")
    return (tier, model) if bar and ":" not in tier else ("unknown", text)


async def spent(
    redis: Redis, url: str, tenant: str, days: Period, by: Grouping
) -> dict[str, Spent]:
    """Return a tenant's spending by group: days and months in order, other groups by descending charge.

    Raises:
        InvalidQuery: the name is malformed.
        StoreUnavailable: Redis is unreachable.
    """
    groups: dict[str, Counter[str]] = {}
    async for figure in figures(redis, url, tenant, days):
        groups.setdefault(figure.of(by), Counter())[figure.what] += figure.n
    made = {name: _spent(sums) for name, sums in groups.items()}
    if by.of_time:
        return dict(sorted(made.items()))
    return ranked(made)


def ranked(groups: Mapping[str, Spent]) -> dict[str, Spent]:
    """Return groups by descending charge."""
    return dict(sorted(groups.items(), key=lambda item: (-item[1].charged, item[0])))


def total(groups: Sequence[Spent]) -> Spent:
    """Return the sum of groups."""
    return sum(groups, Spent())


def _spent(sums: Mapping[str, int]) -> Spent:
    return Spent(
        attempts=sums["attempts"],
        charged=dollars(sums["nano"]),
        at_bounds=dollars(sums["bound"]),
        unknown=sums["unknown"],
        input=sums["input"],
        output=sums["output"],
    )
