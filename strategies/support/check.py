"""Check of an answer: does each of its sentences say what the quotes behind it say?

Rules and a judge look at each sentence beside its quotes and their neighbouring sentences. A sentence that a rule objects to
(:attr:`~posology.types.Rule.objects`) is never called supported: where the judge supports it all the same, it is unclear. A
judge alone never objects: what it does not support is unclear. Each disagreement is recorded. What a sentence names and a guard
refused (:mod:`strategies.citing`) is judged, too, so that a rule that is wrong is seen; without a citation it stays unclear.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from posology.seams import SupportJudge
from posology.text.figures import spelt
from posology.text.languages import foreign
from posology.text.sentences import split
from posology.types import (
    Answer,
    Backing,
    Citation,
    Difference,
    Excerpt,
    Refusal,
    Rule,
    SentenceSupport,
    Stance,
    Statement,
    Support,
    SupportMode,
)
from strategies.compression.checked import stems
from strategies.support.inventions import Shown, invented
from strategies.support.rules import around_of, completed, failures, repeats

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Probabilities of support and of contradiction from which on a judge's word counts. Between them it abstains.
SUPPORTED, CONTRADICTED = 0.5, 0.5
#: share of a sentence's content words that a refused quote has, at least, to be compared with it
_ALIKE = 0.5
_BRACKETS = re.compile(r"\s*\[([^\[\]]*)\]")
_STANCES = list(Stance)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Case:
    """A sentence, and the quotes that it rests on."""

    place: Statement
    #: its words, without the ids of passages
    text: str
    #: its citations, or else the sentences that were refused as such and speak of the same
    quotes: tuple[Citation, ...]
    differences: tuple[Difference, ...]
    #: whether it stands in a quote word for word
    literal: bool


def checked(
    answer: Answer,
    excerpts: Mapping[str, Excerpt],
    question: str,
    judge: Callable[[], SupportJudge | None],
) -> Answer:
    """Add the support of each sentence to an answer. Blocking.

    Args:
        answer: an answer; its text is not changed.
        excerpts: passage id to the passage with its sentences.
        question: the answered question.
        judge: returns what judges sentences beside texts, if there is anything to judge; ``None``: rules alone decide.
    """
    if language := foreign(answer.text):
        remark = (
            f"The answer seems to be in {language}: its sentences were not checked for support."
        )
        return replace(answer, notes=(*answer.notes, remark))
    shown = Shown.of([one.passage for one in excerpts.values()], question)
    cases = [_case(one, answer, excerpts, shown) for one in statements(answer)]
    pairs = [_pairs(case, question, excerpts) for case in cases]
    asked = judge() if any(pairs) else None
    rows: list[NDArray[Any] | None] = [None] * len(cases)
    if asked is not None:
        found = asked.judge([pair for some in pairs for pair in some])
        ends = list(accumulate(map(len, pairs)))
        rows = [
            found[end - len(some) : end] if some else None
            for some, end in zip(pairs, ends, strict=True)
        ]
    support = Support(
        judge=None if asked is None else asked.name,
        sentences=tuple(_judged(case, one) for case, one in zip(cases, rows, strict=True)),
    )
    return replace(answer, support=support)


def applied(answer: Answer, mode: SupportMode) -> Answer | Refusal:
    """Count the sentences of a checked answer that do not stand in a remark, or remove them.

    An answer of which nothing would be left becomes a refusal. Citations of removed sentences stay.
    """
    support = answer.support
    if support is None or not (count := support.unsupported):
        return answer
    total, one = len(support.sentences), count == 1
    said = f"{count} of {total} sentences"
    why = f"{'differs from its quotes or has' if one else 'differ from their quotes or have'} none"
    if mode != "drop":
        remark = f"{said} {why}; the difference is in brackets."
        return replace(answer, notes=(*answer.notes, remark))
    if count == total:
        return Refusal(
            reason="Every sentence of the model's answer differs from its quotes or has none.",
            strategy=answer.strategy,
            notes=answer.notes,
            coverage=answer.coverage,
            rungs=answer.rungs,
            shown=answer.shown,
            compression=answer.compression,
        )
    text, end = "", 0
    kept: list[SentenceSupport] = []
    for sentence in support.sentences:
        between = answer.text[end : sentence.start] if text else ""
        end = sentence.end
        if sentence.stands:
            start = len(text) + len(between)
            text += between + answer.text[sentence.start : end]
            kept.append(replace(sentence, start=start, end=len(text)))
    remark = f"{said} {'is' if one else 'are'} left out: {'it' if one else 'they'} {why}."
    return replace(
        answer,
        text=text,
        statements=tuple(
            Statement(start=one.start, end=one.end, citations=one.citations) for one in kept
        ),
        support=replace(support, sentences=tuple(kept), removed=count),
        notes=(*answer.notes, remark),
    )


def statements(answer: Answer) -> tuple[Statement, ...]:
    """Return the sentences of an answer with their citations.

    Where a reply does not say which quotes stand behind a sentence, those of the passages that it names in brackets do; else
    those of the next sentence that names any; else all.
    """
    if answer.statements:
        return answer.statements
    places = [_named(sentence.of(answer.text), answer.citations) for sentence in split(answer.text)]
    every = tuple(range(len(answer.citations)))
    following = every
    for i in range(len(places) - 1, -1, -1):
        following = places[i] = places[i] or following
    return tuple(
        Statement(start=sentence.start, end=sentence.end, citations=named)
        for sentence, named in zip(split(answer.text), places, strict=True)
    )


def _named(sentence: str, citations: Sequence[Citation]) -> tuple[int, ...]:
    ids = {
        part.strip() for found in _BRACKETS.findall(sentence) for part in re.split("[,;]", found)
    }
    return tuple(i for i, one in enumerate(citations) if one.passage_id in ids)


def _case(place: Statement, answer: Answer, excerpts: Mapping[str, Excerpt], shown: Shown) -> _Case:
    cited = tuple(answer.citations[i] for i in place.citations)
    named = {one.passage_id for one in cited}
    text = _BRACKETS.sub(
        lambda found: (
            "" if named & {part.strip() for part in re.split("[,;]", found[1])} else found[0]
        ),
        answer.text[place.start : place.end],
    )
    quotes = cited or tuple(one for one in place.refused if _alike(text, one.quote))
    words = [one.quote for one in quotes]
    ids = {one.passage_id for one in quotes}
    around = around_of(excerpts[one].passage for one in sorted(ids))
    return _Case(
        place=place,
        text=text,
        quotes=quotes,
        differences=_differences(text, words, around, shown),
        literal=repeats(text, words),
    )


def _differences(
    text: str, quotes: Sequence[str], around: str, shown: Shown
) -> tuple[Difference, ...]:
    """Return what rules find: names that no passage has, and what else differs from the quotes."""
    unknown = invented(text, shown)
    said = {one.casefold() for one in unknown}
    others = [
        one
        for one in failures(text, quotes, around)
        if one.rule is not Rule.DRUG or one.said not in said
    ]
    return (*(Difference(rule=Rule.INVENTED, said=one) for one in unknown), *others)


def _alike(text: str, quote: str) -> bool:
    """Return whether a quote that was refused speaks of the same as a sentence, so that what differs is of interest."""
    wanted = stems(text)
    return len(wanted & stems(quote)) >= _ALIKE * len(wanted)


def _pairs(case: _Case, question: str, excerpts: Mapping[str, Excerpt]) -> list[tuple[str, str]]:
    """Return what a judge is to read: the sentence beside each quote with its neighbours, and beside all quotes."""
    if case.literal or not case.quotes:
        return []
    claim = completed(case.text, question)
    texts = [neighbourhood(one, excerpts[one.passage_id]) for one in case.quotes]
    if len(texts) > 1:
        texts.append(" ".join(one.quote for one in case.quotes))
    # it has seen "65 years or older" more often than "≥65 years"
    return [(spelt(claim, text), text) for text in dict.fromkeys(texts)]


def neighbourhood(citation: Citation, excerpt: Excerpt) -> str:
    """Return the sentences that a citation stands in, with one before and one after."""
    spans, text = excerpt.sentences, excerpt.passage.text
    first = bisect_right(spans, citation.start, key=attrgetter("end"))
    last = bisect_left(spans, citation.end, key=attrgetter("start"))
    around = spans[max(0, first - 1) : last + 1]
    start = min([citation.start, *(one.start for one in around)])
    end = max([citation.end, *(one.end for one in around)])
    return text[start:end]


def _judged(case: _Case, rows: NDArray[Any] | None) -> SentenceSupport:
    """Return the support of a sentence from what rules found and the judge's probabilities."""
    objected = any(one.rule.objects for one in case.differences)
    known = all(one.rule is not Rule.INVENTED for one in case.differences)
    standing = bool(case.place.citations)
    says = None if rows is None else _stance(rows)
    sound = not objected and standing
    if rows is None:
        plain = not case.differences
        backing = (
            (Backing.SUPPORTED if plain else Backing.UNCLEAR) if sound else Backing.UNSUPPORTED
        )
    elif sound:
        backing = Backing.SUPPORTED if says is Stance.SUPPORTS else Backing.UNCLEAR
    elif says is Stance.SUPPORTS and known:
        backing = Backing.UNCLEAR
    else:
        contrary = objected and says is Stance.CONTRADICTS
        backing = Backing.CONTRADICTED if contrary else Backing.UNSUPPORTED
    wrong = bool(case.differences) or not standing
    return SentenceSupport(
        start=case.place.start,
        end=case.place.end,
        backing=backing,
        probability=None if rows is None else _supports(rows),
        citations=case.place.citations,
        refused=case.place.refused,
        differences=case.differences,
        disagrees=says is (Stance.SUPPORTS if wrong else Stance.CONTRADICTS),
    )


def _supports(rows: NDArray[Any]) -> float:
    """Return the probability of support: the best text counts."""
    return round(float(rows[:, _STANCES.index(Stance.SUPPORTS)].max()), 4)


def _stance(rows: NDArray[Any]) -> Stance:
    """Return what a judge says of a sentence; ``SILENT``: neither clearly."""
    supports = _supports(rows)
    contradicts = float(rows[:, _STANCES.index(Stance.CONTRADICTS)].max())
    if supports >= SUPPORTED and supports >= contradicts:
        return Stance.SUPPORTS
    return Stance.CONTRADICTS if contradicts >= CONTRADICTED else Stance.SILENT
