"""Tasks: decode, run, send what is next, and nothing else.

A message names units of a job's work by ids; the question, the passages and the result are in the job's record. Errors
of a unit are recorded there, too, so no task fails or is retried by Celery.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Sequence
from itertools import groupby
from types import FrameType
from typing import Any

from celery.signals import worker_ready, worker_shutdown, worker_shutting_down
from celery.worker import state
from kombu.exceptions import OperationalError

from orchestrator.ingest.shards.store import INGEST
from orchestrator.settings import load_settings
from posology.errors import StoreUnavailable
from posology.store.connection import shown
from workers.app import app
from workers.engine.ingest import IngestRuntime
from workers.engine.maintenance import CALLS, JOBS
from workers.engine.units import Unit
from workers.process import Runtime

logger = logging.getLogger(__name__)

#: kind of unit → queue; jobs and calls have queues of their own, so that neither delays the other
QUEUES = {"answer": JOBS, "extract": CALLS, "reduce": CALLS}
#: Most partitions in one message. Each is still claimed, recorded and recovered by itself; a message, its thread and its
#: acknowledgement cost about as much CPU time as a call.
GROUP = 4


def send(units: Sequence[Unit]) -> None:
    """Send units to the broker.

    Raises:
        StoreUnavailable: it takes none; the sweep finds units that were not sent.
    """
    try:
        _send(units)
    except OperationalError as error:
        address = shown(app.conf.broker_url)
        raise StoreUnavailable(
            f"Redis at {address} takes no messages now: {error}", address=address
        ) from error


def _send(units: Sequence[Unit]) -> None:
    for (tenant, job, kind), same in groupby(units, lambda u: (u.tenant, u.job, u.kind)):
        names = [unit.name for unit in same]
        for start in range(0, len(names), GROUP):
            app.send_task(
                f"posology.{kind}",
                args=[tenant, job, names[start : start + GROUP]],
                queue=QUEUES[kind],
                ignore_result=True,
            )


def send_shard(run: str, name: str) -> None:
    """Send a shard of an ingest to the broker."""
    app.send_task("posology.ingest", args=[run, name], queue=INGEST, ignore_result=True)


runtime = Runtime(load_settings, send)
shards = IngestRuntime(runtime, load_settings, send_shard)


@app.task(name="posology.answer")  # type: ignore[untyped-decorator]  # Celery ships no types
def answer(tenant: str, job: str, names: list[str]) -> None:
    """Retrieve and decide; answer, or replace itself with one ``extract`` a partition and a ``reduce``."""
    _work(tenant, job, names)


@app.task(name="posology.extract")  # type: ignore[untyped-decorator]  # Celery ships no types
def extract(tenant: str, job: str, names: list[str]) -> None:
    """Read partitions; the job's last one sends the ``reduce``."""
    _work(tenant, job, names)


@app.task(name="posology.reduce")  # type: ignore[untyped-decorator]  # Celery ships no types
def reduce(tenant: str, job: str, names: list[str]) -> None:
    """Make one answer of the extractions."""
    _work(tenant, job, names)


@app.task(name="posology.ingest")  # type: ignore[untyped-decorator]  # Celery ships no types
def ingest(run: str, name: str) -> None:
    """Encode a shard of an ingest; the message names texts that are stored beside the index."""
    shards.run(run, name)


def _work(tenant: str, job: str, names: list[str]) -> None:
    following = runtime.run([Unit(tenant=tenant, job=job, name=name) for name in names])
    try:
        send(following)
    except StoreUnavailable as error:
        logger.warning("%s", error)


@worker_ready.connect  # type: ignore[untyped-decorator]  # Celery ships no types
def _ready(sender: Any, **_: object) -> None:
    hasten_by_signal(runtime)
    queues = set(sender.app.amqp.queues.consume_from)
    runtime.start(queues=queues, threads=sender.controller.concurrency)
    if INGEST in queues:
        shards.run_maintenance()


@worker_shutting_down.connect  # type: ignore[untyped-decorator]  # Celery ships no types
def _drain(**_: object) -> None:
    runtime.drain()


@worker_shutdown.connect  # type: ignore[untyped-decorator]  # Celery ships no types
def _close(**_: object) -> None:
    shards.close()
    runtime.close()


def hasten_by_signal(runtime: Runtime) -> None:
    """Replace Celery's handlers of SIGTERM, SIGQUIT and SIGINT. Call from the main thread, once the worker is ready.

    SIGTERM: graceful shutdown; units that take longer than the timeout are requeued. SIGQUIT, and a second Ctrl-C: requeue
    at once. Celery would end its pool's tasks by force, which threads do not allow (``kill_job``), and close connections
    under calls that are paid for; it would also write lines of its own on standard output.
    """
    if threading.current_thread() is not threading.main_thread():
        return

    def finish(_number: int, _frame: FrameType | None) -> None:
        runtime.drain()
        # Celery's own flag for a warm shutdown, as its handler of SIGTERM sets it
        state.should_stop = 0

    def hasten(_number: int, _frame: FrameType | None) -> None:
        runtime.drain(0.0)
        state.should_stop = 0

    def interrupt(number: int, frame: FrameType | None) -> None:
        if runtime.draining:
            hasten(number, frame)
        else:
            os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, finish)
    signal.signal(signal.SIGQUIT, hasten)
    signal.signal(signal.SIGINT, interrupt)
