"""Time that a slow server may take to write a reply."""

from __future__ import annotations

from posology.types import Tier

#: Seconds that a request in the tier flex may take: the provider advises a timeout of 15 minutes
#: (developers.openai.com, guides/flex-processing)
FLEX_TIMEOUT = 900.0


def allowed(tier: Tier, seconds: float) -> float:
    """Return the seconds that a request may take: longer in the tier flex."""
    return max(seconds, FLEX_TIMEOUT) if tier == "flex" else seconds


def generation(tokens: int, floor: float | None) -> float:
    """Return the seconds allowed for a reply, beyond those to its first token.

    The whole of ``max_tokens`` counts, since a reply comes in one piece and shows no progress before it ends.

    Args:
        tokens: ``max_tokens`` of the call.
        floor: fewest tokens a second; ``None``: the time to the first token covers the reply, too.
    """
    return 0.0 if floor is None else tokens / floor
