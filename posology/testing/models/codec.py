"""A codec that learns nothing: the first components of each vector, a byte each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from posology.types import TokenVectors


class TruncatingCodec:
    """A :class:`~posology.seams.TokenCodec` whose codes can be told from the vectors by hand."""

    def __init__(self, embedder: str, *, width: int = 8) -> None:
        """Say whose vectors they are and how much of them is kept.

        Args:
            embedder: name of the embedder.
            width: components kept, which is bytes a token; those that a vector lacks count as 0.
        """
        self._embedder = embedder
        self._width = width
        #: tokens of each call, in order
        self.calls: list[int] = []

    @property
    def name(self) -> str:
        """``truncating-`` and the width."""
        return f"truncating-{self._width}"

    @property
    def embedder(self) -> str:
        """As it was said."""
        return self._embedder

    @property
    def width(self) -> int:
        """As it was said."""
        return self._width

    def __call__(self, tokens: TokenVectors) -> NDArray[np.uint8]:
        """Shape ``(n, width)``: -1 becomes 0, 1 becomes 255."""
        self.calls.append(len(tokens.vectors))
        kept = tokens.vectors[:, : self._width]
        lacking = self._width - kept.shape[1]
        whole = np.pad(np.clip(kept, -1, 1), ((0, 0), (0, lacking)))
        return np.asarray(np.rint((whole + 1) * 127.5), dtype=np.uint8)
