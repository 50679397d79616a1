"""The vectors of the passages and questions that the pruner is trained and measured on."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evals.pruner_data import Case, Texts
from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder, heading
from posology.types import Passage, Sentence

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Bank:
    """What the index would keep of passages, at full precision."""

    #: token vectors of unit length, shape ``(tokens, dim)``, float16
    tokens: NDArray[np.float16]
    #: vocabulary ids, shape ``(tokens,)``
    ids: NDArray[np.int32]
    #: a passage's first token, shape ``(passages + 1,)``
    first: NDArray[np.int64]
    #: a passage's tokens of the heading, then of each sentence
    counts: list[NDArray[np.int32]]
    #: as the index keeps them, shape ``(sentences, dim)``, float16
    sentence_vectors: NDArray[np.float16]
    #: a passage's first sentence, shape ``(passages + 1,)``
    first_sentence: NDArray[np.int64]
    #: shape ``(passages, dim)``, float16
    vectors: NDArray[np.float16]
    #: characters of every sentence, shape ``(sentences,)``
    chars: NDArray[np.int32]


def encode(
    texts: Texts,
    embedder: SentenceTransformerEmbedder,
    folder: Path,
    name: str,
    *,
    chunk: int = 256,
) -> Bank:
    """Encode all, or read what was encoded before."""
    folder.mkdir(parents=True, exist_ok=True)
    total = len(texts.passages)
    digest = hashlib.sha256(json.dumps([(p.title, p.text) for p in texts.passages]).encode())
    target = folder / f"{name}-{digest.hexdigest()[:10]}"
    target.mkdir(exist_ok=True)
    pieces: dict[str, list[Any]] = {
        k: [] for k in ("tokens", "ids", "counts", "sizes", "sentences", "vectors")
    }
    for begin in range(0, total, chunk):
        file = target / f"{begin}.npz"
        if not file.exists():
            passages = texts.passages[begin : begin + chunk]
            sentences = texts.sentences[begin : begin + chunk]
            made: dict[str, Any] = _encode(passages, sentences, embedder)
            np.savez(target / "part.npz", **made)
            (target / "part.npz").rename(file)
            print(f"{name}: {min(begin + chunk, total)} of {total} encoded", flush=True)
        with np.load(file) as loaded:
            for key, piece in pieces.items():
                piece.append(loaded[key])
    joined = {key: np.concatenate(piece) for key, piece in pieces.items()}
    bounds = np.cumsum([0, *(1 + len(s) for s in texts.sentences)])
    counts = [joined["counts"][a:b] for a, b in pairwise(bounds)]
    return Bank(
        tokens=joined["tokens"],
        ids=joined["ids"],
        first=np.concatenate([[0], np.cumsum(joined["sizes"])]),
        counts=counts,
        sentence_vectors=joined["sentences"],
        first_sentence=np.cumsum([0, *map(len, texts.sentences)]),
        vectors=joined["vectors"],
        chars=np.array([s.end - s.start for of in texts.sentences for s in of], np.int32),
    )


def _encode(
    passages: Sequence[Passage],
    sentences: Sequence[tuple[Sentence, ...]],
    embedder: SentenceTransformerEmbedder,
) -> dict[str, NDArray[Any]]:
    full = [heading(p) + p.text for p in passages]
    found = embedder.token_vectors(full)
    alone = embedder.embed_queries(
        [s.of(p.text) for p, of in zip(passages, sentences, strict=True) for s in of]
    )
    counts, mixed, vectors, done = [], [], [], 0
    for passage, of, tokens in zip(passages, sentences, found, strict=True):
        offset = len(heading(passage))
        starts = np.array([offset + s.start for s in of], np.int64)
        bounds = np.searchsorted(tokens.starts, starts)
        counts.append(np.diff(np.concatenate([[0], bounds, [len(tokens.ids)]])))
        # near enough what the embedder's second and third passes over the same text would give: means of
        # unit vectors, of all windows
        edges = np.concatenate([bounds, [len(tokens.ids)]])
        means = np.stack(
            [tokens.vectors[a : max(b, a + 1)].mean(axis=0) for a, b in pairwise(edges)]
        )
        mixed.append(_unit(_unit(means) + alone[done : done + len(of)]))
        vectors.append(_unit(tokens.vectors.mean(axis=0)[None])[0])
        done += len(of)
    return {
        "tokens": np.concatenate([t.vectors for t in found]).astype(np.float16),
        "ids": np.concatenate([t.ids for t in found]).astype(np.int32),
        "counts": np.concatenate(counts).astype(np.int32),
        "sizes": np.array([len(t.ids) for t in found], np.int64),
        "sentences": np.concatenate(mixed).astype(np.float16),
        "vectors": np.stack(vectors).astype(np.float16),
    }


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: NDArray[np.float32] = rows / np.maximum(lengths, np.float32(1e-12))
    return unit


def idf(banks: Iterable[Bank], size: int) -> NDArray[np.float32]:
    """``log(N / (1 + n))`` over passages by vocabulary id, shape ``(size,)``."""
    df, total = np.zeros(size), 0
    for bank in banks:
        for a, b in zip(bank.first[:-1], bank.first[1:], strict=True):
            df[np.unique(bank.ids[a:b])] += 1
            total += 1
    return np.log(total / (1 + df)).astype(np.float32).clip(0.1, math.inf)


def batches(cases: Sequence[Case], size: int) -> Iterator[Sequence[Case]]:
    """Cases, so many at a time."""
    for begin in range(0, len(cases), size):
        yield cases[begin : begin + size]
