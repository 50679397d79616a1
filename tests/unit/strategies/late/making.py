"""A codec and a head of random weights, and retrievals that they read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from posology.query import make_query
from posology.text.sentences import split
from posology.types import Passage, Ranking, Retrieval, Retrieved, TokenCodes, TokenVectors
from strategies.compression.late.codec import KEPT, LateCodec
from strategies.compression.late.features import KINDS, NAMES, Weights
from strategies.compression.late.head import COMPARED, Head

if TYPE_CHECKING:
    from numpy.typing import NDArray

DIM, VOCABULARY, HIDDEN, NETWORKS = 256, 300, 4, 2


def unit(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(
        np.float32
    )
    return found


def make_codec(name: str = "late-test") -> LateCodec:
    rng = np.random.default_rng(1)
    rotation = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0].astype(np.float32)
    return LateCodec(
        name=name,
        embedder="test",
        rotation=rotation,
        centres=rng.integers(-20, 20, (VOCABULARY, DIM)).astype(np.int8),
        scales=np.full(VOCABULARY, 0.0005, np.float32),
        deviations=np.full(KEPT, 1 / np.sqrt(DIM), np.float32),
    )


def make_head(codec: str = "late-test", seed: int = 2) -> Head:
    rng = np.random.default_rng(seed)

    def random(*shape: int) -> NDArray[np.float32]:
        return rng.normal(0, 0.3, shape).astype(np.float32)

    n, h, width = NETWORKS, HIDDEN, len(NAMES) + len(COMPARED)
    return Head(
        version="test",
        codec=codec,
        threshold=0.5,
        left=0.2,
        calibration=(1.0, 0.0),
        weights=Weights(
            idf=rng.uniform(0.1, 7, VOCABULARY).astype(np.float32),
            digits=rng.random(VOCABULARY) < 0.1,
            token=random(h, DIM),
            question=random(2 * DIM + len(KINDS) + 1, h),
            echo=random(2, h),
            bias=random(h),
            out=random(h),
        ),
        mean=random(width),
        deviation=np.ones(width, np.float32),
        layers={
            "w1": random(n, width, h),
            "b1": random(n, 1, h),
            "w2": random(n, h, h),
            "b2": random(n, 1, h),
            "w3": random(n, 4 * h, h),
            "b3": random(n, 1, h),
            "w4": random(n, h, 1),
            "b4": random(n, 1, 1),
            "skip": random(n, width, 1),
            "p1": random(n, 2 * h, h),
            "c1": random(n, 1, h),
            "p2": random(n, h, 1),
            "c2": random(n, 1, 1),
        },
    )


def make_retrieval(
    texts: tuple[str, ...],
    *,
    codec: LateCodec | None = None,
    question: str = "Does aspirin lower the risk of stroke?",
    seed: int = 0,
) -> Retrieval:
    """Passages with random vectors; a token is a word."""
    codec = make_codec() if codec is None else codec
    rng = np.random.default_rng(seed)
    passages = []
    for i, text in enumerate(texts):
        sentences = split(text)
        # two tokens of a heading
        counts = np.array([2, *(len(s.of(text).split()) for s in sentences)], np.int32)
        passages.append(
            Retrieved(
                passage=Passage(id=f"p:{i}", text=text),
                sentences=sentences,
                vector=unit(rng.normal(size=(1, DIM)))[0],
                sentence_vectors=np.round(
                    unit(rng.normal(size=(max(len(sentences), 1), DIM)))[: len(sentences)] * 127
                ).astype(np.int8),
                tokens=TokenCodes(
                    codes=codec(random_tokens(int(counts.sum()), rng)), counts=counts
                ),
            )
        )
    empty = Ranking(method="dense", hits=())
    return Retrieval(
        query=make_query(question),
        passages=tuple(passages),
        query_vector=unit(rng.normal(size=(1, DIM)))[0],
        dense=empty,
        bm25_rerank=empty,
        bm25=empty,
        fused=empty,
        index_version="index@1",
        query_tokens=random_tokens(len(question.split()), rng),
        codec=codec.name,
    )


def random_tokens(n: int, rng: np.random.Generator) -> TokenVectors:
    places = np.arange(n)
    return TokenVectors(
        vectors=unit(rng.normal(size=(n, DIM))),
        ids=rng.integers(0, VOCABULARY, n),
        starts=places,
        ends=places,
    )
