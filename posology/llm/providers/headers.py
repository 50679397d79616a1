"""Limits in a response's headers: the wait that they ask for, and the remaining allowance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime

from posology.llm.providers.places import Allowance

#: headers with the requests, and with the tokens, that are still allowed: OpenAI's, and Anthropic's
_REQUESTS = ("x-ratelimit-remaining-requests", "anthropic-ratelimit-requests-remaining")
_TOKENS = ("x-ratelimit-remaining-tokens", "anthropic-ratelimit-tokens-remaining")


def retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """Return the seconds that the provider asks to wait.

    ``retry-after-ms`` is finer and takes precedence; ``retry-after`` is seconds or an HTTP date
    (RFC 9110, section 10.2.3).

    Args:
        headers: with case-insensitive keys, or lower-case ones.
        now: POSIX seconds, to compare a date with.

    Returns:
        ``None``: no header can be read.
    """
    for header, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(header)
        if value is None:
            continue
        seconds = _number(value)
        if seconds is not None:
            return seconds * unit
    return _until(headers.get("retry-after"), now=now)


def allowance(headers: Mapping[str, str]) -> Allowance | None:
    """Return the remaining allowance; ``None``: the provider states no limits."""
    requests, tokens = _remaining(headers, _REQUESTS), _remaining(headers, _TOKENS)
    return None if requests is tokens is None else Allowance(requests=requests, tokens=tokens)


def _remaining(headers: Mapping[str, str], names: Sequence[str]) -> int | None:
    for name in names:
        number = _number(headers.get(name) or "")
        if number is not None:
            return int(number)
    return None


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _until(value: str | None, *, now: float) -> float | None:
    if value is None:
        return None
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, OverflowError):
        return None
