"""Vectors of sentences alone, estimated from a pass over their passage. Figures: docs/concepts/encoding.md."""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from posology.index.embedders.codes import unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILE = Path(__file__).parent / "data" / "sentence-projection.npz"
#: features of a sentence beside its layers' means: see :func:`features`
BESIDE = 3


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Projection:
    """A linear map from the layers of a sentence in its passage to what its vector lacks to that of the sentence alone.

    Lower layers know less of the rest of the passage. So they tell what the sentence would be without it.
    """

    #: name of the embedder that it was fitted on
    embedder: str
    #: number of layers that are read, the embeddings and the last one included
    layers: int
    #: shape ``(layers * dim + BESIDE, dim)``, float32
    weights: NDArray[np.float32]

    @classmethod
    def read(cls, file: Path) -> Projection:
        """Read the file of :meth:`dump`.

        Raises:
            OSError: it cannot be read.
            ValueError: it is no such file.
        """
        with np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as found:
            try:
                return cls(
                    embedder=str(found["embedder"]),
                    layers=int(found["layers"]),
                    weights=found["weights"].astype(np.float32) * found["scales"],
                )
            except KeyError as error:
                raise ValueError(f"{file} is not a projection: it lacks {error}") from None

    def dump(self) -> bytes:
        """Return a file: integers of 8 bits, with a scale a row."""
        scales = np.maximum(np.abs(self.weights).max(axis=1, keepdims=True), 1e-12) / 127
        file = io.BytesIO()
        np.savez_compressed(
            file,
            embedder=self.embedder,
            layers=self.layers,
            weights=np.rint(self.weights / scales).astype(np.int8),
            scales=scales.astype(np.float32),
        )
        return file.getvalue()

    def __call__(self, sums: NDArray[np.float32], counts: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return vectors of sentences, shape ``(sentences, dim)``, of unit length; 0 for a sentence without tokens.

        A product of more rows may round otherwise. So the sentences are those of one passage: its vectors must not depend
        on its batch.

        Args:
            sums: of each sentence's token vectors, by layer, shape ``(sentences, layers, dim)``.
            counts: number of each sentence's tokens.
        """
        made = unit(unit(sums[:, -1]) + features(sums, counts) @ self.weights)
        made[counts == 0] = 0
        return made


def features(sums: NDArray[np.float32], counts: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return what a projection reads, shape ``(sentences, layers * dim + BESIDE)``.

    Args:
        sums: of each sentence's token vectors, by layer, shape ``(sentences, layers, dim)``.
        counts: number of each sentence's tokens.
    """
    number = np.maximum(counts, 1).astype(np.float32)
    beside = np.stack([1 / number, np.log1p(number), np.ones_like(number)], axis=1)
    flat = unit(sums).reshape(len(sums), sums.shape[1] * sums.shape[2])
    return np.concatenate([flat, beside], axis=1)


@cache
def packaged() -> Projection:
    """Return the projection that is installed, of the default embedder."""
    return Projection.read(FILE)
