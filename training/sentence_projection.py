"""Fits the packaged projection: sentences' vectors from one pass over their passages.

``python -m training.sentence_projection [--data DIR] [--abstracts N] [--write]``. Without ``--write``
the packaged file stays. Each abstract of a sample of the pool is read in whole by the encoder that ingests use, and its
sentences are read one by one by the same encoder in float32. A ridge regression maps the first to the second; see
:mod:`posology.index.embedders.projection`. Some ten minutes on two cores. Figures: ``docs/concepts/encoding.md`` and
``posology/index/embedders/data/MODEL_CARD.md``.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from posology.index.embedders.models import load_default
from posology.index.embedders.options import Options, Precision
from posology.index.embedders.projection import BESIDE, FILE, Projection, features
from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder
from posology.text.sentences import split
from posology.types import Passage
from training.gold import DATA, WORK, rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from posology.index.embedders.card import Loaded

#: abstracts of the sample, about 8.5 sentences each
ABSTRACTS = 3_200
#: weight of the penalty on the squared weights, in sentences
RIDGE = 2.0
#: abstracts encoded together
_BATCH = 64


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Recorder(Projection):
    """A projection that keeps what it is given."""

    seen: list[NDArray[np.float32]] = field(default_factory=list)

    def __call__(self, sums: NDArray[np.float32], counts: NDArray[np.int64]) -> NDArray[np.float32]:
        """Keep the features of sentences, and return zeros."""
        self.seen.append(features(sums, counts))
        return np.zeros_like(sums[:, -1])


def fit(passages: Sequence[Passage], *, cache: Path) -> Projection:
    """Return a projection for the default embedder.

    Args:
        passages: to learn from.
        cache: folder of exported models.
    """
    ingesting = _load("int8", cache)
    exact = SentenceTransformerEmbedder(_load("float32", cache))
    name, dim, layers = ingesting.card.name, ingesting.card.dim, ingesting.forward.depth + 1
    size = layers * dim + BESIDE
    # sums over sentences: of products of features, and of features with what the sentence's own vector has besides
    normal, slopes = np.zeros((size, size)), np.zeros((size, dim))
    last = slice((layers - 1) * dim, layers * dim)
    for start in range(0, len(passages), _BATCH):
        part = passages[start : start + _BATCH]
        sentences = [split(passage.text) for passage in part]
        blank = Recorder(embedder=name, layers=layers, weights=np.zeros((size, dim), np.float32))
        SentenceTransformerEmbedder(ingesting, projection=blank).embed_passages(part, sentences)
        lone = [
            Passage(id="", text=sentence.of(passage.text))
            for passage, of_passage in zip(part, sentences, strict=True)
            for sentence in of_passage
        ]
        alone = np.stack([one.vector for one in exact.embed_passages(lone, [()] * len(lone))])
        known = np.concatenate(blank.seen)
        normal += known.T @ known
        slopes += known.T @ (alone - known[:, last])
        print(f"{start + len(part)} of {len(passages)} abstracts", file=sys.stderr, flush=True)
    weights: Any = np.linalg.solve(normal + RIDGE * np.eye(size), slopes)
    return Projection(embedder=name, layers=layers, weights=weights.astype(np.float32))


def _load(precision: Precision, cache: Path) -> Loaded:
    options = Options(backend="onnx", precision=precision, cache=cache)
    return load_default(options)


def sample(data: Path, n: int) -> list[Passage]:
    """Return abstracts of the pool, the same ones each time."""
    pool = rows(data / "pool.jsonl.gz")
    order = list(range(len(pool)))
    random.Random(7).shuffle(order)
    return [
        Passage(id=pool[i]["id"], title=pool[i].get("title") or "", text=pool[i]["text"])
        for i in order[:n]
    ]


def main() -> None:
    """Fit the projection; write it with ``--write``."""
    parser = argparse.ArgumentParser(prog="training.sentence_projection", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--work", type=Path, default=WORK / "projection", help="exported models")
    parser.add_argument("--abstracts", type=int, default=ABSTRACTS)
    parser.add_argument("--out", type=Path, help="file to write; default: none")
    parser.add_argument("--write", action="store_true", help="replace the packaged file")
    given = parser.parse_args()
    content = fit(sample(given.data, given.abstracts), cache=given.work).dump()
    print(f"{hashlib.sha256(content).hexdigest()}, {len(content):,} bytes")
    for file in (given.out, FILE if given.write else None):
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)


if __name__ == "__main__":
    main()
