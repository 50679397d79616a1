"""SQuAD's paragraphs as one corpus, one question a paragraph, nearest paragraphs first (Adaptive RAG's set-up)."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evals.papers.suite import Given
from evals.pooled import FILE
from posology.query import make_query
from posology.text.sentences import split
from posology.types import Passage, Query, Sentence
from training.gold import rows

FILES = (FILE,)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Case:
    """A question with the paragraphs that are nearest to it."""

    id: str
    query: Query
    answers: tuple[str, ...]
    #: paragraph that it was written for, and its sentences that hold an answer
    key: str
    spans: tuple[Sentence, ...]
    #: nearest first
    near: tuple[Passage, ...]


def squad(given: Given, most: int) -> list[Case]:
    """Return the first question of paragraphs drawn by the seed, with so many paragraphs each."""
    found = rows(given.data / FILE)
    passages = [
        Passage(id=f"squad:{i}", title=row["title"], text=row["context"])
        for i, row in enumerate(found)
    ]
    asked = [
        (row["qas"][0], passage) for row, passage in zip(found, passages, strict=True) if row["qas"]
    ]
    random.Random(given.seed).shuffle(asked)
    asked = asked[: given.questions]
    texts = [f"{one.title}. {one.text}" for one in passages]
    likeness = given.embed([qa["question"] for qa, _ in asked]) @ _kept(given, texts).T
    return [
        _case(qa, passage, [passages[at] for at in np.argsort(-scores, kind="stable")[:most]])
        for (qa, passage), scores in zip(asked, likeness, strict=True)
    ]


def _case(qa: dict[str, Any], key: Passage, near: Sequence[Passage]) -> Case:
    starts = [one["answer_start"] for one in qa["answers"]]
    return Case(
        id=qa["id"],
        query=make_query(qa["question"]),
        answers=tuple(dict.fromkeys(one["text"] for one in qa["answers"])),
        key=key.id,
        spans=tuple(s for s in split(key.text) if any(s.start <= at < s.end for at in starts)),
        near=tuple(near),
    )


def _kept(given: Given, texts: Sequence[str]) -> np.ndarray:
    """Return the vectors of texts, computed once."""
    digest = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]
    path = given.work / f"paragraphs-{digest}.npy"
    if not path.exists():
        given.work.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part.npy")
        np.save(part, given.embed(texts))
        part.replace(path)
    vectors: np.ndarray = np.load(path)
    return vectors
