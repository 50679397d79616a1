"""Passages in any number, made of real ones: the corpus of :mod:`evals.scale`.

**Vectors.** Each is of two abstracts of the pool that are near neighbours (one of 16), at a random place in the first
half of the way from the one to the other, plus half the difference of two other abstracts' vectors drawn at random:
noise with the covariance of real texts, not with that of none. Of 44,581 of these, as of the pool itself, the median
cosine to the first, 4th, 16th and 64th neighbour is printed by ``python -m evals.scale --likeness``, and how many of the
nearest to real questions are found. At 44,581 these lie further apart than the real ones, which are in clusters, and by 16
to 64 partitions about a point more is found of them: recall at larger sizes may be that much too high. At a million the
real ones would lie closer, which their growth from 3,000 to 44,581 foretells, and so do these.

**Texts.** The sentences of the one abstract, each replaced at even odds by a sentence of the other; one of their
titles. The index's sentences are those that were split once in the pool.

**Sentence vectors.** The passage's, plus what a real question has beyond the abstract that answers it.

**What they are filtered by.** Years 1975 to 2024, more of the late ones; 5,000 journals by Zipf's law; MeSH headings as
often as the pool has them; publication types in about PubMed's shares; one of 2,000 retracted.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from posology.index.embedders import load
from posology.index.schema import Row, digest
from posology.text.sentences import split
from posology.types import Encoded, Passage, Sentence
from training.gold import pubmedqa, scifact
from training.gold import rows as read

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: rows of a chunk; the same chunk is the same at any size of the corpus
CHUNK = 10_000
#: neighbours that a passage's second abstract is drawn from
NEIGHBOURS = 16
#: length of the noise, in lengths of a difference of two abstracts' vectors
NOISE = 0.5
JOURNALS = 5_000
TYPES = (
    ("Journal Article",), ("Journal Article", "Review"), ("Journal Article", "Case Reports"),
    ("Journal Article", "Randomized Controlled Trial"), ("Journal Article", "Meta-Analysis"), ("Letter",),
)  # fmt: skip
SHARES = (0.74, 0.1, 0.06, 0.03, 0.01, 0.06)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Questions:
    """Real questions with their vectors, and the passage of the pool that answers each."""

    texts: tuple[str, ...]
    #: shape ``(n, dim)``
    vectors: NDArray[np.float32]
    #: places in the pool, shape ``(n,)``
    gold: NDArray[np.int64]


class Corpus:
    """Makes chunks of rows. What it computes of the pool is kept under ``work`` (two minutes, once)."""

    def __init__(self, data: Path, work: Path, *, sentence_vectors: bool = True) -> None:
        self.data = data
        self.work = work
        self.filled = sentence_vectors
        work.mkdir(parents=True, exist_ok=True)
        vectors = np.load(data / "pool.minilm.f16.npy").astype(np.float32)
        #: of the pool, shape ``(44581, 384)``, unit length
        self.pool: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    @cached_property
    def questions(self) -> Questions:
        """Those of PubMedQA and SciFact whose abstract is in the pool."""
        places = {row["id"]: place for place, row in enumerate(self._records)}
        asked = [
            (one.text, places[gold])
            for one in (*pubmedqa(self.data), *scifact(self.data))
            for gold in sorted(one.gold & places.keys())[:1]
        ]
        texts = tuple(text for text, _ in asked)
        kept = self.work / "questions.npy"
        if not kept.exists():
            np.save(kept, load().embed_queries(texts))
        return Questions(
            texts=texts, vectors=np.load(kept), gold=np.array([gold for _, gold in asked])
        )

    def vectors(self, n: int, rng: np.random.Generator) -> NDArray[np.float32]:
        """Vectors like the pool's, shape ``(n, 384)``, unit length."""
        return self._vectors(*self._drawn(n, rng), rng)

    def rows(self, chunk: int) -> list[Row]:
        """The chunk of this number, of :data:`CHUNK` rows."""
        rng = np.random.default_rng((7, chunk))
        first, second = self._drawn(CHUNK, rng)
        vectors = self._vectors(first, second, rng)
        years = 1975 + np.floor(50 * np.sqrt(rng.random(CHUNK))).astype(int)
        journals = np.minimum(rng.zipf(1.3, CHUNK), JOURNALS)
        types = rng.choice(len(TYPES), CHUNK, p=SHARES)
        found = []
        for i in range(CHUNK):
            number = chunk * CHUNK + i
            text, sentences = self._text(int(first[i]), int(second[i]), rng)
            passage = Passage(
                id=f"pmid:{number}",
                pmid=str(number),
                title=self._titles[int((first if rng.random() < 0.5 else second)[i])],
                text=text,
                journal=f"Journal of Medicine {journals[i]}",
                year=int(years[i]),
                publication_types=TYPES[types[i]],
                mesh=self._headings(rng),
                languages=("eng",) if rng.random() < 0.9 else ("ger",),
                retracted=bool(rng.random() < 1 / 2_000),
                source="synthetic",
            )
            encoded = Encoded(
                vector=vectors[i], sentence_vectors=self._sentences(vectors[i], len(sentences), rng)
            )
            found.append(
                Row(passage=passage, sentences=sentences, encoded=encoded, digest=digest(passage))
            )
        return found

    def _drawn(
        self, n: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        first = rng.integers(0, len(self.pool), n)
        return first, self._near[first, rng.integers(0, NEIGHBOURS, n)].astype(np.int64)

    def _vectors(
        self, first: NDArray[np.int64], second: NDArray[np.int64], rng: np.random.Generator
    ) -> NDArray[np.float32]:
        pool, n = self.pool, len(first)
        way = rng.uniform(0, 0.5, (n, 1)).astype(np.float32)
        one, other = rng.integers(0, len(pool), (2, n))
        noise = NOISE * (pool[one] - pool[other]) / np.float32(np.sqrt(2))
        found = pool[first] + way * (pool[second] - pool[first]) + noise
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), dtype=np.float32)

    def _sentences(
        self, vector: NDArray[np.float32], n: int, rng: np.random.Generator
    ) -> NDArray[np.float32]:
        if not self.filled:
            return np.zeros((0, len(vector)), dtype=np.float32)
        found = vector + self._beyond[rng.integers(0, len(self._beyond), n)]
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), dtype=np.float32)

    def _text(
        self, first: int, second: int, rng: np.random.Generator
    ) -> tuple[str, tuple[Sentence, ...]]:
        own, other = self._split[first], self._split[second]
        swapped = rng.random(len(own)) < 0.5
        drawn = rng.integers(0, max(1, len(other)), len(own))
        texts = [
            other[drawn[j]] if swapped[j] and other else sentence for j, sentence in enumerate(own)
        ]
        spans, start = [], 0
        for text in texts:
            spans.append(Sentence(start=start, end=start + len(text)))
            start += len(text) + 1
        return " ".join(texts), tuple(spans)

    def _headings(self, rng: np.random.Generator) -> tuple[str, ...]:
        names, shares = self._mesh
        return tuple(names[j] for j in np.unique(rng.choice(len(names), 12, p=shares)))

    @cached_property
    def _records(self) -> list[dict[str, Any]]:
        return read(self.data / "pool.jsonl.gz")

    @cached_property
    def _titles(self) -> list[str]:
        return [row.get("title") or "" for row in self._records]

    @cached_property
    def _mesh(self) -> tuple[list[str], NDArray[np.float64]]:
        counts = Counter(name for row in self._records for name in row.get("mesh") or ())
        names = sorted(counts)
        shares = np.array([counts[name] for name in names], dtype=float)
        return names, shares / shares.sum()

    @cached_property
    def _split(self) -> list[list[str]]:
        kept = self.work / "sentences.json.gz"
        if not kept.exists():
            found = [[s.of(row["text"]) for s in split(row["text"])] for row in self._records]
            with gzip.open(kept, "wt", encoding="utf-8", compresslevel=1) as out:
                json.dump(found, out)
        with gzip.open(kept, "rt", encoding="utf-8") as lines:
            sentences: list[list[str]] = json.load(lines)
        return sentences

    @cached_property
    def _near(self) -> NDArray[np.int32]:
        kept = self.work / "neighbours.npy"
        if not kept.exists():
            np.save(kept, neighbours(self.pool, self.pool, NEIGHBOURS + 1)[:, 1:])
        return np.asarray(np.load(kept))

    @cached_property
    def _beyond(self) -> NDArray[np.float32]:
        return np.asarray(self.questions.vectors - self.pool[self.questions.gold])


