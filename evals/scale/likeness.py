"""Compares the vectors of :mod:`evals.scale.corpus` with real ones: both indexed alike, at one size."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evals.scale.corpus import Corpus, likeness
from posology.index.search import ann
from posology.index.search.recall import Sample, nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

PROBES = (8, 16, 32, 64, 128)
#: multiples of 16 whose true vectors are compared
REFINE = 10
#: real questions that are asked
QUESTIONS = 200


def compare(corpus: Corpus, work: Path) -> dict[str, Any]:
    """Cosines to neighbours, and recall of the 16 nearest to real questions by probes, of the pool and of as many made."""
    made = corpus.vectors(len(corpus.pool), np.random.default_rng(11))
    asked = corpus.questions.vectors
    found: dict[str, Any] = {"rows": len(made), "refine": REFINE}
    for name, vectors in (("real", corpus.pool), ("synthetic", made)):
        cosines = {str(rank): round(value, 3) for rank, value in likeness(vectors).items()}
        recall = _recall(vectors, asked[:: len(asked) // QUESTIONS], work / f"likeness-{name}")
        found[name] = {"cosines": cosines, "recall": recall}
        print(f"{name:10} median cosine to neighbour {cosines}, recall@16 by probes {recall}")
    return found


def _recall(
    vectors: NDArray[np.float32], asked: NDArray[np.float32], where: Path
) -> dict[str, float]:
    import lancedb
    import pyarrow as pa

    shutil.rmtree(where, ignore_errors=True)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    table = lancedb.connect(where).create_table("vectors", pa.table({"vector": column}))
    planned = ann.plan(*vectors.shape, exact_from=0, approximate_from=0)
    assert planned is not None
    table.create_index("vector", config=ann.config(planned))
    sample = Sample(queries=asked, nearest=nearest(table, asked))
    found = {
        str(probes): round(sample.recall(table, ann.Search(probes=probes, refine=REFINE)), 4)
        for probes in PROBES
    }
    shutil.rmtree(where)
    return found
