"""Weights of a question's tokens: inverse document frequencies from a packaged table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from posology.seams import TokenEncoder

#: Written by ``python -m training.token_weights``.
TABLE = Path(__file__).parent / "data" / "token_df.npz"
#: Its ids identify the vocabulary of the table.
PROBE = "the dose of warfarin was increased"


class TokenWeights:
    """Weights of vocabulary ids: ``log((N + 1) / (df + 1))``, in nats.

    An encoder of another vocabulary gets equal weights: the table says nothing of its ids.

    Args:
        probed: the vocabulary's ids of :data:`PROBE`.
    """

    @classmethod
    def of(cls, encoder: TokenEncoder) -> TokenWeights:
        """Return the weights for an encoder's vocabulary."""
        (tokens,) = encoder.token_vectors([PROBE])
        return cls(tokens.ids)

    def __init__(self, probed: ArrayLike) -> None:
        with np.load(TABLE) as table:
            df, documents, probe = table["df"], int(table["documents"]), table["probe"]
        self._idf: NDArray[np.float32] | None = None
        if np.array_equal(probed, probe):
            self._idf = np.log((documents + 1) / (df.astype(np.float32) + 1)).astype(np.float32)

    def __call__(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the weights of ``ids``, same shape, at least 0."""
        if self._idf is None:
            return np.ones(ids.shape, dtype=np.float32)
        return self._idf[ids]
