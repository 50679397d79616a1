"""Rows of a batch, blows against its stack, and the account and the ledger after it, for :mod:`evals.load.lanes`."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from orchestrator.jobs.store import JobStore
from posology.budget.books.audit import Auditor
from posology.budget.books.reader import Reader
from posology.budget.ledger.redis import RedisLedger
from posology.corpus.sample import questions
from posology.published.calls import AttemptOutput
from posology.store import keys
from posology.store.keys import DEFAULT_TENANT


@dataclass(frozen=True, kw_only=True, slots=True)
class Books:
    """What the ledger says."""

    entries: int
    #: counters that were compared with the sums of the entries
    counters: int
    #: dollars
    spent: Decimal
    wrong: tuple[str, ...]


def write_rows(path: Path, rows: int, *, every_briefcontext: int) -> None:
    """Sample questions, in turn; every so many rows one is read in partitions."""
    asked = questions()
    with path.open("w", encoding="utf-8") as file:
        for n in range(rows):
            question = asked[n % len(asked)].query
            row: dict[str, Any] = {
                "id": n,
                "question": question.text,
                "form": question.form,
                "options": {o.label: o.text for o in question.options} or None,
                "k": 6,
            }
            if n % every_briefcontext == 0:
                row["strategy"] = "briefcontext"
            file.write(json.dumps(row) + "\n")


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
