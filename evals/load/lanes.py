"""Checks the tier batch under faults: every row ends, nothing is paid twice, and the cap holds at every step.

A stack of real processes (Redis with its append-only file, two workers), a stub provider that keeps batches, and
``posology batch --tier batch`` over sample questions of a tenant with a cap. Rows expire, fail, come twice or cannot be
read; replies to the creation of batches are lost; reads of results fail, and some results are lost for good. Meanwhile
workers are killed with ``kill -9``, and Redis and the provider are restarted. Then

* what Redis did to the tenant's counters (``MONITOR``) is replayed, and so is the ledger: spent and reserved amounts
  together never exceed the cap;
* the stub's own books are compared with the account, row by row, in tokens and dollars.

``python -m evals.load.lanes``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import Process

from evals.load.fanout import sample_index
from evals.load.faults import account, books, kill_a_worker, restart_redis, write_rows
from evals.load.watch import Watch
from orchestrator.jobs.store import JobStore, open_store
from orchestrator.stack.options import StackOptions
from orchestrator.stack.up import running_stack
from posology.budget.books.reader import Reader
from posology.budget.ledger.base import nano
from posology.budget.ledger.redis import RedisLedger
from posology.budget.prices.book import packaged
from posology.budget.tenants.store import TenantStore
from posology.published.calls import AttemptOutput
from posology.store.keys import DEFAULT_TENANT
from posology.testing.provider.batches.book import BatchFaults
from posology.testing.provider.load import LoadStub
from posology.types import Limits, Outcome, Usage

#: seconds for the last batches to be settled
_PATIENCE = 120.0
MODELS = {"openai": "openai:gpt-4o-mini", "anthropic": "anthropic:claude-haiku-4-5"}
FAULTS = BatchFaults(
    polls=3,
    expired=0.03,
    errored=0.03,
    broken=0.01,
    doubled=0.05,
    creates_lost=0.15,
    reads_failed=1,
    results_lost=0.05,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """What is done to a batch of questions."""

    provider: str
    rows: int = 2_000
    #: dollars that the tenant may spend: less than all calls would reserve at once
    cap: Decimal
    #: rows of a provider's batch
    batch_rows: int = 100
    faults: BatchFaults = FAULTS


@dataclass(kw_only=True, slots=True)
class Seen:
    """What came of it."""

    trial: Trial
    rows: Counter[str] = field(default_factory=Counter)
    #: error types of rows that failed
    failures: Counter[str] = field(default_factory=Counter)
    killed: int = 0
    redis_restarts: int = 0
    provider_restarts: int = 0
    seconds: float = 0.0
    #: changes of counters that were replayed, and entries of the ledger
    steps: int = 0
    entries: int = 0
    #: most that was spent and reserved at once, dollars
    peak: Decimal = Decimal(0)
    #: rows that the stub billed, attempts with a reply, and attempts with billing status unknown
    billed: int = 0
    answered: int = 0
    unknown: int = 0
    attempts: int = 0
    #: dollars by the stub's books, and by ours
    due: Decimal = Decimal(0)
    spent: Decimal = Decimal(0)
    wrong: list[str] = field(default_factory=list)


class Provider:
    """A stub that can be restarted at its address."""

    def __init__(self, faults: BatchFaults, folder: Path) -> None:
        folder.mkdir()
        self._faults, self._folder = faults, folder
        self.stub = self._start(0)

    def restart(self, faults: BatchFaults) -> None:
        """Stop it, and start another one that knows its batches."""
        port = int(self.stub.url.rpartition(":")[2])
        self.close()
        self._faults = faults
        self.stub = self._start(port)

    def close(self) -> None:
        """Stop it."""
        self.stub.__exit__(None, None, None)

    def _start(self, port: int) -> LoadStub:
        stub = LoadStub(port=port, batch_faults=self._faults, batches=self._folder)
        return stub.__enter__()


async def run_trial(folder: Path, trial: Trial) -> Seen:
    """Do it, and compare."""
    seen = Seen(trial=trial)
    index, asked, answers = folder / "index", folder / "rows.jsonl", folder / "answers.jsonl"
    await sample_index(index)
    write_rows(asked, trial.rows, every_briefcontext=20)
    provider = await anyio.to_thread.run_sync(
        # no batch ends until all workers have some
        Provider,
        replace(trial.faults, polls=None),
        folder / "provider",
    )
    key, url = f"{trial.provider.upper()}_API_KEY", f"{trial.provider.upper()}_BASE_URL"
    options = StackOptions(
        environment=os.environ,
        folder=folder / "stack",
        workers=2,
        api=False,
        index=str(index),
        overrides={
            key: "stub",
            url: getattr(provider.stub, f"{trial.provider}_url"),
            "POSOLOGY_BATCH_WAIT": "2",
            "POSOLOGY_BATCH_ROWS": str(trial.batch_rows),
            "POSOLOGY_BATCH_POLL": "2",
            "POSOLOGY_BATCH_LEASE": "20",
        },
    )
    async with AsyncExitStack() as stack:
        stack.callback(provider.close)
        info = await stack.enter_async_context(running_stack(options))
        store = await stack.enter_async_context(open_store(info.redis_url))
        await TenantStore(store.redis, store.url).create(DEFAULT_TENANT, Limits(total=trial.cap))
        with Watch(info.redis_url, tenant=DEFAULT_TENANT, cap=nano(trial.cap)) as watch:
            started = time.perf_counter()
            await _answer(seen, store, provider, asked, answers)
            seen.seconds = time.perf_counter() - started
            await _settled(store)
        seen.steps, seen.peak = watch.steps, Decimal(watch.peak) / 10**9
        seen.wrong += watch.wrong
        attempts = await account(store)
        ours = await books(store, attempts)
        seen.wrong += ours.wrong
        seen.spent = ours.spent
        await _replay(seen, store)
        ledger = await anyio.to_thread.run_sync(provider.stub.ledger)
    for line in answers.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        seen.rows[row["state"] or "rejected"] += 1
        if row.get("error"):
            seen.failures[row["error"]["type"].rpartition("/")[2]] += 1
    compare(seen, ledger, attempts)
    return seen


async def _answer(
    seen: Seen, store: JobStore, provider: Provider, asked: Path, answers: Path
) -> None:
    """Run the batch, and strike meanwhile."""
    command = [
        str(Path(sys.executable).with_name("posology")), "batch", str(asked), "-o", str(answers),
        "--model", MODELS[seen.trial.provider], "--tier", "batch", "--json",
    ]  # fmt: skip
    environment = {**os.environ, "POSOLOGY_REDIS_URL": store.url}
    async with await anyio.open_process(
        command, env=environment, stdout=None, stderr=None
    ) as batch:
        await _until(provider, "batches", 2, batch)
        seen.killed += await kill_a_worker(store)
        await _until(provider, "batches", 3, batch)
        seen.redis_restarts += await restart_redis(store)
        await _until(provider, "batches", 4, batch)
        await anyio.to_thread.run_sync(provider.restart, seen.trial.faults)
        seen.provider_restarts += 1
        print("restarted the provider; its batches end now", file=sys.stderr)
        await _until(provider, "requests", 1, batch)
        seen.killed += await kill_a_worker(store)
        await batch.wait()


async def _until(provider: Provider, what: str, count: int, batch: Process) -> None:
    """Wait until the provider has so many batches, or has answered so many rows."""
    while batch.returncode is None:
        stats = await anyio.to_thread.run_sync(provider.stub.stats)
        if stats[what] >= count:
            return
        await anyio.sleep(0.2)


async def _settled(store: JobStore) -> None:
    """Wait until no attempt is open: rows of jobs that ended may still be in a batch."""
    ledger = RedisLedger(store.redis, store.url, tenant=DEFAULT_TENANT)
    until = time.monotonic() + _PATIENCE
    # another process ends it
    while (await ledger.balances())[-1].reserved and time.monotonic() < until:  # noqa: ASYNC110
        await anyio.sleep(0.5)


async def _replay(seen: Seen, store: JobStore) -> None:
    """Add up the ledger, entry by entry."""
    taken, cap = 0, nano(seen.trial.cap)
    async for entry in Reader(store.redis, store.url, DEFAULT_TENANT).entries():
        seen.entries += 1
        taken += entry.reserved + entry.spent
        if taken > cap:
            seen.wrong.append(f"after entry {entry.place} {taken} of {cap} nano-dollars are taken")


def compare(seen: Seen, ledger: list[dict[str, Any]], attempts: list[AttemptOutput]) -> None:
    """Hold the provider's own books against the account, row by row."""
    billed = {e["client_id"]: e for e in ledger}
    answered = {
        a.id: a for a in attempts if a.outcome in (Outcome.OK, Outcome.UNUSABLE) and a.usage
    }
    unknown = {a.id: a for a in attempts if a.usage is None}
    released = {a.id for a in attempts if a.id not in answered and a.id not in unknown}
    seen.billed, seen.answered, seen.unknown = len(billed), len(answered), len(unknown)
    seen.attempts = len(attempts)
    if len(billed) != len(ledger):
        seen.wrong.append(f"{len(ledger) - len(billed)} rows were answered more than once")
    if invented := set(answered) - set(billed):
        seen.wrong.append(
            f"{len(invented)} replies are in the account that the provider never gave"
        )
    if forgotten := set(billed) - set(answered) - set(unknown):
        seen.wrong.append(f"{len(forgotten)} billed rows are not charged")
    if both := released & set(billed):
        seen.wrong.append(f"{len(both)} billed rows were released")
    prices, model = packaged(), MODELS[seen.trial.provider]
    for name, entry in billed.items():
        usage = Usage(**entry["usage"])
        cost = prices.cost(model, usage, "batch")
        assert cost is not None
        seen.due += cost
        ours = answered.get(name)
        if ours is not None and ours.cost != cost:
            seen.wrong.append(f"{name}: ${ours.cost} charged, ${cost} billed")
        if name in unknown and unknown[name].charged < cost:
            seen.wrong.append(f"{name}: ${unknown[name].charged} reserved, ${cost} billed")
    done = seen.rows["succeeded"] + seen.rows["failed"]
    if done != seen.trial.rows:
        seen.wrong.append(f"{seen.trial.rows - done} rows neither were answered nor failed")
    if sum(seen.failures.values()) != seen.rows["failed"]:
        seen.wrong.append("a row failed without a type")
    blows = (seen.killed, seen.redis_restarts, seen.provider_restarts)
    if blows != (2, 1, 1):
        seen.wrong.append(f"workers killed, Redis and provider restarted: {blows}")


