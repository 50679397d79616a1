"""Corpora of the pruner: cases with the vectors of their passages and questions, encoded once."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder, heading
from posology.types import Passage, Sentence, TokenVectors
from strategies.compression.late.codec import LateCodec
from training.pruner_articles import covid, trials
from training.pruner_cases import Abstracts, Case, Texts, scifact, squad

if TYPE_CHECKING:
    from numpy.typing import NDArray

PARTS = ("train", "dev", "test")
#: Encoded cases of CovidQA and Evidence Inference, by part.
TAKEN = {
    "covid": {"train": 150, "dev": 40, "test": 47},
    "trials": {"train": 220, "dev": 60, "test": 90},
}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Bank:
    """Vectors of passages as the index would store them, before coding."""

    #: token vectors of unit length, shape ``(tokens, dim)``, float16
    tokens: NDArray[np.float16]
    #: vocabulary ids, shape ``(tokens,)``
    ids: NDArray[np.int32]
    #: first token of each passage, shape ``(passages + 1,)``
    first: NDArray[np.int64]
    #: tokens of each passage's heading, then of its sentences
    counts: list[NDArray[np.int32]]
    #: sentence vectors, shape ``(sentences, dim)``, float16
    sentence_vectors: NDArray[np.float16]
    #: first sentence of each passage, shape ``(passages + 1,)``
    first_sentence: NDArray[np.int64]
    #: passage vectors, shape ``(passages, dim)``, float16
    vectors: NDArray[np.float16]
    #: characters of each sentence, shape ``(sentences,)``
    chars: NDArray[np.int32]


def encode(
    texts: Texts,
    embedder: SentenceTransformerEmbedder,
    folder: Path,
    name: str,
    *,
    chunk: int = 256,
) -> Bank:
    """Encode all passages, or read them from the cache in ``folder``."""
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
    tokenised = embedder.token_vectors(full)
    alone = embedder.embed_queries(
        [s.of(p.text) for p, of in zip(passages, sentences, strict=True) for s in of]
    )
    counts, mixed, vectors, done = [], [], [], 0
    for passage, of, tokens in zip(passages, sentences, tokenised, strict=True):
        offset = len(heading(passage))
        starts = np.array([offset + s.start for s in of], np.int64)
        bounds = np.searchsorted(tokens.starts, starts)
        counts.append(np.diff(np.concatenate([[0], bounds, [len(tokens.ids)]])))
        # close to the embedder's second and third passes over the same text: means of unit vectors of all windows
        edges = np.concatenate([bounds, [len(tokens.ids)]])
        means = np.stack(
            [tokens.vectors[a : max(b, a + 1)].mean(axis=0) for a, b in pairwise(edges)]
        )
        mixed.append(_unit(_unit(means) + alone[done : done + len(of)]))
        vectors.append(_unit(tokens.vectors.mean(axis=0)[None])[0])
        done += len(of)
    return {
        "tokens": np.concatenate([t.vectors for t in tokenised]).astype(np.float16),
        "ids": np.concatenate([t.ids for t in tokenised]).astype(np.int32),
        "counts": np.concatenate(counts).astype(np.int32),
        "sizes": np.array([len(t.ids) for t in tokenised], np.int64),
        "sentences": np.concatenate(mixed).astype(np.float16),
        "vectors": np.stack(vectors).astype(np.float16),
    }


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: NDArray[np.float32] = rows / np.maximum(lengths, np.float32(1e-12))
    return unit


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Corpus:
    """Cases with their passages' and questions' vectors."""

    texts: Texts
    cases: list[Case]
    bank: Bank
    #: question → its token vectors and its vector
    asked: dict[str, tuple[TokenVectors, NDArray[np.float32]]]


def open_corpora(
    data: Path,
    work: Path,
    embedder: SentenceTransformerEmbedder,
    questions: int | None = None,
    parts: Sequence[str] = PARTS,
) -> list[Corpus]:
    """Return the corpora of SQuAD and of the literature.

    Args:
        data: folder of the data sets.
        work: folder of the cache of vectors.
        embedder: of the vectors.
        questions: maximum of each set and part; ``None``: all.
        parts: to encode.
    """
    texts, cases = _few(*squad(data, embedder), questions, parts)
    corpora = [_corpus(texts, cases, embedder, work, "squad")]
    pool = Abstracts.load(data)
    texts = Texts()
    cases = scifact(data, pool, texts, embedder)
    rng = random.Random(0)
    others = Texts()
    more = [*covid(data, others, embedder), *trials(data, pool, others)]
    for origin, taken in TAKEN.items():
        for part, n in taken.items():
            of = [c for c in more if c.origin == origin and c.part == part]
            for case in rng.sample(of, min(n, len(of))):
                first = case.passages[:3]
                moved = tuple(
                    texts.add(others.passages[p].title, others.passages[p].text) for p in first
                )
                cases.append(
                    replace(case, passages=moved, gold=case.gold[:3], kinds=case.kinds[:3])
                )
    texts, cases = _few(texts, cases, questions, parts)
    corpora.append(_corpus(texts, cases, embedder, work, "literature"))
    return corpora


def _few(
    texts: Texts, cases: list[Case], questions: int | None, parts: Sequence[str]
) -> tuple[Texts, list[Case]]:
    """Return the first cases of every set and of some parts, with only their passages."""
    if questions is None and set(parts) == set(PARTS):
        return texts, cases
    seen: Counter[tuple[str, str]] = Counter()
    kept, needed = [], Texts()
    for case in cases:
        seen[case.origin, case.part] += 1
        if case.part in parts and (questions is None or seen[case.origin, case.part] <= questions):
            own = [texts.passages[p] for p in case.passages]
            kept.append(replace(case, passages=tuple(needed.add(p.title, p.text) for p in own)))
    return needed, kept


def _corpus(
    texts: Texts, cases: list[Case], embedder: SentenceTransformerEmbedder, work: Path, name: str
) -> Corpus:
    bank = encode(texts, embedder, work, name)
    questions = list(dict.fromkeys(case.question for case in cases))
    tokens, whole = embedder.token_vectors(questions), embedder.embed_queries(questions)
    asked = dict(zip(questions, zip(tokens, whole, strict=True), strict=True))
    return Corpus(texts=texts, cases=cases, bank=bank, asked=asked)


def coded(bank: Bank, codec: LateCodec) -> NDArray[np.uint8]:
    """Return the codes of all tokens of a bank."""
    parts = []
    for begin in range(0, len(bank.ids), 50_000):
        ids = bank.ids[begin : begin + 50_000].astype(np.int64)
        vectors = bank.tokens[begin : begin + 50_000].astype(np.float32)
        parts.append(codec(TokenVectors(vectors=vectors, ids=ids, starts=ids, ends=ids)))
    return np.concatenate(parts)
