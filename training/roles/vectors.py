"""Vectors of sentences as an ingest stores them, kept in files between runs."""

from __future__ import annotations

import hashlib
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from posology.index.embedders import load
from posology.index.embedders.options import Options
from posology.index.schema import quantise
from training.roles.cases import Abstract

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: abstracts a file
LOT = 128


@dataclass(frozen=True, kw_only=True, slots=True)
class Vectors:
    """The vectors of abstracts' sentences."""

    #: name of the embedder
    embedder: str
    #: of each abstract, shape ``(sentences, dim)``, int8: cosine times 127
    of: list[NDArray[np.int8]]


def encode(abstracts: Sequence[Abstract], work: Path) -> Vectors:
    """Encode sentences in passes over their abstracts; lots that a run before has encoded are read.

    Args:
        abstracts: to encode.
        work: folder of the files, and of the exported model.
    """
    options = Options(backend="onnx", precision="int8", cache=work / "models", threads=2)
    embedder = load(options=options)
    work.mkdir(parents=True, exist_ok=True)
    vectors: list[NDArray[np.int8]] = []
    for start in range(0, len(abstracts), LOT):
        lot = abstracts[start : start + LOT]
        file = work / f"{_key(lot, embedder.name)}.npy"
        if not file.exists():
            encoded = embedder.embed_passages(
                [one.passage for one in lot], [one.sentences for one in lot]
            )
            whole = np.concatenate([quantise(one.sentence_vectors) for one in encoded])
            content = io.BytesIO()
            np.save(content, whole)
            # a file is whole, or not there
            part = file.with_suffix(".part")
            part.write_bytes(content.getvalue())
            part.replace(file)
            print(f"{start + len(lot)} of {len(abstracts)} abstracts encoded", file=sys.stderr)
        ends = np.cumsum([len(one.sentences) for one in lot])
        vectors += np.split(np.load(file, allow_pickle=False), ends[:-1])
    return Vectors(embedder=embedder.name, of=vectors)


def _key(lot: Sequence[Abstract], embedder: str) -> str:
    digest = hashlib.blake2b(embedder.encode(), digest_size=12)
    for one in lot:
        digest.update(f"{one.passage.title}\0{one.passage.text}\0".encode())
    return digest.hexdigest()
