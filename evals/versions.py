"""What it costs to keep old versions of an index: its size after each of several daily syncs, and what a reader waits.

python -m evals.versions --passages 20000 --syncs 5 --share 0.01
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from posology.index.schema import Row, digest
from posology.index.store import Index
from posology.types import Encoded, Passage, Sentence

#: words of a made-up literature, and of a passage
VOCABULARY, WORDS = 20_000, 180
SENTENCES = 9


def rows(ids: range, dim: int, seed: int) -> Iterator[Row]:
    """Passages like abstracts in their lengths; the words mean nothing."""
    chance, vectors = random.Random(seed), np.random.default_rng(seed)
    for i in ids:
        words = [f"w{int(VOCABULARY * chance.random() ** 2)}" for _ in range(WORDS)]
        text = " ".join(words)
        step = len(text) // SENTENCES
        found = vectors.normal(size=(SENTENCES + 1, dim)).astype(np.float32)
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        passage = Passage(id=f"pmid:{i}", text=text, title=f"Of {words[0]} and {words[1]}")
        yield Row(
            passage=passage,
            sentences=tuple(Sentence(start=s * step, end=(s + 1) * step) for s in range(SENTENCES)),
            encoded=Encoded(vector=found[0], sentence_vectors=found[1:]),
            digest=digest(passage),
        )


def size(folder: Path) -> int:
    """Bytes of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def write(index: Index, ids: range, seed: int, batch: int = 512) -> None:
    """Write passages as a sync does: in batches, published at the end."""
    with index.staged():
        for start in range(ids.start, ids.stop, batch):
            index.upsert(
                tuple(rows(range(start, min(start + batch, ids.stop)), index.meta.dim, seed))
            )
        index.finish()


def main() -> None:
    """Print the index's size after each sync, and with all but the newest version gone."""
    parser = argparse.ArgumentParser(prog="evals.versions", description=__doc__)
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument("--syncs", type=int, default=5)
    parser.add_argument(
        "--share", type=float, default=0.01, help="of the passages that a sync writes"
    )
    parser.add_argument("--dim", type=int, default=384)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "index"
        index = Index.create(place, "none", args.dim)
        write(index, range(args.passages), seed=0)
        whole = size(place)
        print(f"{args.passages:,} passages: {whole / 1e6:,.1f} MB")
        changed = max(int(args.passages * args.share), 1)
        for number in range(1, args.syncs + 1):
            before, started = size(place), time.perf_counter()
            first = (number * changed) % args.passages
            write(index, range(first, first + changed), seed=number)
            taken = time.perf_counter() - started
            now = size(place)
            print(
                f"sync {number}, {changed:,} written in {taken:.1f} s: {now / 1e6:,.1f} MB "
                f"(+{(now - before) / 1e6:,.1f} MB, {(now - before) / whole:.2f} of the index)"
            )
        print(f"versions kept: {len(index.versions())}")
        looks = []
        for _ in range(50):
            started = time.perf_counter()
            index.view_at(index.versions()[0].number).count()
            looks.append(time.perf_counter() - started)
        print(f"an old version is opened in {statistics.median(looks) * 1e3:.1f} ms (p50)")
        reader = Index.open(place)
        vector = np.ones(args.dim, dtype=np.float32) / np.sqrt(args.dim)
        before = resident()
        for one in reversed(reader.versions()[1:]):
            view = reader.view_at(one.number)
            view.dense(vector, 16)
            view.bm25("w1 w20 w300", 16)
            print(f"read {view.version}: {(resident() - before) / 1e6:+,.0f} MB of memory in all")


def resident() -> int:
    """Bytes of memory that this process has."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
