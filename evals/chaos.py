"""Checks that every row of a batch is answered and every provider call is in the ledger, under faults.

A stack of real processes (Redis, workers), a stub provider that is slow and sometimes fails, and ``posology batch``
over sample questions. Meanwhile workers are killed with ``kill -9`` and Redis is restarted. Then the stub's own books
are compared with the ledger, attempt by attempt, by ids chosen before sending. ``python -m evals.chaos``.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.abc
import anyio.to_thread

from evals.fanout import MODEL, provider
from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.writer import Target
from orchestrator.jobs.store import JobStore, open_store
from orchestrator.settings import Settings
from orchestrator.stack.options import StackOptions
from orchestrator.stack.up import running_stack
from posology.budget.books.audit import Auditor
from posology.budget.books.reader import Reader
from posology.budget.ledger.redis import RedisLedger
from posology.corpus.sample import notes_file, questions
from posology.published.calls import AttemptOutput
from posology.store import keys
from posology.store.keys import DEFAULT_TENANT
from posology.testing.provider.faults import Faults
from posology.testing.provider.load import LoadStub
from posology.types import Outcome

FAULTS = Faults(latency=(0.5, 1.5), rate_limited=0.02, errors=0.01, cuts=0.005, breaks=0.01)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """What is done to a batch."""

    rows: int = 500
    kills: int = 5
    redis_restarts: int = 1
    workers: int = 2
    concurrency: int = 4
    #: every so many rows one is read in partitions
    every_briefcontext: int = 10
    faults: Faults = FAULTS
    #: seconds between two blows
    pause: float = 4.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Books:
    """What the ledger says."""

    entries: int
    #: counters that were compared with the sums of the entries
    counters: int
    #: dollars
    spent: Decimal
    wrong: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcomes:
    """What was seen."""

    #: states of the output's rows
    rows: Counter[str]
    killed: int
    restarted: int
    seconds: float
    #: requests that the stub finished, and so would bill
    billed: int
    #: attempts of the account that a reply came to
    answered: int
    #: attempts in the ledger with billing status unknown
    unknown: int
    #: requests that were billed and are among the unknown
    billed_unknown: int
    #: what does not agree; empty when all is well
    wrong: tuple[str, ...]
    books: Books | None = None


def write_rows(path: Path, trial: Trial) -> None:
    """Sample questions, in turn."""
    asked = questions()
    with path.open("w", encoding="utf-8") as file:
        for n in range(trial.rows):
            question = asked[n % len(asked)].query
            row: dict[str, Any] = {
                "id": n,
                "question": question.text,
                "form": question.form,
                "options": {o.label: o.text for o in question.options} or None,
                "k": 6,
            }
            if trial.every_briefcontext and n % trial.every_briefcontext == 0:
                row["strategy"] = "briefcontext"
            file.write(json.dumps(row) + "\n")


async def run_trial(folder: Path, trial: Trial) -> Outcomes:
    """Do it, and compare."""
    index, asked, answers = folder / "index", folder / "rows.jsonl", folder / "answers.jsonl"
    with notes_file() as notes:
        await anyio.to_thread.run_sync(
            lambda: run_ingest([notes], Settings(), Target(place=str(index)))
        )
    write_rows(asked, trial)
    with LoadStub(trial.faults, seed=7) as stub:
        options = StackOptions(
            environment=os.environ,
            folder=folder / "stack",
            workers=trial.workers,
            concurrency=trial.concurrency,
            api=False,
            index=str(index),
            overrides=provider(stub) | {"POSOLOGY_CONCURRENCY": str(trial.concurrency)},
        )
        async with running_stack(options) as stack, open_store(stack.redis_url) as store:
            started = time.perf_counter()
            killed = restarted = 0
            environment = {**os.environ, "POSOLOGY_REDIS_URL": stack.redis_url}
            command = [
                str(Path(sys.executable).with_name("posology")), "batch", str(asked), "-o", str(answers),
                "--model", MODEL, "--json",
            ]  # fmt: skip
            async with await anyio.open_process(
                command, env=environment, stdout=None, stderr=None
            ) as batch:
                while killed < trial.kills or restarted < trial.redis_restarts:
                    await anyio.sleep(trial.pause)
                    if batch.returncode is not None:
                        break
                    if killed >= trial.kills // 2 and restarted < trial.redis_restarts:
                        restarted += await restart_redis(store)
                    else:
                        killed += await kill_a_worker(store)
                await batch.wait()
            seconds = time.perf_counter() - started
            attempts = await account(store)
            ours = await books(store, attempts)
        ledger = stub.ledger()
    rows = Counter(
        json.loads(line)["state"] or "rejected" for line in answers.open(encoding="utf-8")
    )
    seen = compare(ledger, attempts, rows, killed, restarted, seconds)
    return replace(seen, wrong=(*seen.wrong, *ours.wrong), books=ours)


def compare(
    ledger: list[dict[str, Any]],
    attempts: list[AttemptOutput],
    rows: Counter[str],
    killed: int,
    restarted: int,
    seconds: float,
) -> Outcomes:
    """Hold the provider's own ledger against the account."""
    billed = Counter(e["client_id"] for e in ledger if e["finished"])
    # a reply that broke off is unusable, and its usage did not come
    answered = {
        a.id
        for a in attempts
        if a.outcome is Outcome.OK or (a.outcome is Outcome.UNUSABLE and a.usage is not None)
    }
    unknown = {a.id for a in attempts if a.usage is None}
    wrong = []
    if twice := [i for i, n in billed.items() if n > 1]:
        wrong.append(f"{len(twice)} attempts were billed more than once")
    if invented := answered - set(billed):
        wrong.append(f"{len(invented)} replies are in the account that the provider never gave")
    if forgotten := set(billed) - answered - unknown:
        wrong.append(f"{len(forgotten)} billed requests are not in the account")
    if both := answered & unknown:
        wrong.append(f"{len(both)} attempts have a reply and no usage")
    ids = [a.id for a in attempts]
    if len(set(ids)) != len(ids):
        wrong.append("an attempt is in the account twice")
    return Outcomes(
        rows=rows,
        killed=killed,
        restarted=restarted,
        seconds=seconds,
        billed=len(billed),
        answered=len(answered),
        unknown=len(unknown),
        billed_unknown=len(set(billed) & unknown),
        wrong=tuple(wrong),
    )


