"""Days and months of budgets, UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

from posology.types import Scope

#: the scopes of a tenant's money
WINDOWS = (Scope.DAY, Scope.MONTH, Scope.TOTAL)


def day_of(at: datetime) -> str:
    """The day of a time, e.g. ``2026-01-15``."""
    return f"{at.astimezone(UTC):%Y-%m-%d}"


def month_of(at: datetime) -> str:
    """The month of a time, e.g. ``2026-01``."""
    return f"{at.astimezone(UTC):%Y-%m}"


def midnight(day: date) -> datetime:
    """When a day begins."""
    return datetime.combine(day, time(), UTC)


def resets(scope: Scope | str, at: datetime) -> datetime | None:
    """When the window that holds a time is over; ``None``: it never is."""
    midnight = at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    match scope:
        case Scope.DAY:
            return midnight + timedelta(days=1)
        case Scope.MONTH:
            return (midnight.replace(day=1) + timedelta(days=32)).replace(day=1)
        case _:
            return None


def window(scope: Scope, day: str) -> str:
    """The name under which the counters of a scope stand, for what was reserved on a day."""
    match scope:
        case Scope.DAY:
            return f"day:{day}"
        case Scope.MONTH:
            return f"month:{day[:7]}"
        case _:
            return str(scope)
