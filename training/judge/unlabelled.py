"""Pairs that nobody judged, from which the packaged judge learns what its teacher says.

A written claim beside what stands near its evidence: the likest other sentence of its abstract, that of the nearest abstract,
and right claims about the same abstract. A last sentence of an abstract beside the likest before it. No document is of dev or
test.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from posology.index.search.bm25 import tokenise
from posology.types import Stance
from training.gold import rows
from training.judge.cases import UNKNOWN, Lesson, sentences_of
from training.pruner_cases import POOL, POOL_VECTORS, part_of
from training.reader.abstracts import WRITTEN

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: last sentences of abstracts
LAST = 12_000
#: fewest sentences of an abstract whose last one is taken, and fewest words of that
_SENTENCES, _WORDS = 4, 8


def unlabelled(data: Path, seed: int = 0) -> Iterator[Lesson]:
    """Yield the pairs, always in the same order."""
    pool = rows(data / POOL)
    texts = {row["id"]: row["text"] for row in pool if part_of(row["id"]) == "train"}
    written = [row for row in rows(data / WRITTEN) if row["id"] in texts]
    vectors = np.load(data / POOL_VECTORS).astype(np.float32)
    names = [row["id"] for row in pool]
    near = _nearest([row["id"] for row in written], names, vectors, texts)
    for row, other_name in zip(written, near, strict=True):
        own, other = (sentences_of(texts[name]) for name in (row["id"], other_name))
        right = [one["claim"] for one in row[Stance.SUPPORTS.value]]
        for kind in Stance:
            for one in row[kind.value]:
                yield from (_pair(one["claim"], text) for text in right if text != one["claim"])
                evidence = {k - 1 for k in one["s"]}
                free = [k for k in range(len(own)) if k not in evidence]
                for k in likest(one["claim"], own, free, 1):
                    yield _pair(one["claim"], own[k])
                for k in likest(one["claim"], other, range(len(other)), 1):
                    yield _pair(one["claim"], other[k])
    taken = {row["id"] for row in written}
    rest = [text for name, text in texts.items() if name not in taken]
    for text in random.Random(f"unlabelled:{seed}").sample(rest, min(LAST, len(rest))):
        own = sentences_of(text)
        if len(own) >= _SENTENCES and len(own[-1].split()) >= _WORDS:
            found = sorted(likest(own[-1], own, range(len(own) - 1), 2))
            yield _pair(own[-1], " ".join(own[k] for k in found))


def _pair(claim: str, text: str) -> Lesson:
    return Lesson(
        origin="unlabelled", part="train", claim=claim, text=text, stance=UNKNOWN, written=False
    )


def likest(claim: str, sentences: Sequence[str], among: Collection[int], count: int) -> list[int]:
    """Return the places of the sentences that share most words with a claim, of like ones the first."""
    words = set(tokenise(claim))
    return sorted(among, key=lambda k: -len(words & set(tokenise(sentences[k]))))[:count]


def _nearest(
    wanted: Sequence[str],
    names: Sequence[str],
    vectors: NDArray[np.float32],
    among: Collection[str],
) -> list[str]:
    """Return the nearest other abstract of each, by the vectors of all."""
    left_out = np.array([name not in among for name in names])
    places = {name: i for i, name in enumerate(names)}
    found = []
    for name in wanted:
        scores = vectors @ vectors[places[name]]
        scores[left_out] = -1
        scores[places[name]] = -1
        found.append(names[int(scores.argmax())])
    return found
