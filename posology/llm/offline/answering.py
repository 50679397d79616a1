"""Scores of a call's sentences: by likeness to the question, or by a cross-encoder that reads both together."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from posology.llm.offline.candidates import Candidates, Window
from posology.llm.offline.choice import LIKENESS, PROBABILITY, Said, Scores
from posology.llm.offline.rows import ranked
from posology.llm.offline.scores import Scored, SentenceScorer
from posology.seams import PassageReader, TokenEncoder
from posology.types import Excerpt, Reading, Sentence

#: Windows, the most probable first, whose likeness to the question is measured as well.
COMPARED = 3
#: Probabilities beyond are taken for these.
_LEAST = 1e-4


class Evidence(NamedTuple):
    """Figures by which it is decided whether texts answer a question."""

    #: log-odds of the window that answers most probably
    odds: float
    #: likeness of the best sentence of the :data:`COMPARED` windows, -1 to 1
    likeness: float
    #: logarithm of the number of the question's words: no sentence is like every word of a long one
    length: float

    @classmethod
    def of(cls, question: str, *, answers: float, likeness: float) -> Evidence:
        """Return the evidence.

        Args:
            question: its text.
            answers: probability that the best window answers.
            likeness: of the best sentence.
        """
        within = min(max(answers, _LEAST), 1 - _LEAST)
        return cls(
            odds=math.log(within / (1 - within)),
            likeness=likeness,
            length=math.log(max(1, len(question.split()))),
        )


#: slopes of the three, and offset, fitted on dev documents of six sets, each counting the same:
#: ``python -m evals.reader --dev`` (decision 49)
SLOPES, OFFSET = Evidence(odds=0.91, likeness=12.85, length=1.45), -12.00


def probability(evidence: Evidence) -> float:
    """Return the probability that the texts of a call answer its question."""
    z = OFFSET + sum(a * b for a, b in zip(SLOPES, evidence, strict=True))
    return 1 / (1 + math.exp(-z))


#: Readings that are kept: the windows of some hundred questions.
KEPT = 1_024

_Key: TypeAlias = tuple[str, str, str, str, tuple[Sentence, ...]]


class LikenessScorer:
    """Scores sentences by their likeness to the question. Blocking; as thread-safe as its encoder."""

    name = "late"
    #: characters that are read in a second, on one slow core
    pace = 20_000.0

    def __init__(self, encoder: TokenEncoder) -> None:
        self._scorer = SentenceScorer(encoder)

    def __call__(self, question: str, excerpts: Sequence[Excerpt]) -> Scores:
        """Score the shown sentences of excerpts."""
        scored = self._scorer(question, excerpts)
        return Scores(read=scored, weigh=lambda: scored[0].score if scored else -1.0, rule=LIKENESS)


class AnswerScorer:
    """Scores sentences by a :class:`~posology.seams.PassageReader`, which reads only the best candidates.

    Whether there is an answer is decided by its best window and by likeness together: a cross-encoder takes a near miss
    for an answer more often than likeness does, and likeness refuses what is worded otherwise. Blocking, as thread-safe
    as ``encoder``.

    Args:
        reader: reads windows with the question.
        candidates: chooses the windows.
        encoder: of tokens, for likeness.
    """

    #: characters of which the best are chosen in a second; what is then read is bounded
    pace = 1_000_000.0

    def __init__(
        self, reader: PassageReader, candidates: Candidates, encoder: TokenEncoder
    ) -> None:
        self._reader = reader
        self._candidates = candidates
        self._likeness = SentenceScorer(encoder)

    @property
    def name(self) -> str:
        """Return the name of the reader."""
        return self._reader.name

    def __call__(self, question: str, excerpts: Sequence[Excerpt]) -> Scores:
        """Score the shown sentences of excerpts."""
        return self.weighed(question, excerpts)[0]

    def weighed(
        self, question: str, excerpts: Sequence[Excerpt]
    ) -> tuple[Scores, Callable[[], Evidence]]:
        """Score the shown sentences, and return what makes the figures that decide whether they answer."""
        chosen = self._candidates(question, excerpts)
        shown = [
            Excerpt(passage=excerpts[one.excerpt].passage, sentences=one.sentences)
            for one in chosen.read
        ]
        readings = self._reader.read(question, shown)
        scored = [
            Scored(excerpt=window.excerpt, sentence=sentence, score=float(score))
            for window, reading in zip(chosen.read, readings, strict=True)
            for sentence, score in zip(window.sentences, reading.sentences, strict=True)
        ]

        def evidence() -> Evidence:
            # encodes texts: only where a threshold is asked for
            order = sorted(range(len(shown)), key=lambda i: -readings[i].answers)
            liked = self._likeness(question, [shown[i] for i in order[:COMPARED]])
            return Evidence.of(
                question,
                answers=readings[order[0]].answers if order else 0.0,
                likeness=liked[0].score if liked else 0.0,
            )

        scores = Scores(
            read=ranked(question, excerpts, scored),
            unread=[
                Scored(excerpt=window.excerpt, sentence=sentence, score=0.0)
                for window in chosen.unread
                for sentence in window.sentences
            ],
            weigh=lambda: probability(evidence()),
            rule=PROBABILITY,
            said=_said(chosen.read, readings),
        )
        return scores, evidence


def _said(windows: Sequence[Window], readings: Sequence[Reading]) -> list[Said]:
    """Return the answers of windows, most probable first."""
    found = []
    for window, reading in zip(windows, readings, strict=True):
        if reading.span is None:
            continue
        for sentence in window.sentences:
            if sentence.start <= reading.span.start < sentence.end:
                one = Scored(excerpt=window.excerpt, sentence=sentence, score=reading.answers)
                found.append(Said(sentence=one, span=reading.span))
    return sorted(found, key=lambda one: -one.sentence.score)


class KeptReadings:
    """A :class:`~posology.seams.PassageReader` that reads a text once for a question, up to :data:`KEPT` texts.

    The calls of a ladder, and those of a question asked again, have most of their passages in common.
    """

    def __init__(self, reader: PassageReader) -> None:
        self._reader = reader
        self._kept: OrderedDict[_Key, Reading] = OrderedDict()
        self._turn = threading.Lock()

    @property
    def name(self) -> str:
        """Return the reader's own name."""
        return self._reader.name

    def read(self, question: str, excerpts: Sequence[Excerpt]) -> list[Reading]:
        """Read what was not read before."""
        keys = [_key(question, one) for one in excerpts]
        with self._turn:
            found = {key: self._kept[key] for key in keys if key in self._kept}
        new = {key: one for key, one in zip(keys, excerpts, strict=True) if key not in found}
        if new:
            found |= zip(new, self._reader.read(question, list(new.values())), strict=True)
        with self._turn:
            for key in keys:
                self._kept[key] = found[key]
                self._kept.move_to_end(key)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return [found[key] for key in keys]


def _key(question: str, excerpt: Excerpt) -> _Key:
    passage = excerpt.passage
    return question, passage.id, passage.title, passage.text, excerpt.sentences
