"""What a tenant spent, by what: from the figures of each day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from redis.asyncio import Redis

from posology.budget.ledger import dollars
from posology.budget.periods import Grouping, Period
from posology.store import keys
from posology.store.connection import translated

#: days whose figures are asked for at once
_AT_ONCE = 31


@dataclass(frozen=True, kw_only=True, slots=True)
class Spent:
    """What some attempts came to."""

    attempts: int = 0
    #: dollars that count against limits: costs, and bounds where nobody knows the cost
    charged: Decimal = Decimal(0)
    #: of these, dollars at bounds
    at_bounds: Decimal = Decimal(0)
    #: attempts of unknown cost
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


async def spent(
    redis: Redis, url: str, tenant: str, days: Period, by: Grouping
) -> dict[str, Spent]:
    """What a tenant spent in each group, days in their order and the others with the dearest first.

    Raises:
        InvalidQuery: no tenant can have that name.
        StoreUnavailable: Redis is out of reach.
    """
    groups: dict[str, Counter[str]] = {}
    prefix, wanted = keys.prefix(tenant), list(days)
    for start in range(0, len(wanted), _AT_ONCE):
        some = wanted[start : start + _AT_ONCE]
        with translated(url):
            async with redis.pipeline(transaction=False) as pipe:
                for day in some:
                    pipe.hgetall(f"{prefix}money:by:{day}")
                found = await pipe.execute()
        for day, figures in zip(some, found, strict=True):
            _add(groups, figures, by, {Grouping.DAY: day, Grouping.TENANT: tenant})
    made = {name: _spent(figures) for name, figures in groups.items()}
    if by is Grouping.DAY:
        return dict(sorted(made.items()))
    return ranked(made)


def ranked(groups: Mapping[str, Spent]) -> dict[str, Spent]:
    """Groups with the dearest first."""
    return dict(sorted(groups.items(), key=lambda item: (-item[1].charged, item[0])))


def total(groups: Sequence[Spent]) -> Spent:
    """All of them."""
    return sum(groups, Spent())


def _add(
    groups: dict[str, Counter[str]],
    figures: Mapping[str, str],
    by: Grouping,
    fixed: Mapping[Grouping, str],
) -> None:
    for name, value in figures.items():
        # a model's name is whatever a caller wrote
        what, stage, strategy, model = name.split("|", 3)
        told = {Grouping.STAGE: stage, Grouping.STRATEGY: strategy, Grouping.MODEL: model, **fixed}
        groups.setdefault(told[by], Counter())[what] += int(value)


def _spent(figures: Mapping[str, int]) -> Spent:
    return Spent(
        attempts=figures["attempts"],
        charged=dollars(figures["nano"]),
        at_bounds=dollars(figures["bound"]),
        unknown=figures["unknown"],
        input=figures["input"],
        output=figures["output"],
    )
