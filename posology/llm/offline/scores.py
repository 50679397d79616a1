"""Scores shown sentences against a question by late interaction.

Khattab and Zaharia, *ColBERT* (SIGIR 2020), section 3.3: every token of the question takes its best
cosine among the sentence's tokens. Here the encoder is frozen and not trained for it, a sentence's
tokens are encoded in the context of its excerpt, and the question's tokens are weighted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from posology.llm.offline.weights import TokenWeights
from posology.types import Excerpt, Sentence, TokenVectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from posology.seams import TokenEncoder

#: Cap of a token's weight, nats: otherwise one rare word piece outvotes the rest of the question.
MAX_WEIGHT = 6.0
#: How much the match of the whole excerpt counts beside that of the sentence, which counts 1: what a
#: question presupposes often stands in another sentence than what it asks for.
EXCERPT_SHARE = 0.5
#: Rare in abstracts, so of high weight, yet no sentence that answers repeats them.
QUESTION_WORDS = frozenset(["what", "which", "who", "whom", "whose", "when", "where", "why", "how"])

_WORD = re.compile(r"\w")


@dataclass(frozen=True, kw_only=True, slots=True)
class Scored:
    """One shown sentence and how well it matches the question."""

    #: position of the excerpt among those of the call, from 0
    excerpt: int
    sentence: Sentence
    #: weighted mean cosine, -1 to 1; or by a cross-encoder, the probability that it answers
    score: float


class SentenceScorer:
    """Scores the sentences of excerpts. Blocking; as thread-safe as its encoder."""

    def __init__(self, encoder: TokenEncoder) -> None:
        self._encoder = encoder
        self._weigh = TokenWeights.of(encoder)

    def __call__(self, question: str, excerpts: Sequence[Excerpt]) -> list[Scored]:
        """Score every shown sentence, best first; ties keep the order in which they are shown.

        Only what an excerpt shows is read: its other sentences lend no context.
        """
        if not any(excerpt.sentences for excerpt in excerpts):
            return []
        shown = [_joined(excerpt) for excerpt in excerpts]
        asked, *read = self._encoder.token_vectors([question, *(text for text, _ in shown)])
        weights = self._weights(question, asked)
        if not weights.size:
            return []
        scored = []
        for i, (excerpt, (_, starts), tokens) in enumerate(zip(excerpts, shown, read, strict=True)):
            if not tokens.ids.size:
                continue
            cosines = asked.vectors @ tokens.vectors.T
            whole = float(weights @ cosines.max(axis=1))
            for k, sentence in enumerate(excerpt.sentences):
                end = starts[k] + sentence.end - sentence.start
                inside = (tokens.starts >= starts[k]) & (tokens.starts < end)
                if inside.any():
                    own = float(weights @ cosines[:, inside].max(axis=1))
                    score = (own + EXCERPT_SHARE * whole) / (1 + EXCERPT_SHARE)
                    scored.append(Scored(excerpt=i, sentence=sentence, score=score))
        return sorted(scored, key=lambda s: -s.score)

    def _weights(self, question: str, asked: TokenVectors) -> NDArray[np.float32]:
        """Return one weight for each token of the question, with sum 1; empty: no tokens."""
        if not asked.ids.size:
            return np.zeros(0, dtype=np.float32)
        weights = np.minimum(self._weigh(asked.ids), np.float32(MAX_WEIGHT))
        for i, (start, end) in enumerate(zip(asked.starts, asked.ends, strict=True)):
            piece = question[start:end].lower()
            if piece in QUESTION_WORDS or not _WORD.search(piece):
                weights[i] = 0
        total = weights.sum()
        if total <= 0:
            return np.full(weights.shape, 1 / weights.size, dtype=np.float32)
        normalised: NDArray[np.float32] = weights / total
        return normalised


def _joined(excerpt: Excerpt) -> tuple[str, list[int]]:
    """Return the shown sentences as one text, and the start of each."""
    starts, pieces, length = [], [], 0
    for sentence in excerpt.sentences:
        starts.append(length)
        pieces.append(sentence.of(excerpt.passage.text))
        length += len(pieces[-1]) + 1
    return " ".join(pieces), starts
