"""Check of an answer: does each of its sentences say what the quotes behind it say?

Rules and a judge look at each sentence beside its quotes and their neighbouring sentences. A sentence that fails one of
:data:`VETOES` is never called supported: where the judge supports it all the same, it is unclear. Other rules give way to
the judge. Each disagreement is recorded. What a sentence names and a guard refused (:mod:`strategies.citing`) is judged, too,
so that a rule that is wrong is seen; without a citation it stays unclear. Without a judge, every rule counts.
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
from strategies.support.rules import around_of, failures, repeats

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Probabilities of support and of contradiction from which on a judge's word counts. Between them it abstains.
SUPPORTED, CONTRADICTED = 0.5, 0.5
#: Probability of support below which a sentence is not supported.
UNSUPPORTED = 0.3
#: content words of a sentence below which it says something only together with its question: "Yes."
_FULL = 2
_BRACKETS = re.compile(r"\s*\[([^\[\]]*)\]")
_STANCES = list(Stance)
#: Rules that a judge does not outvote. Quotes that people call supporting often fail the others, which compare words and names
#: (decision 47).
VETOES = frozenset({Rule.NUMBER, Rule.DRUG, Rule.NEGATION, Rule.DIRECTION, Rule.POPULATION})


@dataclass(frozen=True, kw_only=True, slots=True)
class _Case:
    """A sentence, and the quotes that it rests on."""

    place: Statement
    #: its words, without the ids of passages
    text: str
    #: its citations, and the sentences that were refused as such
    quotes: tuple[Citation, ...]
    failed: tuple[Rule, ...]
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
    cases = [_case(one, answer, excerpts) for one in statements(answer)]
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
    """Mark the sentences of a checked answer that their quotes do not support by a remark, or remove them.

    An answer of which nothing would be left becomes a refusal. Citations of removed sentences stay.
    """
    support = answer.support
    if support is None or not (count := support.unsupported):
        return answer
    total, one = len(support.sentences), count == 1
    said = f"{count} of {total} sentences {'is' if one else 'are'}"
    if mode != "drop":
        remark = f"{said} not supported by {'its' if one else 'their'} quotes."
        return replace(answer, notes=(*answer.notes, remark))
    if count == total:
        return Refusal(
            reason="No sentence of the model's answer is supported by its quotes.",
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
    remark = f"{said} left out: the quotes do not support {'it' if one else 'them'}."
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


def _case(place: Statement, answer: Answer, excerpts: Mapping[str, Excerpt]) -> _Case:
    cited = tuple(answer.citations[i] for i in place.citations)
    quotes = cited or place.refused
    ids = {one.passage_id for one in quotes}
    text = _BRACKETS.sub(
        lambda found: (
            "" if ids & {part.strip() for part in re.split("[,;]", found[1])} else found[0]
        ),
        answer.text[place.start : place.end],
    )
    words = [one.quote for one in quotes]
    around = around_of(excerpts[one].passage for one in sorted(ids))
    return _Case(
        place=place,
        text=text,
        quotes=quotes,
        failed=failures(text, words, around),
        literal=repeats(text, words),
    )


def _pairs(case: _Case, question: str, excerpts: Mapping[str, Excerpt]) -> list[tuple[str, str]]:
    """Return what a judge is to read: the sentence beside each quote with its neighbours, and beside all quotes."""
    if case.literal or not case.quotes:
        return []
    claim = case.text if len(stems(case.text)) >= _FULL else f"{question} {case.text}"
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
    """Return the support of a sentence from the rules that it fails and the judge's probabilities."""
    refused = not case.place.citations
    objected = bool(case.failed) or refused
    probability: float | None = None
    disagrees = False
    if rows is None:
        backing = Backing.UNSUPPORTED if objected else Backing.SUPPORTED
    else:
        probability, backing = _verdict(rows)
        disagrees = backing is (Backing.SUPPORTED if objected else Backing.CONTRADICTED)
        if backing is Backing.UNCLEAR and objected:
            backing = Backing.UNSUPPORTED
        if backing is Backing.SUPPORTED and (refused or not VETOES.isdisjoint(case.failed)):
            backing = Backing.UNCLEAR
    return SentenceSupport(
        start=case.place.start,
        end=case.place.end,
        backing=backing,
        probability=probability,
        citations=case.place.citations,
        failed=case.failed,
        disagrees=disagrees,
    )


def _verdict(rows: NDArray[Any]) -> tuple[float, Backing]:
    """Return the probability of support, and what it means: the best text counts."""
    supports = round(float(rows[:, _STANCES.index(Stance.SUPPORTS)].max()), 4)
    contradicts = float(rows[:, _STANCES.index(Stance.CONTRADICTS)].max())
    if supports >= SUPPORTED and supports >= contradicts:
        return supports, Backing.SUPPORTED
    if contradicts >= CONTRADICTED:
        return supports, Backing.CONTRADICTED
    return supports, Backing.UNSUPPORTED if supports < UNSUPPORTED else Backing.UNCLEAR
