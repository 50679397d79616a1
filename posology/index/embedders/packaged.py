"""The packaged encoder: all-MiniLM-L6-v2 in integers, which runs without torch. Its files: ``posology/minilm/MODEL_CARD.md``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from posology.hub import PACKAGED
from posology.index.embedders.card import Card, Loaded
from posology.index.embedders.onnx.files import CARD, MODEL, TOKENIZER
from posology.index.embedders.onnx.forward import OnnxForward, WordVectors

#: vectors of words as integers, shape ``(vocabulary, dim)``, int8; and the scale of each row, shape ``(vocabulary, 1)``, float32
WORDS, SCALES = "words.npy", "scales.npy"


@cache
def words(folder: Path = PACKAGED) -> WordVectors:
    """Return the vectors of words. All processes of a machine share the memory of the file."""
    numbers = np.load(folder / WORDS, mmap_mode="r")
    return WordVectors(numbers=numbers, scales=np.load(folder / SCALES))


def load_packaged(folder: Path = PACKAGED, *, threads: int | None = None) -> Loaded:
    """Load the packaged encoder. Blocking.

    Args:
        folder: of its files.
        threads: of a pass; ``None``: one a core.
    """
    card = Card.parse((folder / CARD).read_text(encoding="utf-8"))
    return Loaded(
        card=card,
        tokenizer=(folder / TOKENIZER).read_text(encoding="utf-8"),
        forward=OnnxForward(folder / MODEL, card, threads=threads, words=words(folder)),
    )
