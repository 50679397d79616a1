"""Shared by strategies: excerpts of passages, and citations from a model's quotes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from posology.text.quotes import Claimed, Verified, verify
from posology.types import READ_AGAIN, Dose, Excerpt, QuoteFault, Retrieved, Task
from prompts.answer import Quote
from prompts.fence import position

#: what may be a reference to passages in an answer: ``[P1]``, ``(P1, P3)``, ``[P2, 2015, Review]``
_BRACKETS = re.compile(r"\[(P\d+(?:[,;][^\[\]]*)?)\]|\((P\d+(?:\s*[,;]\s*P\d+)*)\)")


def whole(passages: Sequence[Retrieved]) -> tuple[Excerpt, ...]:
    """Return every passage with all of its sentences."""
    return tuple(p.excerpt() for p in passages)


def words(passages: Sequence[Retrieved]) -> int:
    """Count the words in the sentences of passages."""
    return sum(len(s.of(p.passage.text).split()) for p in passages for s in p.sentences)


def shown_words(excerpts: Sequence[Excerpt]) -> int:
    """Count the words that excerpts show, summaries included."""
    sentences = sum(len(s.of(e.passage.text).split()) for e in excerpts for s in e.sentences)
    return sentences + sum(len((e.summary or "").split()) for e in excerpts)


def shown(excerpts: Sequence[Excerpt], passages: Sequence[Retrieved]) -> float | None:
    """Return the words in excerpts as a share of the words in passages; ``None`` if there are none."""
    there = words(passages)
    return shown_words(excerpts) / there if there else None


def truncate_task(task: Task, dose: Dose) -> Task:
    """Limit a task to the passages that a dose reads; its rankings stay complete."""
    if dose.skip:
        best, others = task.retrieval.passages[:READ_AGAIN], task.retrieval.passages[READ_AGAIN:]
        kept = (*best, *others[dose.skip :])
        task = replace(task, retrieval=replace(task.retrieval, passages=kept))
    if dose.passages is None or dose.passages >= len(task.retrieval.passages):
        return task
    return cut(task, 0, dose.passages)


def cut(task: Task, first: int, passages: int) -> Task:
    """Limit a task to ``passages`` passages from place ``first`` (from 0); its rankings stay complete."""
    kept = task.retrieval.passages[first : first + passages]
    return replace(task, retrieval=replace(task.retrieval, passages=kept))


def check(quotes: Sequence[Quote], excerpts: Sequence[Excerpt]) -> Verified:
    """Verify labelled quotes against the passages that were shown.

    A quote under a wrong label is accepted if exactly one of the passages contains it.
    """
    texts = {excerpt.passage.id: excerpt.passage.text for excerpt in excerpts}
    return verify([Claimed(passage_id=_source(q, excerpts), quote=q.quote) for q in quotes], texts)


def name_sources(text: str, excerpts: Sequence[Excerpt]) -> str:
    """Replace the labels in an answer's brackets by the ids of the passages.

    A label means something only beside the prompt. Labels of no excerpt stay as they are.
    """

    def named(label: re.Match[str]) -> str:
        place = int(label[1]) - 1
        return excerpts[place].passage.id if 0 <= place < len(excerpts) else label[0]

    def bracket(found: re.Match[str]) -> str:
        inner = re.sub(r"(?<=[\[(,; ])P(\d{1,6})(?=[\]),;])", named, found[0])
        return f"[{inner[1:-1]}]" if inner != found[0] else inner

    return _BRACKETS.sub(bracket, text)


def remarks(verified: Verified) -> tuple[str, ...]:
    """Return remarks on quotes that were dropped, and on those that are not in the passage that was named."""
    notes = []
    if verified.dropped:
        reasons = Counter(dropped.reason for dropped in verified.dropped)
        counts = ", ".join(f"{n} {reason.replace('_', ' ')}" for reason, n in reasons.items())
        notes.append(f"Quotes that could not be verified were dropped: {counts}.")
    astray = [one for one in verified.faulty if one.fault is QuoteFault.MISATTRIBUTED]
    if astray:
        where = ", ".join(dict.fromkeys(name for one in astray for name in one.passages))
        notes.append(
            f"{_quotes(len(astray))} in another passage than the model named (misattributed): {where}."
        )
    if invented := len(verified.faulty) - len(astray):
        notes.append(f"{_quotes(invented)} in none of the passages (invented).")
    return tuple(notes)


def _quotes(count: int) -> str:
    return "1 quote is" if count == 1 else f"{count} quotes are"


def _source(quote: Quote, excerpts: Sequence[Excerpt]) -> str:
    place = position(quote.passage)
    if place is None or place >= len(excerpts):
        # no passage has this id, so the quote is searched for in all of them
        return quote.passage
    return excerpts[place].passage.id
