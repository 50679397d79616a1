"""Time that a slow server may take to write a reply."""

from __future__ import annotations

from posology.types import Call

#: Seconds that a request in the tier flex may take: the provider advises a timeout of 15 minutes
#: (developers.openai.com, guides/flex-processing)
FLEX_TIMEOUT = 900.0


def allowed(call: Call, seconds: float) -> float:
    """Return the seconds that a request may take: longer in the tier flex."""
    return max(seconds, FLEX_TIMEOUT) if call.tier == "flex" else seconds


def generation(call: Call, floor: float | None) -> float:
    """Return the seconds allowed for a call's reply, beyond those to its first token.

    The whole of ``max_tokens`` counts, since a reply comes in one piece and shows no progress before it ends.

    Args:
        call: the call.
        floor: fewest tokens a second; ``None``: the time to the first token covers the reply, too.
    """
    return 0.0 if floor is None else call.max_tokens / floor
