"""Expected reads and writes of providers' prompt caches: later steps of a ladder repeat the prompts before them."""

from __future__ import annotations

from typing import Final

from posology.llm.models.families import capabilities
from posology.llm.models.names import parse
from posology.llm.providers.table import PROVIDERS
from posology.types import Call, PlannedCall, Role, Usage

#: Fewest tokens of a prefix that providers cache: OpenAI's (guide *Prompt caching*). Some of Anthropic's models take more.
LEAST: Final = 1_024


def expected_usage(planned: PlannedCall, *, read: int, output: int) -> Usage:
    """Return the expected usage of a call, its input divided by what a cache holds of it.

    Args:
        planned: the call.
        read: expected input tokens, cached or not.
        output: expected output tokens.
    """
    call = planned.call
    repeated = min(round(planned.repeated), read)
    cached = repeated if repeated >= LEAST and _reads(call) else 0
    written = read - cached if read >= LEAST and _writes(call) else 0
    return Usage(
        input=read - cached - written, cache_read=cached, cache_write_5m=written, output=output
    )


def _reads(call: Call) -> bool:
    """Return whether a cache may hold a prefix: one that the call names, or any where caches are free."""
    family = capabilities(call.model)
    if family.cache == "free":
        return family.known and PROVIDERS[parse(call.model).provider].remote
    return any(end < _length(call) for end in call.cached)


def _writes(call: Call) -> bool:
    """Return whether a call pays for the writing of its whole prompt."""
    return capabilities(call.model).cache != "free" and _length(call) in call.cached


def _length(call: Call) -> int:
    return next(len(one.content) for one in call.messages if one.role is Role.USER)
