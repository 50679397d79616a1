"""What Celery's chord does when messages come more than once, or are lost: real Celery, real Redis, threads.

A chord is Celery's own fan-in: a header of tasks, and a body that is to run once, after all of them.
``python -m evals.chord``; the finding is in ``docs/decisions/0008-jobs.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import celery
import redis
from celery import Celery, chord
from celery.contrib.testing.worker import start_worker

from orchestrator.stack.redis_server import find_server

PARTS: Final = 4
HEADER, BODY = "header", "body"
#: seconds in which a body that comes at all has come
PATIENCE = 3.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What became of one chord."""

    #: header tasks that ran, in order
    ran: list[int]
    #: what each run of the body was given
    bodies: list[list[int]]

    @property
    def early(self) -> bool:
        """Whether a body ran without all parts, or with one twice."""
        return any(sorted(given) != list(range(PARTS)) for given in self.bodies)

    def __str__(self) -> str:
        said = f"{len(self.ran)} header runs {self.ran}, body ran {len(self.bodies)} times"
        return said + (f": {self.bodies}" if self.early else "")


@contextmanager
def own_redis() -> Iterator[str]:
    """A Redis that keeps nothing; the path of its socket."""
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "redis.sock"
        command = [str(find_server(os.environ.get("PATH"))), "--port", "0", "--dir", folder,
                   "--unixsocket", str(socket), "--save", "", "--appendonly", "no"]  # fmt: skip
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            try:
                while not socket.exists():
                    time.sleep(0.02)
                yield str(socket)
            finally:
                process.terminate()


class Trial:
    """Chords on one Redis, their messages in our hands between sending and delivery."""

    def __init__(self, socket: str) -> None:
        self.redis = redis.Redis(unix_socket_path=socket, decode_responses=True)
        self.app = Celery(
            "trial", broker=f"redis+socket://{socket}", backend=f"redis+socket://{socket}"
        )
        self.app.conf.update(
            task_acks_late=True,
            worker_prefetch_multiplier=1,
            task_default_queue="consumed",
            worker_hijack_root_logger=False,
        )
        store = self.redis

        @self.app.task(name="trial.part")  # type: ignore[untyped-decorator]  # Celery ships no types
        def part(run: str, index: int, *, fails: bool) -> int:
            store.rpush(f"{run}:ran", index)
            if fails:
                raise ValueError("not to be read")
            return index

        @self.app.task(name="trial.body")  # type: ignore[untyped-decorator]  # Celery ships no types
        def body(results: list[int], run: str) -> None:
            store.rpush(f"{run}:bodies", json.dumps(results))

        self.part, self.body = part, body

    def begin(self, *, fails: int | None = None) -> tuple[str, list[str]]:
        """Send a chord, and take its header's messages out of the queue, in order."""
        run = uuid.uuid4().hex
        header = [self.part.s(run, i, fails=i == fails).set(queue=HEADER) for i in range(PARTS)]
        chord(header)(self.body.s(run).set(queue=BODY))
        return run, cast("list[str]", self.redis.rpop(HEADER, PARTS))

    def deliver(self, messages: Sequence[str], queue: str = "consumed") -> None:
        """Put messages into the queue that workers read."""
        for message in messages:
            copy = json.loads(message)
            # the transport's own mark, which no two messages share; the task's id stays
            copy["properties"]["delivery_tag"] = str(uuid.uuid4())
            self.redis.lpush(queue, json.dumps(copy))

    def bodies(self) -> list[str]:
        """The bodies' messages that were sent and not delivered; they are taken out of the queue."""
        found = cast("list[str] | None", self.redis.rpop(BODY, 100))
        return found or []

    def settle(self, run: str, ran: int) -> Seen:
        """Wait for header runs, hand on the bodies that they ask for, and tell what happened."""
        deadline = time.monotonic() + PATIENCE
        quiet = time.monotonic() + 0.5
        while time.monotonic() < deadline:
            if found := self.bodies():
                self.deliver(found)
                quiet = time.monotonic() + 0.5
            done = self.redis.llen(f"{run}:ran") >= ran
            if done and time.monotonic() > quiet:
                break
            time.sleep(0.01)
        return self.seen(run)

    def seen(self, run: str) -> Seen:
        """What happened to a chord so far."""
        ran = cast("list[str]", self.redis.lrange(f"{run}:ran", 0, -1))
        bodies = cast("list[str]", self.redis.lrange(f"{run}:bodies", 0, -1))
        return Seen(ran=[int(i) for i in ran], bodies=[json.loads(b) for b in bodies])


