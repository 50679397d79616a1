"""The offline reader's reply to the fields of a table: one whole sentence, number or choice for each field, or none.

A field with cues is found by its wording, any other by its question. The reader understands nothing, so it cuts no phrase out of
a sentence, and it abstains where understanding is needed: a number only if one number answers, a choice only if the words of
exactly one choice stand in the sentence, an answer only if it is more probable than not, and no criterion of a screening.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from posology.llm.offline.choice import PROBABILITY, Scores, choose
from posology.llm.offline.scores import Scored
from posology.text.figures import figures
from posology.text.numbering import name, numbered
from posology.text.roles.headings import stated
from posology.types import Call, Excerpt, Sentence
from posology.types.tables import Confidence, Cue, Field, FieldKind

#: words of a sentence that may stand in a cell: what is longer is mostly a table or a list that was not split
_LONGEST = 80
#: Probabilities from which on a value has high and medium confidence; one that is less probable is no value. A choice, not fitted.
_HIGH, _MEDIUM = 0.75, 0.5
_WORD = re.compile(r"[a-z]+")
#: letters of a word that are compared: "randomised" is "randomized"
_STEM = 6

Score = Callable[[str, Sequence[Excerpt]], Scores]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    """A value, and the sentence that it is from."""

    #: position of the excerpt, from 0
    excerpt: int
    sentence: Sentence
    value: str
    #: wording alone is no reason to be sure
    confidence: Confidence = "low"


def tabulated(call: Call, score: Score) -> dict[str, Any]:
    """Return the cells of a call's fields. Blocking.

    Args:
        call: a call with fields.
        score: scores the sentences of excerpts against a question.
    """
    return {"cells": [_cell(field, call.excerpts, score) for field in call.fields]}


def _cell(field: Field, excerpts: Sequence[Excerpt], score: Score) -> dict[str, Any]:
    found: _Found | None = None
    if not field.criterion:
        shown = [_with_roles(one.readable(), field) for one in excerpts]
        found = _by_cues(field, shown) if field.cues else _by_question(field, shown, score)
    if found is None:
        return {"field": field.name, "value": None, "sentences": [], "confidence": "low"}
    return {
        "field": field.name,
        "value": found.value,
        "sentences": [_name(found, excerpts)],
        "confidence": found.confidence,
    }


def _by_cues(field: Field, excerpts: Sequence[Excerpt]) -> _Found | None:
    """Return the first sentence with a field's first cue that any has; of numbers, all sentences with it must agree."""
    for cue in field.cues:
        matches = [
            _Found(excerpt=place, sentence=sentence, value=value)
            for place, excerpt in enumerate(excerpts)
            for sentence in excerpt.sentences
            for value in _cued(field, cue, sentence.of(excerpt.passage.text))
        ]
        if field.kind is FieldKind.NUMBER and len({figures(one.value) for one in matches}) > 1:
            return None
        if matches:
            return matches[0]
    return None


def _cued(field: Field, cue: Cue, sentence: str) -> Iterator[str]:
    """Yield the values of a sentence by a cue: every number, or one text or choice."""
    if cue.unless and re.search(cue.unless, sentence):
        return
    matches = re.finditer(cue.pattern, sentence)
    if field.kind is FieldKind.NUMBER:
        yield from (_in_digits(match["value"]) for match in matches)
    elif any(matches):
        value = cue.choice if field.kind is FieldKind.CHOICE else _whole(sentence)
        if value is not None:
            yield value


def _in_digits(count: str) -> str:
    return count if count[0].isdecimal() else str(figures(count)[0].value)


def _by_question(field: Field, excerpts: Sequence[Excerpt], score: Score) -> _Found | None:
    """Return the sentence that answers a field's question, if the reader would quote one."""
    scores = score(field.question, excerpts)
    chosen = choose(scores)
    if not chosen or (scores.rule is PROBABILITY and scores.best < _MEDIUM):
        return None
    best = chosen[0]
    value = _value(field, best, scores, excerpts)
    if value is None:
        return None
    confidence = _confidence(scores)
    return _Found(excerpt=best.excerpt, sentence=best.sentence, value=value, confidence=confidence)


def _with_roles(excerpt: Excerpt, field: Field) -> Excerpt:
    """Return an excerpt with the sentences that may have a field's roles, by what is known of them or by headings."""
    if not field.roles:
        return excerpt
    text, section = excerpt.passage.text, excerpt.passage.section
    possible: list[frozenset[Any]]
    if excerpt.roles is None:
        possible = [one.allowed for one in stated(text, excerpt.sentences, section)]
    else:
        possible = [frozenset({role}) for role in excerpt.roles]
    pairs = zip(excerpt.sentences, possible, strict=True)
    kept = tuple(one for one, roles in pairs if not roles or roles & field.roles)
    return replace(excerpt, sentences=kept, roles=None)


def _value(field: Field, best: Scored, scores: Scores, excerpts: Sequence[Excerpt]) -> str | None:
    text = excerpts[best.excerpt].passage.text
    sentence = best.sentence.of(text)
    match field.kind:
        case FieldKind.NUMBER:
            spans = (
                one.span for one in scores.said if _holds(best, one.sentence.excerpt, one.span)
            )
            return _number(next(spans, best.sentence).of(text))
        case FieldKind.CHOICE:
            return _chosen(field.choices, sentence)
        case FieldKind.TEXT:
            return _whole(sentence)


def _holds(best: Scored, excerpt: int, span: Sentence) -> bool:
    inside = best.sentence.start <= span.start and span.end <= best.sentence.end
    return excerpt == best.excerpt and inside


def _number(text: str) -> str | None:
    """Return the number of a text as it is written in digits; ``None``: there is none, or several."""
    found = {
        (one.value, one.unit): written
        for one in figures(text)
        if any(map(str.isdecimal, written := text[one.number : one.number_end]))
    }
    return found.popitem()[1] if len(found) == 1 else None


def _chosen(choices: Sequence[str], sentence: str) -> str | None:
    """Return the choice whose words stand in a sentence; ``None``: none, or several that do not contain each other."""
    there = _stems(sentence)
    fitting = sorted(
        (one for one in choices if _stems(one) <= there), key=lambda one: -len(_stems(one))
    )
    if not fitting or any(not _stems(one) < _stems(fitting[0]) for one in fitting[1:]):
        return None
    return fitting[0]


def _stems(text: str) -> frozenset[str]:
    return frozenset(word[:_STEM].replace("z", "s") for word in _WORD.findall(text.lower()))


def _whole(sentence: str) -> str | None:
    """Return a sentence as a value; ``None``: it is too long for a cell."""
    found = sentence.split()
    return " ".join(found) if 0 < len(found) <= _LONGEST else None


def _name(found: _Found, excerpts: Sequence[Excerpt]) -> str:
    shown = numbered(excerpts[found.excerpt])
    at = next(at for at, spans in enumerate(shown) if found.sentence in spans)
    return name(found.excerpt, at)


def _confidence(scores: Scores) -> Confidence:
    if scores.rule is not PROBABILITY:
        return "low"
    return "high" if scores.best >= _HIGH else "medium"
