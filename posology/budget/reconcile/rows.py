"""Their side: the rows of a provider's export, in any format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from posology.budget.reconcile.measures import Kind, Measure

#: tokens and requests are whole, dollars are not
Number = int | Decimal


def size(number: Number) -> Number:
    """Return the absolute value."""
    return number if number >= 0 else -number


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """Usage or cost within one UTC day."""

    provider: str
    #: ``USAGE`` or ``COST``
    kind: Kind
    #: POSIX seconds
    start: float
    #: POSIX seconds, exclusive
    end: float
    #: as the provider writes it, or a billed item that is not a model; ``None``: all together
    model: str | None
    #: empty: no usage
    figures: Mapping[Measure, Number]
    #: dollars by which the amount may have been rounded
    rounding: Decimal = Decimal(0)


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestRow:
    """One request, as the provider or a gateway reports it."""

    path: str
    #: line, from 1
    line: int
    #: the provider's id
    id: str
    #: our id, if the export has it
    client_id: str | None
    #: POSIX seconds; ``None``: unknown
    at: float | None
    model: str | None
    figures: Mapping[Measure, Number]
    rounding: Decimal = Decimal(0)


@dataclass(frozen=True, kw_only=True, slots=True)
class File:
    """A file of an export."""

    path: str
    #: e.g. ``OpenAI usage, JSON``
    format: str
    provider: str
    kind: Kind
    #: number of rows with figures
    rows: int = field(default=0)
