"""Attempts as the ledger and job records hold them, JSON.

Written out and not by `asdict`, which copies every value deeply, at every call of every job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from pydantic import TypeAdapter

from posology.types import Attempt, Opening, Usage

_OPENING, _USAGE = (tuple(field.name for field in fields(kind)) for kind in (Opening, Usage))
_ATTEMPT = tuple(field.name for field in fields(Attempt))
#: what an attempt that nobody closed does not have
_UNKNOWN = dict.fromkeys(("error", "usage", "cost", "request_id"))
_attempt = TypeAdapter(Attempt)


def opened(opening: Opening) -> dict[str, Any]:
    """What is known before an attempt is sent."""
    prompt = {"name": opening.prompt.name, "digest": opening.prompt.digest}
    return {name: getattr(opening, name) for name in _OPENING} | {
        "prompt": prompt,
        "reserved": f"{opening.reserved:f}",
    }


def closing(attempt: Attempt) -> dict[str, Any]:
    """What comes to it when it has ended."""
    return {
        "outcome": attempt.outcome,
        "error": attempt.error,
        "usage": usage(attempt.usage),
        "cost": None if attempt.cost is None else f"{attempt.cost:f}",
        "latency": round(attempt.latency, 6),
        "request_id": attempt.request_id,
    }


def ended(attempt: Attempt) -> dict[str, Any]:
    """All of it."""
    prompt = {"name": attempt.prompt.name, "digest": attempt.prompt.digest}
    plain = {name: getattr(attempt, name) for name in _ATTEMPT}
    return plain | {"prompt": prompt, "reserved": f"{attempt.reserved:f}"} | closing(attempt)


def usage(found: Usage | None) -> dict[str, int] | None:
    """Tokens by bucket."""
    return None if found is None else {name: getattr(found, name) for name in _USAGE}


def attempt(entry: Mapping[str, Any]) -> Attempt:
    """The attempt that an entry of one that has ended stands for."""
    return _attempt.validate_python(
        _UNKNOWN | {name: entry[name] for name in _ATTEMPT if name in entry}
    )
