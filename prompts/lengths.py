"""Bounds of replies, for each stage."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from posology.types import QuoteForm, Stage

#: Bounds of stages that quote nothing, estimates. Rewriters are bounded by the words that they ask for, see
#: :func:`text_tokens`.
_UNQUOTED = {Stage.COMPRESS: 512, Stage.LABEL: 256, Stage.JUDGE: 128}
#: Tokens of a whole reply, its JSON included, by the form of quotes: above the 99th percentile of replies put
#: together from experts' texts (``evals/results/money.md``). Tight, since a call is paid for in advance at its most. Reasoning before the reply comes on top.
REPLY_TOKENS: Mapping[QuoteForm, Mapping[Stage, int]] = MappingProxyType(
    {
        "sentences": MappingProxyType(
            {Stage.ANSWER: 768, Stage.EXTRACT: 512, Stage.REDUCE: 768} | _UNQUOTED
        ),
        "copied": MappingProxyType(
            {Stage.ANSWER: 1_536, Stage.EXTRACT: 1_280, Stage.REDUCE: 1_280} | _UNQUOTED
        ),
    }
)
#: Most quotes of an answer, and of one finding.
ANSWER_QUOTES, FINDING_QUOTES = 8, 2
#: Most statements of an answer, and most sentences that one of them, or a finding, names.
STATEMENTS, STATEMENT_SENTENCES, FINDING_SENTENCES = 6, 4, 2
#: Most claims of a reduction, and most findings that one list of it names.
CLAIMS, LABELS = 2, 32
#: Most findings of one extraction, however many passages it reads.
_FINDINGS = 8


def most_findings(passages: int) -> int:
    """Return the most findings of an extraction: what it finds is the input of the reduction, and is paid for in advance.

    Args:
        passages: number of passages that it reads.
    """
    return min(passages + 1, _FINDINGS)


def reply_tokens(
    stage: Stage, asked: int | None = None, *, quotes: QuoteForm = "sentences", reasoning: int = 0
) -> int:
    """Return the bound on output tokens of a call.

    Args:
        stage: stage of the call.
        asked: bound of the question, for reasoning and reply together; ``None``: the stage's own.
        quotes: how the reply names its evidence.
        reasoning: tokens that the model may reason before it replies, added to the stage's own bound.
    """
    return REPLY_TOKENS[quotes][stage] + reasoning if asked is None else asked


#: Tokens of a reply's text for each word that was asked for: abstracts have 1.6 by the tokenizer that needs the
#: most, 2.3 at the 99th percentile (measured once), and models write more words than they are allowed.
TOKENS_A_WORD = 2.5
#: Tokens of the JSON around one passage's text, and around all.
_ENTRY, _REPLY = 24, 64


def text_tokens(words: int, entries: int) -> int:
    """Return the bound on output tokens of a reply with text for passages.

    Args:
        words: that the reply is asked to have at most, all texts together.
        entries: passages.
    """
    return _REPLY + _ENTRY * entries + math.ceil(TOKENS_A_WORD * words)


def text_words(tokens: int, entries: int) -> int:
    """Return the words to ask for within a bound, at least 1: the inverse of :func:`text_tokens`."""
    return max(1, math.floor((tokens - _REPLY - _ENTRY * entries) / TOKENS_A_WORD))


#: Characters that stand for one token of a reply that comes back as input. Of 4,500 replies put
#: together from experts' texts (measured once), o200k's tokens have 4.2 on average and 6.04 in the longest of them;
#: by words, 2.9 tokens at most are counted for one.
CHARACTERS = 6


def filler(tokens: int) -> str:
    """Return a text as long as any reply of so many tokens, to bound a reply that comes back as input.

    Digits: bounds count them by their bytes, and tokenizers take three at most for one token.
    """
    return "7" * (CHARACTERS * tokens)
