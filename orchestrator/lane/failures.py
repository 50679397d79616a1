"""Errors of a provider's batch as they are kept for the unit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from posology import errors
from posology.errors import ProviderError
from posology.types import Usage


def reason(error: ProviderError) -> str:
    """Return an error as it is kept for the unit, JSON."""
    kept = {name: getattr(error, name) for name in ("provider", "model", "status", "request_id")}
    return json.dumps({"type": type(error).__name__, "message": error.message, **kept})


def failure(told: Mapping[str, Any]) -> ProviderError:
    """Return the error that :func:`reason` kept. The attempt is settled already, so its usage is of no account."""
    fields = dict(told)
    kind, message = getattr(errors, fields.pop("type"), ProviderError), fields.pop("message")
    assert issubclass(kind, ProviderError)
    return kind(message, **fields, usage=Usage())
