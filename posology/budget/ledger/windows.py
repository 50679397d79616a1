"""Days and months of budgets, UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

from posology.types import Scope

#: scopes of a tenant's budgets
WINDOWS = (Scope.DAY, Scope.MONTH, Scope.TOTAL)


def day_of(at: datetime) -> str:
    """Return the day of a time, e.g. ``2026-01-15``."""
    return f"{at.astimezone(UTC):%Y-%m-%d}"


def midnight(day: date) -> datetime:
    """Return the beginning of a day."""
    return datetime.combine(day, time(), UTC)


def resets(scope: Scope | str, at: datetime) -> datetime | None:
    """Return the end of the window that contains a time; ``None``: it has none."""
    midnight = at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    match scope:
        case Scope.DAY:
            return midnight + timedelta(days=1)
        case Scope.MONTH:
            return (midnight.replace(day=1) + timedelta(days=32)).replace(day=1)
        case _:
            return None


def window(scope: Scope, day: str) -> str:
    """Return the name of a scope's counters, for reservations of a day."""
    match scope:
        case Scope.DAY:
            return f"day:{day}"
        case Scope.MONTH:
            return f"month:{day[:7]}"
        case _:
            return str(scope)