@cache
def _corpus(data: Path, work: Path, *, filled: bool) -> Corpus:
    return Corpus(data, work, sentence_vectors=filled)


def made_chunk(data: Path, work: Path, filled: bool, chunk: int) -> list[Row]:  # noqa: FBT001 (told to a process)
    """:meth:`Corpus.rows`, in a process that keeps its corpus."""
    return _corpus(data, work, filled=filled).rows(chunk)


def neighbours(
    queries: NDArray[np.float32], vectors: NDArray[np.float32], k: int
) -> NDArray[np.int32]:
    """Places of the k nearest of each, shape ``(len(queries), k)``, the nearest first."""
    found = []
    for start in range(0, len(queries), 1_024):
        scores = queries[start : start + 1_024] @ vectors.T
        best = np.argpartition(-scores, k, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(scores, best, 1), axis=1)
        found.append(np.take_along_axis(best, order, 1).astype(np.int32))
    return np.concatenate(found)


def likeness(
    vectors: NDArray[np.float32], ranks: Sequence[int] = (1, 4, 16, 64), n: int = 1_000
) -> dict[int, float]:
    """Median cosine to the neighbour of each rank, of about n vectors among all."""
    most = max(ranks)
    cosines = -np.sort(
        np.partition(-(vectors[:: max(1, len(vectors) // n)] @ vectors.T), most, axis=1)[
            :, : most + 1
        ]
    )
    return {rank: float(np.median(cosines[:, rank])) for rank in ranks}  # itself has the rank 0
