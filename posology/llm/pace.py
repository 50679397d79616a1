"""Time that a slow server may take to write a reply."""

from __future__ import annotations

from posology.types import Tier

#: Fewest tokens a second of a server on this machine: a model of 8 billion parameters on two cores writes 2
LOCAL = 2.0

#: Seconds that a request in the tier flex may take: the provider advises a timeout of 15 minutes
#: (developers.openai.com, guides/flex-processing)
FLEX_TIMEOUT = 900.0


def allowed(tier: Tier, seconds: float) -> float:
    """Return the seconds that a request may take: longer in the tier flex."""
    return max(seconds, FLEX_TIMEOUT) if tier == "flex" else seconds


def floor_of(address: str | None, floor: float | None) -> float | None:
    """Return the fewest tokens a second that a server writes; ``None``: its time is not known to depend on the tokens.

    Args:
        address: base URL of the server; ``None``: a provider's own.
        floor: as configured; ``None``: not, and then only a server on this machine has one.
    """
    from posology.network.hosts import is_loopback

    return LOCAL if floor is None and address is not None and is_loopback(address) else floor


def generation(tokens: int, floor: float | None) -> float:
    """Return the seconds that a reply may take beyond those of any other: to its first token, and in all.

    The whole of ``max_tokens`` counts: the time to read a prompt and the time to write a reply are not known before.

    Args:
        tokens: ``max_tokens`` of the call.
        floor: fewest tokens a second; ``None``: it takes none beyond them.
    """
    return 0.0 if floor is None else tokens / floor
