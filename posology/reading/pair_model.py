"""A packaged model that reads pairs: a question or a claim, then a text.

Its word embeddings are those of the packaged MiniLM and are not shipped twice: the file has the layers and the heads, in bytes.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from posology.cancellation import checkpoint
from posology.index.embedders.onnx.forward import open_session
from posology.index.embedders.packaged import words
from posology.index.embedders.windows import batches
from posology.reading.pairs import LIMIT, Pair, padded

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: padded tokens of a forward pass
TOKENS = 2_048


def tempered(
    logits: NDArray[np.float32], temperature: float, offsets: Sequence[float]
) -> NDArray[np.float32]:
    """Return the probabilities of calibrated logits, both of shape ``(n, classes)``."""
    scaled = logits / temperature + np.array(offsets, np.float32)
    odds = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    found: NDArray[np.float32] = (odds / odds.sum(axis=1, keepdims=True)).astype(np.float32)
    return found


class PairModel:
    """An ONNX model over pairs.

    Thread-safe; one forward pass at a time, because a pass uses every core.

    Args:
        model: content of the ONNX file. It takes ``embeddings``, ``attention_mask`` and ``token_type_ids``.
        kind: first part of its name.
        threads: of a pass; ``None``: one a core.
    """

    def __init__(self, model: bytes, kind: str, *, threads: int | None = None) -> None:
        self._session = open_session(model, threads=threads)
        #: texts that were kept in the file
        self.metadata: dict[str, str] = self._session.get_modelmeta().custom_metadata_map
        #: its kind with the digest of its file
        self.name = f"{kind}:{hashlib.sha256(model).hexdigest()[:12]}"
        self._words = words()
        self._turn = threading.Lock()

    def run(
        self, inputs: Sequence[Pair], outputs: Sequence[str]
    ) -> list[tuple[NDArray[np.float32], ...]]:
        """Return outputs of the model for each input, batched by length; those of tokens with padding. Blocking."""
        results: dict[int, tuple[NDArray[np.float32], ...]] = {}
        lengths = [len(one.ids) for one in inputs]
        for batch in batches(lengths, budget=TOKENS, limit=LIMIT, few_shapes=False):
            checkpoint()
            ids, mask, segments = padded([inputs[i] for i in batch.items])
            feed = {
                "embeddings": self._words[ids],
                "attention_mask": mask,
                "token_type_ids": segments,
            }
            with self._turn:
                arrays = self._session.run(list(outputs), feed)
            for row, i in enumerate(batch.items):
                results[i] = tuple(array[row].copy() for array in arrays)
        return [results[i] for i in range(len(inputs))]
