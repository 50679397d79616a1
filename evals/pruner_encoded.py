"""Passages of the pool as an index with token codes keeps them: encoded once, in a folder of work.

A folder holds a file for every 64 passages, so that a run that was cut short goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from posology.index.embedders import load
from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder
from posology.text.sentences import split
from posology.types import Passage, TokenCodes
from strategies.compression.late.codec import LateCodec

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHUNK = 64


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Kept:
    """What the index keeps of one passage besides its own vector."""

    tokens: TokenCodes
    #: as in :class:`~posology.types.Retrieved`
    sentence_vectors: NDArray[np.int8]


def encode(passages: Sequence[Passage], folder: Path, *, processes: int) -> dict[str, Kept]:
    """Encode those that are not in the folder yet; all that are there, by id.

    Args:
        passages: in the order in which they are wanted.
        folder: one for each codec and embedder.
        processes: each with one thread and a copy of the model.
    """
    folder.mkdir(parents=True, exist_ok=True)
    known = read(folder)
    missing = [p for p in passages if p.id not in known]
    chunks = [missing[i : i + CHUNK] for i in range(0, len(missing), CHUNK)]
    if not chunks:
        return known
    # a thread each: two processes of two threads are slower on two cores
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for n, _ in enumerate(pool.map(_write, chunks, [folder] * len(chunks)), start=1):
            print(f"{n} of {len(chunks)} chunks of {CHUNK} passages encoded", flush=True)
    return read(folder)


def read(folder: Path) -> dict[str, Kept]:
    """All that the folder holds, by passage id."""
    found: dict[str, Kept] = {}
    for file in sorted(folder.glob("*.npz")):
        with np.load(file, allow_pickle=False) as loaded:
            found.update(_unpacked({name: loaded[name] for name in loaded.files}))
    return found


def write(kept: Mapping[str, Kept], folder: Path) -> None:
    """A file of the folder, whole or not at all."""
    name = hashlib.sha256("\n".join(kept).encode()).hexdigest()[:16]
    values = list(kept.values())
    part = folder / f"{name}.part"
    with part.open("wb") as file:
        np.savez(
            file,
            ids=np.array(list(kept)),
            tokens=np.array([len(one.tokens.codes) for one in values], np.int64),
            sentences=np.array([len(one.sentence_vectors) for one in values], np.int64),
            codes=np.concatenate([one.tokens.codes for one in values]),
            counts=np.concatenate([one.tokens.counts for one in values]),
            vectors=np.concatenate([one.sentence_vectors for one in values]),
        )
    part.rename(folder / f"{name}.npz")


def _unpacked(file: dict[str, NDArray[Any]]) -> Iterator[tuple[str, Kept]]:
    tokens, sentences = (np.cumsum([0, *file[name]]) for name in ("tokens", "sentences"))
    spans = zip(pairwise(tokens.tolist()), pairwise(sentences.tolist()), strict=True)
    for i, (name, ((a, b), (c, d))) in enumerate(zip(file["ids"].tolist(), spans, strict=True)):
        # a passage has a count more than sentences: its heading's
        yield (
            name,
            Kept(
                tokens=TokenCodes(
                    codes=file["codes"][a:b], counts=file["counts"][c + i : d + i + 1]
                ),
                sentence_vectors=file["vectors"][c:d],
            ),
        )


def _write(passages: Sequence[Passage], folder: Path) -> None:
    embedder, codec = _model(), LateCodec.packaged()
    sentences = [split(p.text) for p in passages]
    found: dict[str, Kept] = {}
    made = embedder.embed_passages(passages, sentences, codec)
    for passage, one in zip(passages, made, strict=True):
        assert one.tokens is not None
        found[passage.id] = Kept(
            tokens=one.tokens,
            sentence_vectors=np.round(one.sentence_vectors * 127).astype(np.int8),
        )
    write(found, folder)


@cache
def _model() -> SentenceTransformerEmbedder:
    import torch

    torch.set_num_threads(1)
    return load(None)
