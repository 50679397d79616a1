"""Compression of token vectors, window by window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from posology.types import TokenCodes, TokenVectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from posology.index.embedders.encoder import Tokens
    from posology.index.embedders.windows import Window
    from posology.seams import TokenCodec


class Coder:
    """The codes of several passages, which grow window by window.

    Tokens between two sentences count with the first of them, tokens before the first sentence with the heading: every
    token is counted once.

    Args:
        codec: compresses.
        tokens: of each passage, as it is encoded.
        bounds: for each passage the first token of each sentence, shape ``(sentences, 2)``, first column.
        prompt: what each passage begins with for the model alone; its tokens have no codes.
    """

    def __init__(
        self,
        codec: TokenCodec,
        tokens: Sequence[Tokens],
        bounds: Sequence[NDArray[np.int64]],
        prompt: str,
    ) -> None:
        self._codec = codec
        self._tokens = tokens
        self._prompt = prompt
        self._own = [first_own(of_text, prompt) for of_text in tokens]
        #: one a passage; a code is 0 until the window that owns its token has come
        self.codes = [
            _room(of_text, own, at[:, 0], codec.width)
            for of_text, own, at in zip(tokens, self._own, bounds, strict=True)
        ]

    def add(self, window: Window, vectors: NDArray[np.float32]) -> None:
        """Compress the tokens that a window owns.

        Args:
            window: of one of the passages.
            vectors: of its tokens, shape ``(window.end - window.start, hidden)``, of any length.
        """
        own = self._own[window.text]
        part = slice(max(window.start, own), window.owned)
        if part.start >= part.stop:
            return
        kept = vectors[part.start - window.start : part.stop - window.start]
        given = token_vectors(kept, self._tokens[window.text], part, self._prompt)
        self.codes[window.text].codes[part.start - own : part.stop - own] = self._codec(given)


def first_own(tokens: Tokens, prompt: str) -> int:
    """Return the first token that is not of the prompt."""
    return int(np.searchsorted(tokens.starts, len(prompt), side="left"))


def token_vectors(
    vectors: NDArray[np.float32], tokens: Tokens, part: slice, prompt: str
) -> TokenVectors:
    """Return vectors of part of the tokens, made to unit length, with offsets into what follows the prompt."""
    return TokenVectors(
        vectors=unit(vectors),
        ids=tokens.ids[part],
        starts=tokens.starts[part] - len(prompt),
        ends=tokens.ends[part] - len(prompt),
    )


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return rows scaled to unit length; a row of zeros stays one."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: NDArray[np.float32] = vectors / np.maximum(lengths, np.float32(1e-12))
    return scaled.astype(np.float32, copy=False)


def _room(tokens: Tokens, own: int, starts: NDArray[np.int64], width: int) -> TokenCodes:
    counts = np.diff(starts, prepend=own, append=len(tokens.ids))
    codes = np.zeros((len(tokens.ids) - own, width), dtype=np.uint8)
    return TokenCodes(codes=codes, counts=counts.astype(np.int32))
