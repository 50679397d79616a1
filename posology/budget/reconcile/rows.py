"""Their side: what an export of a provider says, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from posology.budget.reconcile.measures import Kind, Measure

#: tokens and requests are whole, dollars are not
Number = int | Decimal


def size(number: Number) -> Number:
    """How large it is, whatever its sign."""
    return number if number >= 0 else -number


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """Usage or cost of a period within one UTC day."""

    provider: str
    #: ``USAGE`` or ``COST``
    kind: Kind
    #: POSIX seconds
    start: float
    #: POSIX seconds, exclusive
    end: float
    #: as the provider writes it, or what was paid for that is no model; ``None``: all of them together
    model: str | None
    #: none: nothing was used in that time
    figures: Mapping[Measure, Number]
    #: dollars by which the amount may have been rounded
    rounding: Decimal = Decimal(0)


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestRow:
    """A request in the account of the provider or of a gateway."""

    path: str
    #: counted from 1
    line: int
    #: the provider's id
    id: str
    #: ours, where the export has kept it
    client_id: str | None
    #: POSIX seconds, ``None``: it does not say
    at: float | None
    model: str | None
    figures: Mapping[Measure, Number]
    rounding: Decimal = Decimal(0)


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """A file that was read."""

    path: str
    #: such as ``OpenAI usage, JSON``
    format: str
    provider: str
    kind: Kind
    #: rows with figures
    rows: int = field(default=0)
