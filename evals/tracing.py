"""Measures what OpenTelemetry's traces cost a worker: CPU time of a call and calls a second, off and on in turn.

As :mod:`evals.throughput`, BriefContext jobs of 48 partitions go through Redis and one worker against a stub provider. Each
round starts a worker without an address for traces and one with, in changing order; what the second sends is received, counted
and thrown away by this process. ``python -m evals.tracing --rounds 5``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import anyio
import anyio.to_thread

from evals.fanout import a_request, a_stack
from evals.throughput import LATENCY, PARTITIONS, cpu_seconds, over, spent
from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.writer import Target
from orchestrator.settings import Settings
from posology.corpus.sample import notes_file
from posology.testing.provider.faults import Faults
from posology.testing.provider.load import LoadStub

ADDRESS = "OTEL_EXPORTER_OTLP_ENDPOINT"
#: the aim: most that traces may add to the time of a call, and to the CPU time of a worker
AIM = 0.03


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """One worker's figures."""

    #: calls a second
    rate: float
    #: CPU milliseconds of the worker for a call
    milliseconds: float


class Receiver(ThreadingHTTPServer):
    """Takes what is sent."""

    #: bytes received
    received = 0


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        self.server.received += len(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def _receiver() -> Iterator[Receiver]:
    with Receiver(("127.0.0.1", 0), _Handler) as receiver:
        thread = threading.Thread(target=receiver.serve_forever)
        thread.start()
        try:
            yield receiver
        finally:
            receiver.shutdown()
            thread.join()


async def _measure(
    folder: Path, index: Path, stub: LoadStub, *, jobs: int, address: str | None
) -> Figures:
    environment = {name: value for name, value in os.environ.items() if name != ADDRESS}
    if address is not None:
        environment[ADDRESS] = address
    async with a_stack(folder, index, stub, concurrency=48, environment=environment) as store:
        request = a_request(k=PARTITIONS)
        for _ in range(2):
            # connections, models
            await over(store, [(await store.submit(request)).job])
        before, started = cpu_seconds(), time.perf_counter()
        await over(store, [(await store.submit(request)).job for _ in range(jobs)])
        seconds, after = time.perf_counter() - started, cpu_seconds()
    calls = jobs * (PARTITIONS + 1)
    return Figures(
        rate=calls / seconds, milliseconds=spent(before, after)["worker"] / calls * 1_000
    )


async def _run(rounds: int, jobs: int) -> None:
    found: dict[bool, list[Figures]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as temporary, notes_file() as notes, _receiver() as receiver:
        folder = Path(temporary)
        index = folder / "index"
        await anyio.to_thread.run_sync(
            lambda: run_ingest([notes], Settings(), Target(place=str(index)))
        )
        address = f"http://127.0.0.1:{receiver.server_port}"
        with LoadStub(Faults(latency=(LATENCY, LATENCY))) as stub:
            for number in range(rounds):
                for on in (False, True) if number % 2 == 0 else (True, False):
                    one = await _measure(
                        folder / f"{number}-{on}",
                        index,
                        stub,
                        jobs=jobs,
                        address=address if on else None,
                    )
                    found[on].append(one)
                    print(
                        f"round {number + 1} {'on ' if on else 'off'}  {one.rate:6.1f} calls/s  "
                        f"{one.milliseconds:6.2f} ms of CPU a call"
                    )
        received = receiver.received
    pairs = list(zip(found[False], found[True], strict=True))
    slower = [off.rate / on.rate - 1 for off, on in pairs]
    dearer = [on.milliseconds / off.milliseconds - 1 for off, on in pairs]
    print(f"received {received / 1024:.0f} KiB")
    print(f"time of a call: {statistics.median(slower):+.1%}, of rounds {_all(slower)} (aim ≤ {AIM:.0%})")  # fmt: skip
    print(f"CPU of a call:  {statistics.median(dearer):+.1%}, of rounds {_all(dearer)}")


def _all(ratios: list[float]) -> str:
    return ", ".join(f"{one:+.1%}" for one in sorted(ratios))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="pairs of workers, off and on")
    parser.add_argument("--jobs", type=int, default=30, help="jobs of 49 calls for each")
    given = parser.parse_args()
    anyio.run(_run, given.rounds, given.jobs)


if __name__ == "__main__":
    main()
