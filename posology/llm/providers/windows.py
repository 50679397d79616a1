"""Windows of models: whether a call fits, and whether a server read the whole of it.

Some servers cut a prompt that exceeds their window, answer from what is left, and say so only by the tokens that they
report. The bound that they are compared with is low on purpose: a word takes at least one token of every tokenizer that
does not merge words, and those that do (SuperBPE, Liu et al. 2025) save a third at most. Medical English has 1.6 to 1.7
tokens a word with Qwen2.5's tokenizer.
"""

from __future__ import annotations

import math
from dataclasses import replace

from posology.errors import ContextTooLong
from posology.text.bounds import words_bound
from posology.types import Call, Completion, Usage

#: fewest tokens for one word, which white space separates from the next
TOKENS_A_WORD = 0.8
#: Fewest tokens that are left of a prompt that was cut: half of a window of 2,048, as servers cut by halves. With fewer,
#: a server counted only what its cache did not have.
LEAST_LEFT = 1_000
#: Share of :func:`~posology.text.bounds.words_bound` that a tokenizer counts of medical English: 0.65 to 0.67 with
#: Qwen2.5's; the rest is a margin
COUNTED = 0.75
#: tokens that chat templates add to a message, and to a call
PER_MESSAGE, PER_CALL = 8, 32
#: fewest tokens to leave for a reply, unless the call asks for fewer
LEAST_REPLY = 256
REMEDY = "use fewer or shorter passages (--k), or serve the model with a larger window"


def least_tokens(call: Call) -> int:
    """Return a lower bound of the tokens of a call's messages."""
    words = sum(len(message.content.split()) for message in call.messages)
    return math.floor(TOKENS_A_WORD * words)


def most_tokens(call: Call) -> int:
    """Return an upper bound of the tokens of a call's messages with their template."""
    texts = sum(words_bound(message.content) + PER_MESSAGE for message in call.messages)
    return texts + PER_CALL


def likely_tokens(call: Call) -> int:
    """Return an estimate of the tokens of a call's messages, on the high side."""
    return math.ceil(COUNTED * most_tokens(call))


def fitted(call: Call, window: int, tokens: int) -> Call:
    """Return a call whose reply is bounded by what its messages leave of a window.

    Args:
        call: the call.
        window: tokens of input and output together.
        tokens: of the messages.

    Raises:
        ContextTooLong: too little is left; nothing was sent.
    """
    left = window - tokens
    if left < min(call.max_tokens, LEAST_REPLY):
        raise _too_long(
            f"the prompt of about {tokens:,} tokens and its reply do not fit the window of {call.model}, {window:,} tokens",
            call,
            usage=Usage(),
        )
    return replace(call, max_tokens=min(call.max_tokens, left))


def check_whole(call: Call, completion: Completion, *, window: int | None = None) -> None:
    """Check that a server read the whole prompt, by the tokens that it reports.

    Args:
        call: as it was sent.
        completion: the reply; without usage, nothing can be said.
        window: tokens of input and output together; ``None``: unknown.

    Raises:
        ContextTooLong: it read a part, so the reply is no answer; ``usage`` is the reply's.
    """
    usage = completion.usage
    if usage is None:
        return
    read, least = usage.total_input, least_tokens(call)
    cut = LEAST_LEFT <= read < least
    if cut or (window is not None and read >= window):
        sent = f"at least {least:,}" if cut else "more"
        raise _too_long(
            f"the server cut the prompt for {call.model}: it read {read:,} tokens of {sent}",
            call,
            usage=usage,
            request_id=completion.request_id,
        )


def _too_long(
    problem: str, call: Call, *, usage: Usage, request_id: str | None = None
) -> ContextTooLong:
    return ContextTooLong(
        f"{problem}: {REMEDY}",
        provider=call.model.partition(":")[0],
        model=call.model,
        usage=usage,
        request_id=request_id,
    )