def report(seen: Seen) -> None:
    """Print what was seen."""
    print(f"{seen.trial.provider}: {sum(seen.rows.values())} rows out in {seen.seconds:.0f} s")
    print(f"  states {dict(seen.rows)}, failures {dict(seen.failures)}")
    print(
        f"  workers killed {seen.killed}, Redis restarted {seen.redis_restarts}, provider restarted "
        f"{seen.provider_restarts}"
    )
    print(
        f"  attempts {seen.attempts}: {seen.answered} answered, {seen.unknown} billed-unknown; the stub billed {seen.billed}"
    )
    print(
        f"  cap ${seen.trial.cap}, peak of spent and reserved ${seen.peak} in {seen.steps} changes and "
        f"{seen.entries} entries"
    )
    print(f"  spent ${seen.spent}, billed by the stub ${seen.due}")
    print("  all agrees" if not seen.wrong else "  WRONG: " + "; ".join(seen.wrong[:20]))


def main() -> None:
    """Run a trial for each provider; the exit status is 1 when anything disagrees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--providers", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--cap", type=Decimal, help="dollars; default: by rows and model")
    given = parser.parse_args()
    wrong = False
    for provider in given.providers:
        each = Decimal("0.00025") if provider == "openai" else Decimal("0.0015")
        trial = Trial(
            provider=provider,
            rows=given.rows,
            cap=given.cap or each * given.rows,
            batch_rows=max(10, given.rows // 20),
        )
        with tempfile.TemporaryDirectory() as folder:
            seen = anyio.run(run_trial, Path(folder), trial)
        report(seen)
        wrong = wrong or bool(seen.wrong)
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
