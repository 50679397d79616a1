"""How the newest attempts at each model ended, from the ends of some tenants' ledgers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from redis.asyncio import Redis

from posology.budget.books.reader import Entry
from posology.budget.books.rows import AttemptRow, closed
from posology.store import keys
from posology.store.connection import translated
from posology.types import Outcome

#: kinds of entries that end an attempt which was sent
_ENDS = ("settle", "lose", "correct")
#: outcomes that a provider, or the way to it, is to blame for
_BAD = (Outcome.FAILED, Outcome.UNUSABLE, Outcome.LOST)
_RELEASED = "released"


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelEnds:
    """How some attempts at a model ended."""

    #: ``provider:name``
    model: str
    #: attempts by outcome
    outcomes: Mapping[Outcome, int]
    #: attempts by class of their error, most first
    errors: Mapping[str, int]
    #: median duration of a successful attempt, seconds; ``None``: none succeeded
    seconds: float | None

    @property
    def attempts(self) -> int:
        """Number of attempts."""
        return sum(self.outcomes.values())

    @property
    def bad(self) -> float:
        """Share of the attempts that failed, were unusable or lost, 0 to 1."""
        return sum(self.outcomes.get(one, 0) for one in _BAD) / self.attempts


@dataclass(kw_only=True, slots=True)
class _Sums:
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def add(self, row: AttemptRow, outcome: Outcome) -> None:
        self.outcomes[outcome] += 1
        if row.error is not None:
            self.errors[row.error] += 1
        if outcome is Outcome.OK and row.latency is not None:
            self.seconds.append(row.latency)


async def recent(
    redis: Redis, url: str, tenants: Sequence[str], *, each: int
) -> tuple[ModelEnds, ...]:
    """Return how the newest attempts ended, the model with most attempts first.

    Args:
        redis: the connection.
        url: for messages.
        tenants: names of the tenants whose ledgers are read.
        each: entries to read from the end of each ledger; an attempt has two or more.

    Raises:
        InvalidQuery: a name is malformed.
        StoreUnavailable: Redis is unreachable.
    """
    with translated(url):
        async with redis.pipeline(transaction=False) as pipe:
            for tenant in tenants:
                pipe.xrevrange(f"{keys.prefix(tenant)}ledger", "+", "-", each)
            found = await pipe.execute()
    sums: dict[str, _Sums] = {}
    for tenant, entries in zip(tenants, found, strict=True):
        seen = set[str]()
        # newest first: a correction comes before the loss that it corrects
        for place, fields in entries:
            entry = Entry(place=place, fields=fields)
            if entry.kind not in _ENDS or entry.attempt in seen:
                continue
            seen.add(entry.attempt)
            if fields["outcome"] == _RELEASED:
                continue
            row = closed(entry, tenant)
            sums.setdefault(row.model, _Sums()).add(row, Outcome(fields["outcome"]))
    made = (_ends(model, one) for model, one in sums.items())
    return tuple(sorted(made, key=lambda one: (-one.attempts, one.model)))


def _ends(model: str, found: _Sums) -> ModelEnds:
    return ModelEnds(
        model=model,
        outcomes=found.outcomes,
        errors=dict(found.errors.most_common()),
        seconds=median(found.seconds) if found.seconds else None,
    )
