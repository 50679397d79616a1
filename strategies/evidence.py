"""What strategies share: showing passages, and turning a model's quotes into citations."""

from __future__ import annotations

from collections.abc import Sequence

from posology.text.quotes import Claimed, Verified, verify
from posology.types import Excerpt, Retrieved
from prompts.answer import Quote
from prompts.fence import position


def whole(passages: Sequence[Retrieved]) -> tuple[Excerpt, ...]:
    """Every passage with all of its sentences."""
    return tuple(Excerpt(passage=p.passage, sentences=p.sentences) for p in passages)


def check(quotes: Sequence[Quote], excerpts: Sequence[Excerpt]) -> Verified:
    """Verify labelled quotes against the passages that were shown.

    A label that names no excerpt leaves the quote without a passage: it stands if it is found in
    exactly one of them.
    """
    texts = {excerpt.passage.id: excerpt.passage.text for excerpt in excerpts}
    return verify([Claimed(passage_id=_source(q, excerpts), quote=q.quote) for q in quotes], texts)


def _source(quote: Quote, excerpts: Sequence[Excerpt]) -> str | None:
    place = position(quote.passage)
    if place is None or place >= len(excerpts):
        return None
    return excerpts[place].passage.id
