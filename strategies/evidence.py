"""What strategies share: showing passages, and turning a model's quotes into citations."""

from __future__ import annotations

from collections import Counter
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

    A quote under a wrong label stands if it is found in exactly one of the passages.
    """
    texts = {excerpt.passage.id: excerpt.passage.text for excerpt in excerpts}
    return verify([Claimed(passage_id=_source(q, excerpts), quote=q.quote) for q in quotes], texts)


def remarks(verified: Verified) -> tuple[str, ...]:
    """What a reader must know of quotes that did not stand, or stand elsewhere."""
    said = []
    if verified.dropped:
        reasons = Counter(dropped.reason for dropped in verified.dropped)
        counts = ", ".join(f"{n} {reason.replace('_', ' ')}" for reason, n in reasons.items())
        said.append(f"Quotes that did not pass the check were dropped: {counts}.")
    if verified.reattributed:
        said.append(
            f"{verified.reattributed} of the quotes stand in another passage than the model said."
        )
    return tuple(said)


def _source(quote: Quote, excerpts: Sequence[Excerpt]) -> str:
    place = position(quote.passage)
    if place is None or place >= len(excerpts):
        # no passage has this id, so the quote is looked for in all of them
        return quote.passage
    return excerpts[place].passage.id
