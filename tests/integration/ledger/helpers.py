"""A tenant's money in one process or in Redis, with a clock of ours, and an account of it that owes the ledger nothing."""

from __future__ import annotations

import os
import subprocess
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from redis.asyncio import Redis

from orchestrator.stack.redis_server import STARTER, find_server
from posology.budget.ledger.base import Ledger, nano
from posology.budget.ledger.memory import MemoryLedger
from posology.budget.ledger.redis import RedisLedger
from posology.store import keys
from posology.types import Attempt, Limits, Opening, Outcome, PromptId, Reservation, Stage, Usage

#: seconds
LEASE = 10.0
MODEL = "openai:gpt-4o-mini"
PROMPT = PromptId(name="answer", digest="0" * 16)
Entry = Mapping[str, str]


@dataclass(slots=True)
class Clock:
    """Milliseconds that pass when a test says so: it begins at 2026-01-15 12:00 UTC."""

    now: int = 1_768_478_400_000

    def __call__(self) -> int:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += round(seconds * 1000)


@dataclass(slots=True)
class Desk(ABC):
    """One tenant, its limits, and ledgers of its money for any number of processes."""

    tenant: str
    clock: Clock = field(default_factory=Clock)

    @abstractmethod
    def ledger(self, lease: float = LEASE, floor: float | None = None) -> Ledger: ...

    @abstractmethod
    async def limit(self, limits: Limits, *, disabled: bool = False) -> None: ...

    @abstractmethod
    async def entries(self, after: int = 0) -> list[Entry]:
        """The entries but for the first ``after`` ones."""

    @abstractmethod
    async def counters(self, *runs: str) -> Counter[str]:
        """``spent:total`` and so on, ``over``, ``RUN:spent``, ``RUN:reserved``; zeros are left out."""


@dataclass(slots=True)
class MemoryDesk(Desk):
    only: MemoryLedger | None = None

    def ledger(self, lease: float = LEASE, floor: float | None = None) -> MemoryLedger:
        if self.only is None:
            self.only = MemoryLedger(tenant=self.tenant, lease=lease, floor=floor, clock=self.clock)
        return self.only

    async def limit(self, limits: Limits, *, disabled: bool = False) -> None:
        self.ledger().limits = limits
        self.ledger().disabled = disabled

    async def entries(self, after: int = 0) -> list[Entry]:
        return list(self.ledger().entries[after:])

    async def counters(self, *runs: str) -> Counter[str]:
        ledger = self.ledger()
        held = ledger._windows | {run: ledger._runs[run] for run in runs}
        found = {"over": ledger.over}
        for name, counter in held.items():
            spent, reserved = names(name)
            found |= {spent: counter.spent, reserved: counter.reserved}
        return _not_zero(found)


@dataclass(slots=True)
class RedisDesk(Desk):
    redis: Redis = field(kw_only=True)
    url: str = field(kw_only=True)

    def ledger(self, lease: float = LEASE, floor: float | None = None) -> RedisLedger:
        return RedisLedger(
            self.redis, self.url, tenant=self.tenant, lease=lease, floor=floor, clock=self.clock
        )

    async def limit(self, limits: Limits, *, disabled: bool = False) -> None:
        await write_limits(self.redis, self.tenant, limits, disabled=disabled)

    async def entries(self, after: int = 0) -> list[Entry]:
        return (await stream(self.redis, self.tenant))[after:]

    async def counters(self, *runs: str) -> Counter[str]:
        return await counters(self.redis, self.tenant, *runs)


def _not_zero(found: Mapping[str, int]) -> Counter[str]:
    return Counter({name: n for name, n in found.items() if n})


async def write_limits(
    redis: Redis, tenant: str, limits: Limits, *, disabled: bool = False
) -> None:
    """As tenants are written down."""
    name = f"{keys.prefix(tenant)}tenant"
    written: dict[str, str | int] = {
        scope: nano(cap)
        for scope in ("total", "month", "day", "job")
        if (cap := getattr(limits, scope)) is not None
    }
    if limits.calls is not None:
        written["calls"] = limits.calls
    if limits.models is not None:
        written["models"] = f"|{'|'.join(limits.models)}|"
    if disabled:
        written["disabled"] = "1"
    await redis.delete(name)
    if written:
        await redis.hset(name, mapping=cast("Mapping[Any, Any]", written))


async def stream(redis: Redis, tenant: str) -> list[Entry]:
    """All entries of a tenant's ledger."""
    found: Any = await redis.xrange(f"{keys.prefix(tenant)}ledger")
    return [fields for _, fields in found]


def names(of: str) -> tuple[str, str]:
    """What is spent and what is reserved, of a window or of a run."""
    if of.startswith("run_"):
        return f"{of}:spent", f"{of}:reserved"
    return f"spent:{of}", f"reserved:{of}"


async def counters(redis: Redis, tenant: str, *runs: str) -> Counter[str]:
    """What Redis counts of a tenant and of some runs, under the names of :func:`fold`."""
    async with redis.pipeline(transaction=True) as pipe:
        pipe.hgetall(f"{keys.prefix(tenant)}money")
        for run in runs:
            pipe.hmget(keys.budget(tenant, run), ["spent_nano", "reserved_nano"])
        money, *purses = await pipe.execute()
    found = {name: int(n) for name, n in money.items()}
    for run, purse in zip(runs, purses, strict=True):
        found |= {name: int(n or 0) for name, n in zip(names(run), purse, strict=True)}
    return _not_zero(found)


async def figures(redis: Redis, tenant: str, *days: str) -> dict[str, Counter[str]]:
    """The figures of some days, those without any left out."""
    async with redis.pipeline(transaction=True) as pipe:
        for day in days:
            pipe.hgetall(f"{keys.prefix(tenant)}money:by:{day}")
        raw = await pipe.execute()
    counted = ({what: int(n) for what, n in found.items()} for found in raw)
    return {day: found for day, of in zip(days, counted, strict=True) if (found := _not_zero(of))}


