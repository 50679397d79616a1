"""What strategies share: showing passages, and turning a model's quotes into citations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from posology.text.quotes import Claimed, Verified, verify
from posology.types import Dose, Excerpt, Retrieved, Task
from prompts.answer import Quote
from prompts.fence import position


def whole(passages: Sequence[Retrieved]) -> tuple[Excerpt, ...]:
    """Every passage with all of its sentences."""
    return tuple(Excerpt(passage=p.passage, sentences=p.sentences) for p in passages)


def words(passages: Sequence[Retrieved]) -> int:
    """How many words the sentences of passages have."""
    return sum(len(s.of(p.passage.text).split()) for p in passages for s in p.sentences)


def shown_words(excerpts: Sequence[Excerpt]) -> int:
    """How many words excerpts show, those of summaries included."""
    sentences = sum(len(s.of(e.passage.text).split()) for e in excerpts for s in e.sentences)
    return sentences + sum(len((e.summary or "").split()) for e in excerpts)


def shown(excerpts: Sequence[Excerpt], passages: Sequence[Retrieved]) -> float | None:
    """The words that excerpts show as a share of those of passages; ``None`` where there are none."""
    there = words(passages)
    return shown_words(excerpts) / there if there else None


def dosed(task: Task, dose: Dose) -> Task:
    """The task over as many of the passages as a dose reads; its rankings stay those of the whole."""
    if dose.passages is None or dose.passages >= len(task.retrieval.passages):
        return task
    return cut(task, 0, dose.passages)


def cut(task: Task, first: int, passages: int) -> Task:
    """The task over so many passages from place ``first`` on; its rankings stay those of the whole."""
    kept = task.retrieval.passages[first : first + passages]
    return replace(task, retrieval=replace(task.retrieval, passages=kept))


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
