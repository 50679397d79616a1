"""Builder of :mod:`evals.scale`: builds one size and measures it."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evals.scale.corpus import CHUNK, Corpus, made_chunk
from posology.index.schema import TABLE, Row
from posology.index.search.ann import overlap
from posology.index.search.filters import where
from posology.index.search.recall import nearest
from posology.index.store import Index
from posology.types import Filters

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: name of the embedder that an index of synthetic vectors says it was made with
EMBEDDER = "synthetic-384"
#: real questions that recall is measured by, and by which with filters
QUESTIONS, FILTERED = 300, 50
#: bytes a passage that a build needs at its worst: what is written, and what it is compacted to
NEEDED = 25_000
#: bytes that are left free, whatever is built
FREE = 5_000_000_000
#: what is asked with filters, from many matches to few
FILTERS = {
    "since 2005": Filters(since=2005),
    "MeSH Humans": Filters(mesh=("Humans",)),
    "randomized trials": Filters(publication_types=("Randomized Controlled Trial",)),
    "trials since 2020": Filters(
        since=2020, publication_types=("Randomized Controlled Trial", "Meta-Analysis")
    ),
    "one journal in 700": Filters(journals=("Journal of Medicine 100",)),
}


def build(corpus: Corpus, rows: int, where_to: Path, **thresholds: int) -> dict[str, Any]:
    """Make the index, and measure all that can be measured of it; a flat dictionary of figures.

    Args:
        corpus: of which the first chunks are written.
        rows: how many, a multiple of a chunk.
        where_to: a folder; what is there is removed.
        thresholds: of :meth:`~posology.index.store.Index.finish`.
    """
    _room(where_to, rows)
    shutil.rmtree(where_to, ignore_errors=True)
    began = time.process_time()
    index = Index.create(where_to, EMBEDDER, corpus.pool.shape[1])
    found: dict[str, Any] = {"rows": rows, "chunk": CHUNK}
    seconds: dict[str, float] = {}
    with index.staged():
        writing = 0.0
        for chunk, made in enumerate(_chunks(corpus, rows // CHUNK)):
            started = time.perf_counter()
            index.upsert(made)
            writing += time.perf_counter() - started
            if chunk % 10 == 9:
                print(f"  {(chunk + 1) * CHUNK:,} written, {writing:.0f} s", flush=True)
        seconds["write"] = writing
        index.finish(step=_clock(seconds), **thresholds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of readers of removed versions; there are none
        index.connection.open_table(TABLE).optimize(cleanup_older_than=timedelta(0))
    index = Index.open(where_to)
    info = index.info()
    found |= {f"build_{name}_s": round(value, 2) for name, value in seconds.items()}
    found |= {
        "build_s": round(sum(seconds.values()), 2),
        "build_cpu_s": round(time.process_time() - began, 2),
        "build_peak_mb": round(peak()),
        **_disk(where_to),
    }
    found |= {
        "vector_index": info.vector_index, "partitions": info.partitions, "probes": info.probes,
        "recall_at_build": info.recall,
    }  # fmt: skip
    found |= _recall(index, corpus.questions.vectors[:: len(corpus.questions.texts) // QUESTIONS])
    return found


def read(where_to: Path, work: Path) -> dict[str, Any]:
    """What a process that only reads takes: see :mod:`evals.scale.reader`."""
    command = [
        sys.executable,
        "-m",
        "evals.scale.reader",
        "--index",
        str(where_to),
        "--work",
        str(work),
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _recall(index: Index, questions: NDArray[np.float32]) -> dict[str, Any]:
    """Share of the 16 nearest to real questions that are found, without filters and with them."""
    table, view = index.connection.open_table(TABLE), index.view()
    exact = nearest(table, questions)
    found = [
        overlap([int(i) for i in view.dense_rows(question, 16, retracted=True).ids], rows)
        for question, rows in zip(questions, exact.tolist(), strict=True)
    ]
    figures: dict[str, Any] = {"recall_16": round(float(np.mean(found)), 4)}
    for name, filters in FILTERS.items():
        allowed = where(filters, retracted=False)
        figures[f"share_{name}"] = round(table.count_rows(allowed) / table.count_rows(), 5)
        exact = nearest(table, questions[:FILTERED], allowed=allowed)
        shares = [
            overlap([int(i) for i in view.dense_rows(question, 16, filters=filters).ids], rows)
            for question, rows in zip(questions, exact.tolist(), strict=False)
        ]
        figures[f"recall_{name}"] = round(float(np.mean(shares)), 4)
    return figures


def _chunks(corpus: Corpus, n: int) -> Iterator[list[Row]]:
    """Made by a second process, while the one before is written."""
    context = multiprocessing.get_context("spawn")  # LanceDB does not survive a fork
    with ProcessPoolExecutor(1, mp_context=context) as maker:
        coming = maker.submit(made_chunk, corpus.data, corpus.work, corpus.filled, 0)
        for chunk in range(1, n + 1):
            made = coming.result()
            if chunk < n:
                coming = maker.submit(made_chunk, corpus.data, corpus.work, corpus.filled, chunk)
            yield made


def _clock(seconds: dict[str, float]) -> Callable[[str], None]:
    last = [time.perf_counter()]

    def step(name: str) -> None:
        seconds[name] = time.perf_counter() - last[0]
        last[0] = time.perf_counter()

    return step


def _disk(where_to: Path) -> dict[str, float]:
    """Return megabytes by kind of content; indices are identified by their file names."""
    table = where_to / f"{TABLE}.lance"
    found = {"data": _bytes(table / "data"), "words": 0, "vectors": 0, "columns": 0}
    for index in (table / "_indices").iterdir():
        names = {file.name for file in index.rglob("*")}
        kind = "words" if any("tokens" in name for name in names) else "columns"
        found["vectors" if any(name.endswith(".idx") for name in names) else kind] += _bytes(index)
    sizes = {f"disk_{kind}_mb": round(size / 1e6, 1) for kind, size in found.items()}
    return {"disk_mb": round(_bytes(where_to) / 1e6, 1), **sizes}


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _room(where_to: Path, rows: int) -> None:
    where_to.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(where_to.parent).free
    if free < rows * NEEDED + FREE:
        sys.exit(
            f"{rows:,} passages need {rows * NEEDED / 1e9:.0f} GB while they are built, and {FREE / 1e9:.0f} GB stay "
            f"free: {where_to.parent} has {free / 1e9:.0f} GB"
        )


def peak() -> float:
    """Megabytes that this process has held at most: the kernel's own count, which begins when a program is started."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1e3


def exponent(sizes: Sequence[float], values: Sequence[float]) -> float:
    """How a figure grows: the slope of its logarithm over that of the size, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])
