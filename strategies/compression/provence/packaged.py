"""Provence by the packaged cross-encoder: no checkpoint to fetch, no torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from strategies.compression.provence.judge import CHARACTERS, Judge, Judgement

if TYPE_CHECKING:
    from posology.reading.crossencoder import CrossEncoder
    from posology.types import Retrieved

#: seconds per token on two cores with AVX512-VNNI, see ``python -m evals.compressors``
SECONDS_A_TOKEN = 6e-5


class PackagedJudge(Judge):
    """Judges by the packaged cross-encoder's heads of tokens and ranking.

    Args:
        encoder: the cross-encoder.
    """

    def __init__(self, encoder: CrossEncoder) -> None:
        super().__init__(name=encoder.name, prunes=True, ranks=True)
        self._encoder = encoder

    def _seconds(self, characters: int) -> float:
        return SECONDS_A_TOKEN * characters / CHARACTERS

    def _judge(self, query: str, passages: Sequence[Retrieved]) -> list[Judgement]:
        from posology.index.embedders.sentence_transformer import heading
        from posology.reading.crossencoder import RANK, RELEVANT
        from posology.reading.pairs import HEADING, pairs

        windows = [
            (i, pair)
            for i, one in enumerate(passages)
            for pair in pairs(query, one.passage.text, one.sentences, heading=heading(one.passage))
        ]
        scores = self._encoder.scores([pair for _, pair in windows])
        found = []
        for i, one in enumerate(passages):
            own = [(p, s) for (at, p), s in zip(windows, scores, strict=True) if at == i]
            # without sentences there is nothing to keep
            sentence = np.concatenate([p.sentence for p, _ in own])
            odds = np.concatenate([s.tokens[:, RELEVANT] for _, s in own])
            found.append(
                Judgement(
                    score=max(float(s.text[RANK]) for _, s in own),
                    kept=(1 / (1 + np.exp(-odds))).astype(np.float32),
                    sentence=np.where(len(one.sentences) > 0, sentence, HEADING).astype(np.int32),
                )
            )
        return found