def fold(entries: Iterable[Entry]) -> Counter[str]:
    """The counters that the entries add up to."""
    found: Counter[str] = Counter()
    for entry in entries:
        day, run = entry["day"], entry["job"]
        reserved, spent = int(entry["reserved"]), int(entry["spent"])
        for of in (f"day:{day}", f"month:{day[:7]}", "total", run):
            for name, n in zip(names(of), (spent, reserved), strict=True):
                found[name] += n
        if entry["kind"] != "reserve":
            found["over"] += int(entry["charged"]) > int(entry["bound"])
    return _not_zero(found)


def fold_figures(entries: Iterable[Entry]) -> dict[str, Counter[str]]:
    """The figures that the entries add up to, by day."""
    found: dict[str, Counter[str]] = {}
    for entry in entries:
        if entry["kind"] == "reserve":
            continue
        day = found.setdefault(entry["day"], Counter())
        of = "|".join(entry[name] for name in ("stage", "strategy", "tier", "label"))
        unknown, late = entry["known"] == "0", entry["kind"] == "correct"
        charged, was = int(entry["charged"]), int(entry["bound"]) if late else 0
        if entry["kind"] != "release":
            day[f"attempts|{of}"] += 0 if late else 1
            day[f"nano|{of}"] += int(entry["spent"])
            day[f"bound|{of}"] += (charged if unknown else 0) - was
            day[f"unknown|{of}"] += unknown - late
        if late and entry["outcome"] == "released":
            day[f"attempts|{of}"] -= 1
        for tokens in ("input", "output"):
            day[f"{tokens}|{of}"] += int(entry[tokens])
        refused = not unknown and charged == 0 and entry["input"] == entry["output"] == "0"
        assert (entry.get("idle") == "1") == (refused and entry["outcome"] != "released")
        day[f"idle|{of}"] += "idle" in entry
    return {day: folded for day, counted in found.items() if (folded := _not_zero(counted))}


def last_words(entries: Iterable[Entry]) -> dict[str, str]:
    """The kind of each attempt's last entry, after a look at what came before it."""
    found: dict[str, str] = {}
    follows: dict[str, set[str | None]] = {
        "reserve": {None},
        "settle": {"reserve"},
        "release": {"reserve"},
        "lose": {"reserve"},
        "correct": {"lose"},
    }
    for entry in entries:
        before = found.get(entry["id"])
        assert before in follows[entry["kind"]], f"{entry['kind']} of {entry['id']} after {before}"
        found[entry["id"]] = entry["kind"]
    return found


def opening(attempt: str, amount: Decimal | str, *, model: str = MODEL) -> Opening:
    return Opening(
        id=attempt,
        call=1,
        attempt=1,
        stage=Stage.ANSWER,
        model=model,
        prompt=PROMPT,
        key="k",
        started=1_700_000_000.0,
        strategy="direct",
        input_bound=100,
        max_tokens=10,
        reserved=Decimal(amount),
        prices="test",
    )


def asked(
    attempt: str,
    amount: Decimal | str = "1",
    *,
    run: str = "run_a",
    ticket: str | None = None,
    cap: Decimal | str | None = None,
    model: str = MODEL,
) -> Reservation:
    return Reservation(
        opening=opening(attempt, amount, model=model),
        call=1,
        job=run,
        ticket=ticket or attempt,
        cap=None if cap is None else Decimal(cap),
    )


def ended(
    attempt: str,
    cost: Decimal | str | None,
    bound: Decimal | str = "1",
    *,
    outcome: Outcome = Outcome.OK,
    model: str = MODEL,
) -> Attempt:
    return Attempt.of(
        opening(attempt, bound, model=model),
        call=1,
        outcome=outcome,
        error=None if outcome is Outcome.OK else "ProviderTimeout",
        usage=None if cost is None else Usage(input=10, output=1),
        cost=None if cost is None else Decimal(cost),
        latency=0.5,
        request_id=None,
    )


@dataclass(kw_only=True, slots=True)
class Server:
    """A ``redis-server`` that can be killed and started again on what it wrote down."""

    folder: Path
    fsync: str
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"unix://{self.folder / 'redis.sock'}"

    def start(self) -> None:
        socket = self.folder / "redis.sock"
        socket.unlink(missing_ok=True)
        server = str(find_server(os.environ.get("PATH")))
        command = ["sh", str(STARTER), str(self.folder), server, "--port", "0",
                   "--unixsocket", str(socket), "--dir", str(self.folder), "--aof-load-truncated", "no",
                   "--save", "", "--appendonly", "yes", "--appendfsync", self.fsync]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 90
        while not socket.exists():
            assert time.monotonic() < deadline, "Redis did not start in 90 s"
            time.sleep(0.02)

    def stop(self, *, kill: bool) -> None:
        assert self.process is not None
        if kill:
            self.process.kill()
        else:
            self.process.terminate()
        self.process.wait(90)


@contextmanager
def lasting_redis(folder: Path, fsync: str) -> Iterator[Server]:
    """A Redis that keeps what it is told."""
    server = Server(folder=folder, fsync=fsync)
    server.start()
    try:
        yield server
    finally:
        server.stop(kill=True)


@asynccontextmanager
async def open_desk(kind: str, tenant: str, url: str) -> AsyncIterator[Desk]:
    """A desk of a kind: ``memory`` or ``redis``."""
    from posology.store.connection import connect

    if kind == "memory":
        yield MemoryDesk(tenant)
        return
    async with connect(url) as redis:
        yield RedisDesk(tenant, redis=redis, url=url)
