"""Fields of a provider's reply, as far as they can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: maximum plausible token count; a larger one would exhaust a budget by mistake
MAX_COUNT = 10**9


def count(value: object) -> int | None:
    """Return a token count; ``None``: the value is not a count, or implausibly large."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT:
        return value
    return None


def section(body: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the object under a key; empty: there is none."""
    value = body.get(key)
    return value if isinstance(value, dict) else {}
