"""Token codec: a token vector in 64 bytes, as vocabulary id and two bits for each of 248 residual directions.

A token's vector lies near a centre of its word. The id selects the centre and is also the lexical match. The residual
is rotated to its principal directions; each of the first 248 is quantised to the four levels that are best for a
normal distribution (Lloyd and Max). ColBERTv2 (Santhanam et al. 2022, section 3.3) uses centres found by clustering.
Figures: ``strategies/compression/models/MODEL_CARD.md``.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from posology.types import TokenVectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODELS = Path(__file__).parent.parent / "models"
FILE = "late-codec.npz"
#: Version of a code's layout.
FORMAT = 1
#: bytes of a token
WIDTH = 64
#: Bytes of the id among them, the lower first.
ID_BYTES = 2
#: Directions in a byte.
PER_BYTE = 4
#: Quantised directions.
KEPT = (WIDTH - ID_BYTES) * PER_BYTE
#: Levels of two bits and the bounds between them, in standard deviations.
LEVELS = np.array([-1.510, -0.4528, 0.4528, 1.510], np.float32)
_BOUNDS = np.array([-0.9816, 0.0, 0.9816], np.float32)
#: byte → its four levels
_DECODED = LEVELS[(np.arange(256)[:, None] >> np.arange(0, 8, 2)) & 3]
#: Tokens decoded at a time: they stay in the processor's cache until multiplied.
_BLOCK = 512


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LateCodec:
    """A :class:`~posology.seams.TokenCodec`."""

    #: name, with the digest of its weights
    name: str
    #: name of the embedder that it was trained on
    embedder: str
    #: dim × dim, orthogonal, columns by falling variance, float32
    rotation: NDArray[np.float32]
    #: one a vocabulary id, rotated, shape ``(vocabulary, dim)``, int8, in units of its ``scales``
    centres: NDArray[np.int8]
    #: shape ``(vocabulary,)``, float32
    scales: NDArray[np.float32]
    #: standard deviation in each kept direction, shape ``(248,)``, float32
    deviations: NDArray[np.float32]

    @classmethod
    def packaged(cls) -> LateCodec:
        """Return the packaged codec; its file is read once."""
        return _packaged()

    @classmethod
    def read(cls, content: bytes) -> LateCodec:
        """Read a codec from the bytes of its file.

        Raises:
            ValueError: the file has another format.
        """
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            if int(file["format"]) != FORMAT:
                raise ValueError(
                    f"codec file must have format {FORMAT} (got format {int(file['format'])})"
                )
            return cls(
                name=f"late-{hashlib.sha256(content).hexdigest()[:12]}",
                embedder=str(file["embedder"]),
                rotation=file["rotation"].astype(np.float32),
                centres=file["centres"],
                scales=file["scales"].astype(np.float32),
                deviations=file["deviations"].astype(np.float32),
            )

    @property
    def width(self) -> int:
        """Return the bytes a token."""
        return WIDTH

    def __call__(self, tokens: TokenVectors) -> NDArray[np.uint8]:
        """Encode token vectors.

        Args:
            tokens: token vectors of its embedder.

        Returns:
            Codes, shape ``(n, 64)``.

        Raises:
            ValueError: the vectors' length or an id is not of its embedder.
        """
        n, dim = tokens.vectors.shape
        if dim != len(self.rotation):
            raise ValueError(
                f"token vectors must have {len(self.rotation)} numbers (got vectors of {dim})"
            )
        if n and not 0 <= tokens.ids.min() <= tokens.ids.max() < len(self.centres):
            raise ValueError(
                f"token ids must be below {len(self.centres)}: these are of another vocabulary"
            )
        codes = np.empty((n, WIDTH), np.uint8)
        codes[:, 0] = tokens.ids & 255
        codes[:, 1] = tokens.ids >> 8
        left = tokens.vectors @ self.rotation[:, :KEPT]
        left -= self.centres[tokens.ids, :KEPT] * self.scales[tokens.ids, None]
        levels = np.digitize(left / self.deviations, _BOUNDS).astype(np.uint8)
        packed = levels.reshape(n, KEPT // PER_BYTE, PER_BYTE) << np.arange(0, 8, 2, dtype=np.uint8)
        codes[:, ID_BYTES:] = packed.sum(axis=2, dtype=np.uint8)
        return codes

    def ids(self, codes: NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return vocabulary ids, shape ``(n,)``."""
        return codes[:, 0].astype(np.int64) | codes[:, 1].astype(np.int64) << 8

    def vectors(self, codes: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Decode vectors, shape ``(n, dim)``, float32, of about unit length."""
        ids = self.ids(codes)
        centres = self.centres[ids].astype(np.float32)
        found: NDArray[np.float32] = centres * self.scales[ids, None]
        found[:, :KEPT] += self._rest(codes) * self.deviations
        back: NDArray[np.float32] = found @ self.rotation.T
        return back

    def products(
        self, codes: NDArray[np.uint8], directions: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return inner products of the coded vectors with others, without decoding them.

        Args:
            codes: shape ``(n, 64)``.
            directions: shape ``(m, dim)``.

        Returns:
            Shape ``(n, m)``, float32.
        """
        turned = directions @ self.rotation
        # words repeat: each centre is multiplied once
        known, place = np.unique(self.ids(codes), return_inverse=True)
        of_words = (self.centres[known].astype(np.float32) @ turned.T) * self.scales[known, None]
        found: NDArray[np.float32] = of_words.take(place, axis=0)
        kept = np.ascontiguousarray((turned[:, :KEPT] * self.deviations).T)
        for begin in range(0, len(codes), _BLOCK):
            rows = slice(begin, begin + _BLOCK)
            found[rows] += self._rest(codes[rows]) @ kept
        return found

    def _rest(self, codes: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return the levels of the kept directions, in standard deviations, shape ``(n, 248)``."""
        rest: NDArray[np.float32] = _DECODED.take(codes[:, ID_BYTES:], axis=0)
        return rest.reshape(len(codes), KEPT)


@cache
def _packaged() -> LateCodec:
    return LateCodec.read((MODELS / FILE).read_bytes())