async def account(store: JobStore) -> list[AttemptOutput]:
    """Every attempt of every job."""
    found: list[AttemptOutput] = []
    cursor: str | None = None
    while True:
        page = await store.page(cursor=cursor, limit=200)
        for job in page.jobs:
            found += (await store.get(job.id)).spending.attempts
        if page.next is None:
            return found
        cursor = page.next


async def books(store: JobStore, attempts: list[AttemptOutput]) -> Books:
    """Hold the counters of money against the ledger, and the ledger against the account."""
    audit = await Auditor(store.redis, store.url, DEFAULT_TENANT).verify()
    (*_, total) = await RedisLedger(store.redis, store.url, tenant=DEFAULT_TENANT).balances()
    last: dict[str, str] = {}
    reader = Reader(store.redis, store.url, DEFAULT_TENANT)
    closed: Counter[str] = Counter()
    async for entry in reader.entries():
        last[entry.attempt] = entry.kind
        closed[entry.attempt] += entry.kind in ("settle", "lose")
    wrong = []
    if not audit.right:
        wrong.append(f"{len(audit.differences)} counters are not the sums of the ledger's entries")
    if audit.open or total.reserved:
        wrong.append(f"{audit.open} attempts are still reserved, ${total.reserved}")
    if twice := [i for i, n in closed.items() if n > 1]:
        wrong.append(f"{len(twice)} attempts were settled twice")
    # an attempt that was certainly not sent is in the ledger alone
    sent = {attempt for attempt, kind in last.items() if kind != "release"}
    if not sent <= {a.id for a in attempts} <= set(last):
        wrong.append("the ledger's attempts are not the account's")
    charged = sum((a.charged for a in attempts), Decimal(0))
    if total.spent != charged:
        wrong.append(f"${total.spent} is spent, and the attempts come to ${charged}")
    return Books(
        entries=audit.entries, counters=audit.counters, spent=total.spent, wrong=tuple(wrong)
    )


async def kill_a_worker(store: JobStore) -> bool:
    """Kill the worker with the latest heartbeat that was not killed before."""
    newest = cast("list[str]", await store.redis.zrevrange(keys.WORKERS, 0, -1))
    for name in newest:
        pid = int(name.rpartition(":")[2])
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        print(f"killed worker {pid}", file=sys.stderr)
        return True
    return False


async def restart_redis(store: JobStore) -> bool:
    """Stop Redis; the stack starts it again."""
    info = await store.redis.info("server")
    os.kill(int(info["process_id"]), signal.SIGTERM)
    print("stopped Redis", file=sys.stderr)
    return True


def report(seen: Outcomes) -> None:
    """Print what was seen."""
    print(f"rows out: {sum(seen.rows.values())} {dict(seen.rows)} in {seen.seconds:.0f} s")
    print(f"workers killed: {seen.killed}, Redis restarted: {seen.restarted}")
    print(
        f"requests that the stub finished: {seen.billed} = {seen.answered} with a reply in the "
        f"account + {seen.billed_unknown} of its {seen.unknown} billed-unknown attempts"
    )
    if seen.books is not None:
        print(
            f"ledger: {seen.books.entries} entries, {seen.books.counters} counters compared with their "
            f"sums, ${seen.books.spent} spent"
        )
    print("the account, the stub and the ledger agree" if not seen.wrong else "; ".join(seen.wrong))


def main() -> None:
    """Run the trial; the exit status is 1 when a row or a call is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--kills", type=int, default=5)
    given = parser.parse_args()
    trial = Trial(rows=given.rows, kills=given.kills)
    with tempfile.TemporaryDirectory() as folder:
        seen = anyio.run(run_trial, Path(folder), trial)
    report(seen)
    complete = (seen.killed, seen.restarted) == (trial.kills, trial.redis_restarts)
    if seen.wrong or seen.rows["succeeded"] != trial.rows or not complete:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
