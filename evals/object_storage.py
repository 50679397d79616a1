"""Measures what an index on object storage costs at question time: ``python -m evals.object_storage --data DIR``.

The same passages go into a folder and to moto, an S3 server on this machine, in one run. A real bucket adds network
round trips, so the requests of a question are counted, with how many run at once.
"""

from __future__ import annotations

import argparse
import json
import logging
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import numpy as np

from posology.index.build.ingest import ingest
from posology.index.build.rows import RowSource
from posology.index.places import Place, s3_options
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.query import make_query
from posology.testing.models.embedder import HashEmbedder
from posology.types import Filters
from training.gold import pubmedqa
from training.gold import rows as read

K = 16
#: what a reader of recent literature asks for
RECENT = Filters(since=2010)
DIM = 384


class Requests(logging.Handler):
    """Counts what the server logs, a line a request."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        """One more."""
        self.count += record.levelno == logging.INFO


@dataclass(frozen=True, kw_only=True, slots=True)
class Took:
    """What retrieving from one place took."""

    #: seconds to write all passages and to make the indices
    build: float
    #: seconds to open it in a new process's state, and for the first question
    opened: float
    first: float
    #: seconds of each question after these, whose words are new to the process
    warm: Sequence[float]
    #: of the same questions again, for which nothing but the passages is read
    again: Sequence[float]
    #: of the same once more, with a filter
    filtered: Sequence[float]
    #: requests of a warm question; ``None``: there are none
    requests: float | None


@contextmanager
def server() -> Iterator[tuple[Place, Requests]]:
    """A bucket on this machine."""
    from moto.server import ThreadedMotoServer

    requests = Requests()
    log = logging.getLogger("werkzeug")
    log.handlers, log.propagate = [requests], False
    log.setLevel(logging.INFO)
    running = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    url = f"http://{host}:{port}"
    try:
        asked = urllib.request.Request(f"{url}/bucket", method="PUT")  # noqa: S310 (loopback)
        with urllib.request.urlopen(asked):  # noqa: S310 (loopback)
            options = s3_options(key="key", secret="secret", endpoint=url)  # noqa: S106
            yield Place.of("s3://bucket/index", options), requests
    finally:
        running.stop()


async def measure(
    place: Place | Path, notes: Path, questions: Sequence[str], requests: Requests | None
) -> Took:
    """Build an index there and ask."""
    embedder = HashEmbedder(dim=DIM)
    started = time.perf_counter()
    index = Index.create(place, embedder.name, embedder.dim)
    ingest([notes], index, RowSource(embedder=embedder))
    build = time.perf_counter() - started
    started = time.perf_counter()
    index = Index.open(place)
    retriever = Retriever(index, embedder)
    opened = time.perf_counter() - started
    times: list[float] = []

    async def ask(text: str, filters: Filters = Filters()) -> None:  # noqa: B008 (never changes)
        begun = time.perf_counter()
        await retriever.retrieve(make_query(text), K, filters=filters)
        times.append(time.perf_counter() - begun)

    await ask(questions[0])
    for text in questions[1:6]:
        await ask(text)
    first, times = times[0], []
    before = requests.count if requests else 0
    for text in questions[6:]:
        await ask(text)
    made = (requests.count - before) / len(times) if requests else None
    warm, times = times, []
    for text in questions[6:]:
        await ask(text)
    again, times = times, []
    for text in questions[6:]:
        await ask(text, RECENT)
    return Took(
        build=build,
        opened=opened,
        first=first,
        warm=warm,
        again=again,
        filtered=times,
        requests=made,
    )


def _show(name: str, took: Took) -> None:
    p50, p95 = np.percentile(took.warm, [50, 95]) * 1e3
    again, narrow = (float(np.median(one)) * 1e3 for one in (took.again, took.filtered))
    asked = "" if took.requests is None else f", {took.requests:.1f} requests a question"
    print(
        f"{name:<8} build {took.build:6.1f} s  open {took.opened * 1e3:5.0f} ms  first {took.first * 1e3:6.0f} ms  "
        f"warm p50 {p50:6.1f} ms  p95 {p95:6.1f} ms  "
        f"again p50 {again:6.1f} ms  again since 2010 p50 {narrow:6.1f} ms{asked}"
    )


def main() -> None:
    """Print both, and how they compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--rows", type=int, default=5_000, help="passages")
    parser.add_argument("--questions", type=int, default=60)
    given = parser.parse_args()
    questions = [one.text for one in pubmedqa(given.data)][: given.questions + 6]
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "notes.jsonl"
        rows = read(given.data / "pool.jsonl.gz")[: given.rows]
        # its first passages are all older: every second one is made recent, so that k match
        rows = [{**row, "year": 2000 + 15 * (number % 2)} for number, row in enumerate(rows)]
        notes.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        print(
            f"{len(rows)} passages, vectors of {DIM} by hashing, k = {K}, {len(questions) - 6} questions"
        )
        disk = anyio.run(measure, Path(folder) / "index", notes, questions, None)
        _show("folder", disk)
        with server() as (place, requests):
            there = anyio.run(measure, place, notes, questions, requests)
        _show("storage", there)
    ratio = float(np.median(there.warm) / np.median(disk.warm))
    print(f"a warm question takes {ratio:.1f} times as long from storage on this machine")


if __name__ == "__main__":
    main()
