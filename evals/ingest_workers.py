"""Measures how ingest scales with workers, and checks that a killed worker changes no row.

Usage: ``python -m evals.ingest_workers [--data PATH] [--abstracts N] [--workers 1,2] [--shard N]``.

The first abstracts of the pool are ingested three times: by one worker process, by two, and by two of which one is
killed (SIGKILL) after a third of the abstracts. Each process has one model thread; models are loaded before the time
starts, and search indices are built after it ends. Printed are wall time, CPU time of workers and writer, and the
bound: no run can be faster than the workers' time divided by the workers, nor than all CPU time divided by the cores.
Compare the measured ratio with that bound if the machine has fewer free cores than processes.

The three indices must hold the same rows: ids, digests, sentences and phrases exactly; the largest difference of vectors
is printed.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from anyio.from_thread import start_blocking_portal
from redis import Redis

from orchestrator.environment import prepare_libraries
from orchestrator.ingest.shards.processes import SHARD, WORKER
from orchestrator.ingest.shards.queue import RedisShards
from orchestrator.ingest.shards.store import WORKERS
from orchestrator.stack.options import StackOptions
from orchestrator.stack.up import running_stack
from posology.index.build.ingest import ingest
from posology.index.build.report import IngestProgress
from posology.index.build.rows import RowSource
from posology.index.embedders import load
from posology.index.schema import TABLE
from posology.index.shards.collector import ShardRowBuilder
from posology.index.store import Index
from strategies.compression.late.codec import LateCodec
from strategies.compression.self_information import make_annotator

_FILE = "pool.jsonl.gz"
#: seconds after which a killed worker's shard is given to another
_LEASE = 5
#: share of the abstracts that is written when the worker is killed
_KILL_AT = 1 / 3
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One ingest."""

    place: Path
    workers: int
    #: seconds from the first record to the last commit
    wall: float
    #: seconds of processor time: of the workers, and of the process that reads and writes
    encoding: float
    writing: float


def _take(data: Path, folder: Path, n: int) -> Path:
    path = folder / "abstracts.jsonl"
    with (
        gzip.open(data / _FILE, "rt", encoding="utf-8") as lines,
        path.open("w", encoding="utf-8") as out,
    ):
        out.writelines(itertools.islice(lines, n))
    return path


@contextmanager
def _workers(folder: Path, count: int) -> Iterator[tuple[str, list[int]]]:
    """Workers of one thread each: the address of their Redis, and their process ids."""
    options = StackOptions(
        environment={**os.environ, "OMP_NUM_THREADS": "1"},
        folder=folder,
        workers=count,
        concurrency=1,
        api=False,
        overrides={"POSOLOGY_LEASE": str(_LEASE), "POSOLOGY_EMBEDDER_THREADS": "1"},
        worker_argv=WORKER,
    )
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(running_stack(options)) as info,
        Redis.from_url(info.redis_url, decode_responses=True) as redis,
    ):
        found: Any = []
        while len(found) < count:
            time.sleep(0.1)
            found = redis.zrange(WORKERS, 0, -1)
        yield info.redis_url, [int(name.rpartition(":")[2]) for name in found]


def _ingest(
    rows: Path,
    place: Path,
    url: str,
    *,
    shard: int,
    progress: Callable[[IngestProgress], None] | None = None,
) -> None:
    embedder, annotator, codec = load(), make_annotator(), LateCodec.packaged()
    index = Index.open_or_create(
        place, embedder.name, embedder.dim, annotator=annotator.name, codec=codec
    )
    with RedisShards(url, str(place), lease=_LEASE) as queue:
        maker = ShardRowBuilder(index, queue)
        ingest([rows], index, RowSource(embedder=embedder, annotator=annotator, codec=codec, batch=shard, builder=maker), progress=progress, finish=False)  # fmt: skip
        maker.close()


