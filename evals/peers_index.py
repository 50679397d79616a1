"""The pool's 44,581 abstracts as an index in a minute: what the comparisons with other libraries search.

Passages, vectors (those that came with the pool), words and columns are what ``posology ingest --vectors`` makes of them.
Sentences are neither split nor encoded, and no token codes are kept: no search reads them.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from evals.retrieval import Question, pubmedqa, scifact
from posology.corpus.files import read
from posology.corpus.items import Record
from posology.index.build.vectors import GivenVectors
from posology.index.embedders import DEFAULT, load
from posology.index.schema import FORMAT, SPLITTER, Row, digest
from posology.index.store import Index
from posology.types import Encoded

if TYPE_CHECKING:
    from numpy.typing import NDArray

DIM = 384
BATCH = 5_000


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Peers:
    """The index, the vectors that it was made of, and the questions."""

    index: Index
    #: in the order of :attr:`ids`, shape ``(44581, 384)``
    vectors: NDArray[np.float32]
    ids: tuple[str, ...]
    questions: dict[str, tuple[Question, ...]]


def peers(data: Path, work: Path, *, questions: int | None = None) -> Peers:
    """Open the index, made where it is not there yet.

    Args:
        data: the data sets' folder.
        work: where the index is kept.
        questions: of each set; all when left out.
    """
    corpus = data / "pool.jsonl.gz"
    given = GivenVectors(data / "pool.minilm.f16.npy", dim=DIM)
    stat = corpus.stat()
    made = f"{FORMAT}.{SPLITTER}.{stat.st_size}.{given.identity}"
    where = work / f"peers-{hashlib.sha256(made.encode()).hexdigest()[:12]}"
    if not (where / "complete").exists():
        started = time.perf_counter()
        _build(corpus, given, where / "index")
        (where / "complete").touch()
        print(f"index of {len(given):,} abstracts: {time.perf_counter() - started:.0f} s")
    records = [item for item in read(corpus) if isinstance(item, Record)]
    return Peers(
        index=Index.open(where / "index"),
        vectors=np.stack([given.vector(record.row) for record in records]),
        ids=tuple(record.passage.id for record in records),
        questions={
            "PubMedQA": tuple(pubmedqa(data)[:questions]),
            "SciFact": tuple(scifact(data)[:questions]),
        },
    )


def library(name: str, package: str) -> ModuleType | None:
    """A library to compare with; where it is not installed, that is said, and ``None``."""
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"{package} is left out: it is not installed (pip install 'posology[bench]')")
        return None


def resident() -> float:
    """Megabytes that this process holds now."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1e3


def milliseconds(seconds: list[float]) -> str:
    """Median and 95th percentile."""
    p50, p95 = np.percentile(np.array(seconds) * 1e3, [50, 95])
    return f"{p50:7.2f} {p95:7.2f}"


def _build(corpus: Path, given: GivenVectors, where: Path) -> None:
    if where.exists():
        sys.exit(f"{where} was not finished: remove it")
    # the vectors are the packaged embedder's; its name is what the index asks for
    index = Index.create(where, load(DEFAULT).name, DIM)
    none = np.zeros((0, DIM), dtype=np.float32)
    rows: list[Row] = []
    with index.staged():
        for record in read(corpus):
            if not isinstance(record, Record):
                continue
            encoded = Encoded(vector=given.vector(record.row), sentence_vectors=none)
            rows.append(
                Row(
                    passage=record.passage,
                    sentences=(),
                    encoded=encoded,
                    digest=digest(record.passage),
                )
            )
            if len(rows) == BATCH:
                index.upsert(rows)
                rows = []
        index.upsert(rows)
        index.finish()
