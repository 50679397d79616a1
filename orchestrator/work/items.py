"""Items of leased work, their kinds and limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from posology.store import keys

#: state of a claim: its lease was extended, its item is to end, or another claim holds
Standing = Literal["held", "cancelling", "lost"]
#: fields of an item's hash, in the order in which they are read
FIELDS = ("state", "record", "runs", "cancelled", "error", "cause")
#: states of items that have not ended
WAITING, HELD = "waiting", "held"


class LeaseLost(Exception):
    """Another process holds the item, or it has ended: this one may not change it any more."""


class NoRoom(Exception):
    """A limit of the group leaves no room for another item.

    Args:
        limit: ``items`` that have not ended, or ``bytes`` of all.
        used: number of them now.
    """

    def __init__(self, limit: str, used: int) -> None:
        super().__init__(limit, used)
        self.limit = limit
        self.used = used


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A kind of items. A group of them, such as those of a tenant, shares keys, an order and limits."""

    #: returns the prefix of a group's keys, which have one hash tag
    prefix: Callable[[str], str]
    #: sorted set of the groups that may have items, by the time of the last offer in milliseconds
    groups: str
    #: sorted set of the processes that work on them, by the time of the last heartbeat in milliseconds
    processes: str
    #: seconds without an offer after which a group expires; 0: never
    expiry: int = 0


def of_tenants(name: str) -> Kind:
    """Return a kind whose groups are tenants.

    Args:
        name: part of the keys, such as ``ingest``.
    """
    return Kind(
        prefix=lambda tenant: f"{keys.prefix(tenant)}{name}:",
        groups=f"posology:tenants:{name}",
        processes=keys.READERS,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Limits of a group, which an offer checks; 0: none."""

    #: items that have not ended
    items: int = 0
    #: bytes of all items, their rows included
    bytes: int = 0


NO_LIMITS = Limits()


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """An item as it is now."""

    group: str
    name: str
    #: waiting, held, or the state in which it ended
    state: str
    #: text of its owner, such as JSON
    record: str
    #: claims that count
    runs: int
    #: whether its end was asked for
    cancelled: bool
    #: why it failed, and the cause that was counted; ``None``: it has not failed by the scripts
    error: str | None
    cause: str | None

    @classmethod
    def of(cls, group: str, name: str, fields: Sequence[str]) -> Self:
        """Return an item by its :data:`FIELDS` in Redis."""
        state, record, runs, cancelled, error, cause = fields
        return cls(
            group=group, name=name, state=state, record=record, runs=int(runs), cancelled=cancelled == "1", error=error,
            cause=cause,
        )  # fmt: skip

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.state not in (WAITING, HELD)


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """A claimed item, until its lease ends and another process claims it."""

    group: str
    name: str
    #: unique to the claim: a change by an earlier one is refused
    token: str
    record: str
    #: claims that count, this one included
    runs: int
    #: whether its end was asked for
    cancelled: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Sweeping:
    """Rules of a sweep."""

    #: seconds of a lease
    lease: float
    #: deaths of holders after which an item has failed; 0: no limit
    deaths: int = 0
    #: error of such an item
    why: str = ""
    #: seconds after which a message to the broker is considered lost; 0: never
    unclaimed: float = 0.0
    #: seconds after which ended items are dropped; ``None``: never
    retention: float | None = None
    #: maximum ended items of a group; 0: no limit
    most: int = 0


def counts_of(totals: Mapping[str, str]) -> dict[str, int]:
    """Return the counts among a group's totals."""
    return {name: int(value) for name, value in totals.items() if name not in ("place", "swept")}
