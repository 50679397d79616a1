"""Questions with their passages, for the evaluations of tokens and dollars."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from posology.corpus import sample
from posology.index.embedders import load_sentence_transformer
from posology.query import make_query
from posology.text.sentences import split
from posology.types import Hit, Passage, Query, Ranking, Retrieval, Retrieved
from training.gold import rows

_QUESTIONS = "pubmedqa_train.jsonl.gz"
_POOL, _VECTORS = "pool.jsonl.gz", "pool.minilm.f16.npy"


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A question and its nearest passages, best first; JSON can hold it."""

    question: str
    #: id of the passage that answers it; it may not be among the passages
    gold: str
    #: fields of each passage: id, title, text, year
    passages: list[dict[str, Any]]

    @property
    def retrieval(self) -> Retrieval:
        """The passages as a search returns them, without vectors."""
        found = [Passage(**one) for one in self.passages]
        return retrieval_of(make_query(self.question), found)


def retrieval_of(query: Query, passages: list[Passage]) -> Retrieval:
    """Return passages in their order as a search returns them, without vectors."""
    ranking = Ranking(method="dense", hits=tuple(Hit(passage_id=p.id, score=1.0) for p in passages))
    return Retrieval(
        query=query,
        passages=tuple(
            Retrieved(
                passage=p,
                sentences=split(p.text),
                vector=np.zeros(2, np.float32),
                sentence_vectors=np.zeros((len(split(p.text)), 2), np.int8),
            )
            for p in passages
        ),
        query_vector=np.zeros(2, np.float32),
        dense=ranking,
        bm25_rerank=ranking,
        bm25=ranking,
        fused=ranking,
        index_version="pool@1",
    )


def load(data: Path | None, questions: int, k: int) -> list[Asked]:
    """Return questions with their k nearest passages by the packaged encoder.

    Args:
        data: folder of the data sets: PubMedQA's questions over the pool; ``None``: the packaged sample.
        questions: number of questions, at most.
        k: number of passages.
    """
    if data is None:
        found = _sample()
    else:
        found = ((row["question"], f"pmid:{row['pmid']}") for row in rows(data / _QUESTIONS))
    asked = list(islice(found, questions))
    passages, vectors = _passages(data)
    encoder = load_sentence_transformer()
    nearest = []
    for question, gold in asked:
        scores = vectors @ encoder.encode_query(question).vector
        best = np.argsort(-scores, kind="stable")[:k]
        nearest.append(
            Asked(question=question, gold=gold, passages=[passages[int(i)] for i in best])
        )
    return nearest


def dump(asked: list[Asked], path: Path) -> None:
    """Write questions as JSON."""
    path.write_text(json.dumps([asdict(one) for one in asked]), encoding="utf-8")


def _sample() -> Iterator[tuple[str, str]]:
    for one in sample.questions():
        if one.gold and not one.query.choices:
            yield one.query.text, min(one.gold)


def _passages(data: Path | None) -> tuple[list[dict[str, Any]], np.ndarray]:
    if data is not None:
        found = [
            {name: row.get(name) for name in ("id", "text", "year")}
            | {"title": row.get("title") or ""}
            for row in rows(data / _POOL)
        ]
        return found, np.load(data / _VECTORS).astype(np.float32)
    with sample.notes_file() as path:
        notes = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    found = [
        {"id": n["id"], "title": n.get("title", ""), "text": n["text"], "year": n.get("year")}
        for n in notes
    ]
    encoder = load_sentence_transformer()
    return found, np.stack([encoder.encode_query(str(one["text"])).vector for one in found])
