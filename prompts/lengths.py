"""How long a reply may be, for each stage."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from posology.types import Stage

#: Tokens of a whole reply, its JSON included: a quarter more than the 99th percentile of replies that
#: ``python -m evals.replies`` puts together, in steps of 256. Tight, since a call is paid for in advance
#: at its most. Reasoning counts, too: a model that reasons at length needs a bound of its own.
REPLY_TOKENS: Mapping[Stage, int] = MappingProxyType(
    {
        Stage.ANSWER: 1_536,
        Stage.EXTRACT: 1_280,
        Stage.REDUCE: 1_280,
        # estimates, for nothing asks these yet: sentences by their numbers, and one word
        Stage.COMPRESS: 512,
        Stage.LABEL: 256,
    }
)


def reply_tokens(stage: Stage, asked: int | None = None) -> int:
    """The bound on output tokens of a call.

    Args:
        stage: what the call is for.
        asked: what the question was asked with; ``None``: the stage's own.
    """
    return REPLY_TOKENS[stage] if asked is None else asked
