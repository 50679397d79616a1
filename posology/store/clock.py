"""Times as they stand in Redis."""

from __future__ import annotations

from datetime import UTC, datetime


def at(milliseconds: str | float) -> datetime:
    """The time of a number of milliseconds since 1970, UTC."""
    return datetime.fromtimestamp(float(milliseconds) / 1000, UTC)
