"""The readers that are measured: by likeness of words, and by a cross-encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evals.pooled import CachedEncoder
from posology.hub import PACKAGED
from posology.llm.offline.answering import AnswerScorer, Evidence, LikenessScorer
from posology.llm.offline.candidates import Candidates
from posology.llm.offline.choice import Scores
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
    #: what decides whether a question is answered, where it is more than one score
    evidence: Callable[[str, Sequence[Excerpt]], Evidence] | None = None


def late(encoder: TokenEncoder, *, cached: bool = True) -> Method:
    """Return the reader by likeness; ``cached``: it encodes a text once in a run."""
    return Method(name="late", read=LikenessScorer(CachedEncoder(encoder) if cached else encoder))


def crossed(
    model: CrossEncoder,
    tokens: int,
    encoder: TokenEncoder,
    judge: SupportJudge,
    *,
    cached: bool = True,
) -> Method:
    """Return the reader by a cross-encoder that reads so many tokens, with a judge; ``cached``: see :func:`late`."""
    scorer = AnswerScorer(model, candidates(tokens), CachedEncoder(encoder) if cached else encoder)
    return Method(
        name="cross-encoder",
        read=scorer,
        judge=judge,
        evidence=lambda question, excerpts: scorer.weighed(question, excerpts)[1](),
    )


def candidates(tokens: int) -> Candidates:
    """Return the cheap choice."""
    return Candidates(wordpieces(PACKAGED / "tokenizer.json"), tokens)
