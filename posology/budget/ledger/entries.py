"""Attempts as JSON, for the ledger and the records of jobs.

It does not use `asdict`, which copies every value deeply, at every call of every job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from pydantic import TypeAdapter

from posology.types import Attempt, Opening, Usage

_OPENING, _USAGE = (tuple(field.name for field in fields(kind)) for kind in (Opening, Usage))
_ATTEMPT = tuple(field.name for field in fields(Attempt))
#: fields that an open attempt lacks
_UNKNOWN = dict.fromkeys(("error", "usage", "cost", "request_id", "served"))
_attempt = TypeAdapter(Attempt)


def opened(opening: Opening) -> dict[str, Any]:
    """Return the fields of an attempt before it is sent."""
    prompt = {"name": opening.prompt.name, "digest": opening.prompt.digest}
    return {name: getattr(opening, name) for name in _OPENING} | {
        "prompt": prompt,
        "reserved": f"{opening.reserved:f}",
    }


def closing(attempt: Attempt) -> dict[str, Any]:
    """Return the fields that its end adds."""
    return {
        "outcome": attempt.outcome,
        "error": attempt.error,
        "usage": usage(attempt.usage),
        "cost": None if attempt.cost is None else f"{attempt.cost:f}",
        "latency": round(attempt.latency, 6),
        "request_id": attempt.request_id,
        "served": attempt.served,
    }


def ended(attempt: Attempt) -> dict[str, Any]:
    """Return all fields of an attempt that has ended."""
    prompt = {"name": attempt.prompt.name, "digest": attempt.prompt.digest}
    plain = {name: getattr(attempt, name) for name in _ATTEMPT}
    return plain | {"prompt": prompt, "reserved": f"{attempt.reserved:f}"} | closing(attempt)


def usage(found: Usage | None) -> dict[str, int] | None:
    """Return tokens by bucket."""
    return None if found is None else {name: getattr(found, name) for name in _USAGE}


def attempt(entry: Mapping[str, Any]) -> Attempt:
    """Return the attempt of an entry that has ended."""
    return _attempt.validate_python(
        _UNKNOWN | {name: entry[name] for name in _ATTEMPT if name in entry}
    )
