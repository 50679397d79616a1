"""PubMedQA's questions with their abstracts and others of the pool, nearest first or drawn at random."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from evals.papers.suite import Given
from posology.query import make_query
from posology.text.sentences import split
from posology.types import Form, Hit, Passage, Query, Ranking, Retrieval, Retrieved, Sentence
from training.gold import rows

FILES = ("pool.jsonl.gz", "pool.minilm.f16.npy", "pubmedqa_train.jsonl.gz")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Case:
    """A question with its abstract, and abstracts that do not answer it."""

    #: PubMed id of its abstract
    id: str
    query: Query
    #: yes, no or maybe
    verdict: str
    key: Passage
    #: nearest to the question first, without the key
    near: tuple[Passage, ...]
    #: drawn from the whole pool, without the key
    drawn: tuple[Passage, ...]


def pool_of(data: Path) -> tuple[list[Passage], np.ndarray]:
    """Return the abstracts of the pool, and their vectors, shape ``(n, 384)``."""
    passages = [
        Passage(id=row["id"], title=row.get("title") or "", text=row["text"], year=row.get("year"))
        for row in rows(data / FILES[0])
    ]
    return passages, np.load(data / FILES[1]).astype(np.float32)


def pubmedqa(given: Given, others: int) -> list[Case]:
    """Return questions whose abstract is in the pool, in an order drawn by the seed.

    Args:
        given: data folder, number of questions, and seed.
        others: abstracts of each kind for a question.
    """
    pool, vectors = pool_of(given.data)
    place = {one.id: at for at, one in enumerate(pool)}
    asked = [row for row in rows(given.data / FILES[2]) if f"pmid:{row['pmid']}" in place]
    random.Random(given.seed).shuffle(asked)
    asked = asked[: given.questions]
    likeness = given.embed([row["question"] for row in asked]) @ vectors.T
    return [
        _case(row, pool, place[f"pmid:{row['pmid']}"], scores, others, given.seed)
        for row, scores in zip(asked, likeness, strict=True)
    ]


def _case(
    row: dict[str, str],
    pool: Sequence[Passage],
    key: int,
    scores: np.ndarray,
    others: int,
    seed: int,
) -> Case:
    near = [int(at) for at in np.argsort(-scores, kind="stable")[: others + 1] if at != key]
    drawn = random.Random(f"{seed} {row['pmid']}").sample(range(len(pool)), others + 1)
    return Case(
        id=row["pmid"],
        query=make_query(row["question"], form=Form.YES_NO_MAYBE),
        verdict=row["answer"],
        key=pool[key],
        near=tuple(pool[at] for at in near[:others]),
        drawn=tuple([pool[at] for at in drawn if at != key][:others]),
    )


def retrieval(query: Query, passages: Sequence[Passage]) -> Retrieval:
    """Return passages in their order, as if they had been retrieved so; without vectors."""
    hits = tuple(Hit(passage_id=one.id, score=0.0) for one in passages)
    ranking = Ranking(method="dense", hits=hits)
    none = np.zeros(0, np.float32)
    return Retrieval(
        query=query,
        passages=tuple(
            Retrieved(
                passage=one,
                sentences=_split(one.text),
                vector=none,
                sentence_vectors=np.zeros((0, 0), np.int8),
            )
            for one in passages
        ),
        query_vector=none,
        dense=ranking,
        bm25_rerank=ranking,
        bm25=ranking,
        fused=ranking,
        index_version="gold@1",
    )


@lru_cache(maxsize=1_024)
def _split(text: str) -> tuple[Sentence, ...]:
    return split(text)
