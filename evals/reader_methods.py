"""The readers that are measured: by likeness of words, and by a cross-encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evals.pooled import CachedEncoder
from posology.hub import DEFAULT, PACKAGED
from posology.llm.offline.answering import AnswerScorer
from posology.llm.offline.candidates import Candidates
from posology.llm.offline.choice import LIKENESS, PROBABILITY
from posology.llm.offline.replies import Scores
from posology.llm.offline.scores import SentenceScorer
from posology.reading.crossencoder import CrossEncoder
from posology.seams import SupportJudge, TokenEncoder
from posology.text.tokens import wordpieces
from posology.types import Excerpt

Read = Callable[[str, Sequence[Excerpt]], Scores]


@dataclass(frozen=True, kw_only=True, slots=True)
class Method:
    """A reader, and the judge that it has."""

    name: str
    read: Read
    judge: SupportJudge | None = None


def late(encoder: TokenEncoder, *, cached: bool = True) -> Method:
    """Return the reader by likeness; ``cached``: it encodes a text once in a run."""
    scorer = SentenceScorer(CachedEncoder(encoder) if cached else encoder)

    def read(question: str, excerpts: Sequence[Excerpt]) -> Scores:
        scored = scorer(question, excerpts)
        return Scores(read=scored, best=scored[0].score if scored else -1.0, rule=LIKENESS)

    return Method(name="late", read=read)


def crossed(model: CrossEncoder, tokens: int, name: str = "cross-encoder") -> Method:
    """Return the reader by a cross-encoder that reads so many tokens."""
    scorer = AnswerScorer(model, candidates(tokens))

    def read(question: str, excerpts: Sequence[Excerpt]) -> Scores:
        found = scorer(question, excerpts)
        return Scores(
            read=found.read, unread=found.unread, best=found.probability, rule=PROBABILITY
        )

    return Method(name=name, read=read, judge=model)


def candidates(tokens: int) -> Candidates:
    """Return the cheap choice."""
    return Candidates(wordpieces(PACKAGED[DEFAULT]() / "tokenizer.json"), tokens)