def first_twice(trial: Trial) -> Seen:
    """(a) One header task is delivered twice before the others."""
    run, messages = trial.begin()
    trial.deliver([messages[0], *messages])
    return trial.settle(run, PARTS + 1)


def last_twice(trial: Trial) -> Seen:
    """(b) The last header task is delivered twice, one right after the other."""
    run, messages = trial.begin()
    trial.deliver([*messages, messages[-1]])
    return trial.settle(run, PARTS + 1)


def after_the_body(trial: Trial) -> Seen:
    """(c) The last header task is delivered once more after the body ran, then all of them."""
    run, messages = trial.begin()
    trial.deliver(messages)
    trial.settle(run, PARTS)
    trial.deliver(messages[-1:])
    trial.settle(run, PARTS + 1)
    trial.deliver(messages)
    return trial.settle(run, 2 * PARTS + 1)


def all_twice(trial: Trial) -> Seen:
    """(d) Every header task is delivered twice."""
    run, messages = trial.begin()
    trial.deliver([m for message in messages for m in (message, message)])
    return trial.settle(run, 2 * PARTS)


def body_lost(trial: Trial) -> Seen:
    """(e) The body's message is lost by the broker; then every header task is delivered again."""
    run, messages = trial.begin()
    trial.deliver(messages)
    deadline = time.monotonic() + PATIENCE
    while not trial.bodies():
        assert time.monotonic() < deadline, "no body was sent"
        time.sleep(0.01)
    trial.deliver(messages)
    return trial.settle(run, 2 * PARTS)


def part_lost(trial: Trial) -> Seen:
    """(f) One header task's message is lost by the broker."""
    run, messages = trial.begin()
    trial.deliver(messages[1:])
    return trial.settle(run, PARTS)


def part_fails(trial: Trial) -> Seen:
    """(g) One header task raises an error."""
    run, messages = trial.begin(fails=0)
    trial.deliver(messages)
    return trial.settle(run, PARTS)


def body_twice(trial: Trial) -> Seen:
    """(h) The body's message is delivered twice."""
    run, messages = trial.begin()
    trial.deliver(messages)
    deadline = time.monotonic() + PATIENCE
    while not (found := trial.bodies()):
        assert time.monotonic() < deadline, "no body was sent"
        time.sleep(0.01)
    trial.deliver([*found, *found])
    return trial.settle(run, PARTS)


TRIALS: tuple[Callable[[Trial], Seen], ...] = (
    first_twice,
    last_twice,
    after_the_body,
    all_twice,
    body_lost,
    part_lost,
    part_fails,
    body_twice,
)


def main() -> None:
    """Print what each trial saw, with one thread and with many."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="of each trial")
    repeats = parser.parse_args().repeats
    with own_redis() as socket:
        trial = Trial(socket)
        version = cast("dict[str, str]", trial.redis.info("server"))["redis_version"]
        print(f"Celery {celery.__version__}, Redis {version}; {PARTS} header tasks")
        for threads in (1, 8):
            options: dict[str, Any] = {"pool": "threads", "concurrency": threads}
            with start_worker(trial.app, perform_ping_check=False, loglevel="ERROR", **options):
                for one in TRIALS:
                    seen = [one(trial) for _ in range(repeats)]
                    counts = sorted({len(s.bodies) for s in seen})
                    early = sum(s.early for s in seen)
                    title = (one.__doc__ or "").strip()
                    print(f"\n{threads} thread{'s' if threads > 1 else ''}. {title}")
                    print(
                        f"  bodies a chord: {counts}; early or with a part twice: {early} of {repeats}"
                    )
                    print(f"  e.g. {seen[0]}", flush=True)


if __name__ == "__main__":
    main()