def _spent(pid: int) -> float:
    """Processor seconds of a process so far; 0 where it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICK


def _warm(rows: Path, folder: Path, url: str, pids: list[int]) -> None:
    """Let every worker load its model: shards of a few abstracts, until all have worked."""
    few = folder / "few.jsonl"
    with rows.open(encoding="utf-8") as lines, few.open("w", encoding="utf-8") as out:
        out.writelines(itertools.islice(lines, 16 * len(pids)))
    _ingest(few, folder / "warm", url, shard=4)


def _run(rows: Path, folder: Path, count: int, *, shard: int, n: int, kill: bool = False) -> Run:
    folder.mkdir()
    place = folder / "index"
    with _workers(folder / "stack", count) as (url, pids):
        _warm(rows, folder, url, pids)
        victims = pids[:1] if kill else []

        def watch(now: IngestProgress) -> None:
            if victims and now.written >= _KILL_AT * n:
                os.kill(victims.pop(), signal.SIGKILL)

        before, own, began = sum(map(_spent, pids)), time.process_time(), time.monotonic()
        _ingest(rows, place, url, shard=shard, progress=watch)
        wall = time.monotonic() - began
        return Run(
            place=place,
            workers=count,
            wall=wall,
            encoding=sum(map(_spent, pids)) - before,
            writing=time.process_time() - own,
        )


def _bound(run: Run, workers: int, cores: int) -> float:
    """Seconds that so many workers take at least, for the work that this run had."""
    return max(run.encoding / workers, (run.encoding + run.writing) / cores)


def _compare(one: Path, other: Path) -> str:
    opened = [Index.open(place).connection.open_table(TABLE) for place in (one, other)]
    tables = [table.to_arrow().sort_by("id") for table in opened]
    plain = [table.drop_columns(["vector", "sentence_vectors", "tokens"]) for table in tables]
    vectors = [np.stack([v.values.to_numpy() for v in table["vector"]]) for table in tables]
    if len(vectors[0]) != len(vectors[1]):
        return f"DIFFERENT: {len(vectors[0])} rows and {len(vectors[1])}"
    same = "the same" if plain[0].equals(plain[1]) else "DIFFERENT"
    largest = float(np.abs(vectors[0] - vectors[1]).max())
    return f"{len(vectors[0])} rows, {same}; vectors differ by at most {largest:.1e}"


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="evals.ingest_workers", description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--abstracts", type=int, default=2_000)
    parser.add_argument(
        "--workers", default="1,2", help="numbers of workers, the first is compared with"
    )
    parser.add_argument("--shard", type=int, default=SHARD, help="abstracts a shard")
    arguments = parser.parse_args(argv)
    if not (arguments.data / _FILE).exists():
        sys.exit(f"{arguments.data} has no {_FILE}. Pass --data with the folder of the data sets.")
    prepare_libraries()
    cores, n = len(os.sched_getaffinity(0)), arguments.abstracts
    counts = [int(count) for count in arguments.workers.split(",")]
    print(
        f"{n} abstracts, shards of {arguments.shard}; {cores} cores, load {os.getloadavg()[0]:.1f}\n"
    )
    print(
        "workers    wall s   docs/s   workers' CPU s   writer's CPU s   ratio   bound of the ratio"
    )
    with tempfile.TemporaryDirectory(prefix="posology-workers-") as name:
        folder = Path(name)
        rows = _take(arguments.data, folder, n)
        runs: list[Run] = []
        for count in counts:
            run = _run(rows, folder / str(count), count, shard=arguments.shard, n=n)
            runs.append(run)
            first = runs[0]
            bound = _bound(first, count, cores) / _bound(first, first.workers, cores)
            print(
                f"{count:>7} {run.wall:>9.1f} {n / run.wall:>8.1f} {run.encoding:>16.1f} "
                f"{run.writing:>16.1f} {run.wall / first.wall:>7.2f} {bound:>20.2f}",
                flush=True,
            )
        killed = _run(
            rows, folder / "killed", max(2, counts[-1]), shard=arguments.shard, n=n, kill=True
        )
        print(
            f"\nkill -9 of one of {killed.workers} at a third: {killed.wall:.1f} s (lease {_LEASE} s)"
        )
        for run in (*runs[1:], killed):
            what = "killed" if run is killed else f"{run.workers} workers"
            print(f"{what} against {runs[0].workers}: {_compare(runs[0].place, run.place)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
