"""Fields of a provider's reply, as far as they can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posology.types import Usage

#: maximum plausible token count; a larger one would exhaust a budget by mistake
MAX_COUNT = 10**9
#: maximum fields of a body that a message names
_SHOWN = 12


def count(value: object) -> int | None:
    """Return a token count; ``None``: the value is not a count, or implausibly large."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT:
        return value
    return None


def section(body: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the object under a key; empty: there is none."""
    value = body.get(key)
    return value if isinstance(value, dict) else {}


def believed(usage: Usage, *, wrote: bool = False) -> Usage | None:
    """Return a usage that can be true; ``None``: it is unknown, since no prompt has 0 tokens, and no text has.

    Servers report 0 for a prompt that they have cached, and gateways for what they do not count.

    Args:
        usage: as the reply states it.
        wrote: whether the reply has a text.
    """
    if usage.total_input == 0 or (wrote and usage.total_output == 0):
        return None
    return usage


def counts(body: Mapping[str, Any]) -> bool:
    """Return whether the usage of a failed request states anything but zeros."""
    return _nonzero(body.get("usage"))


def _nonzero(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(map(_nonzero, value.values()))
    if isinstance(value, str):
        return value.replace(".", "", 1).isdecimal() and float(value) != 0
    return isinstance(value, int | float) and not isinstance(value, bool) and value != 0


def fields_of(body: Mapping[str, Any]) -> str:
    """Return the names of a body's fields, for a message; those without a value are marked."""
    names = [
        name if body[name] or body[name] == 0 else f"{name} (empty)" for name in map(str, body)
    ]
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "") or "none"
