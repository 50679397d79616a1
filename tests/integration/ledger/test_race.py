"""200 jobs in two processes of four threads each race a budget that pays for 37 calls.

Redis itself tells of every change of a counter, those inside a script too, and each is checked. To race
more often than the suite does::

    LEDGER_RACES=50 LEDGER_SEED=1 pytest -s tests/integration/ledger/test_race.py
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from redis.asyncio import Redis

from posology.budget.ledger.base import dollars
from posology.store import keys
from posology.store.connection import connect
from posology.types import Limits
from tests.integration.ledger.helpers import counters, fold, last_words, stream, write_limits
from tests.integration.ledger.monitor import Monitor, Seen
from tests.integration.ledger.racer import NANO_A_TOKEN, THREADS, Round, Told, add

pytestmark = pytest.mark.anyio

# not read from the settings: they say how long a person wants to look, and nothing of Posology
RACES = int(os.environ.get("LEDGER_RACES", "5"))
SEED = int(os.environ.get("LEDGER_SEED", "0"))
PROCESSES, JOBS, CALLS = 2, 200, 37
ROOT = Path(__file__).parents[3]
#: how the rounds differ, one after the other
KINDS: tuple[Mapping[str, Any], ...] = (
    {"share": 1.0},
    {"share": 0.4, "once": False},
    {"share": 1.0, "once": False, "mixed": True},
    {"share": 0.3, "once": False, "mixed": True, "unknown": 0.1, "turned_away": 0.05},
    {"share": 1.0, "unknown": 0.5},
)
#: the counters as Redis reads them at the end. KEYS: money, open; ARGV: window, cap
CHECK = """
local spent = tonumber(redis.call('HGET', KEYS[1], 'spent:' .. ARGV[1]) or 0)
local reserved = tonumber(redis.call('HGET', KEYS[1], 'reserved:' .. ARGV[1]) or 0)
return {spent + reserved <= tonumber(ARGV[2]) and 1 or 0, spent, reserved, redis.call('HLEN', KEYS[2])}
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Race:
    """One round: who races, for what."""

    scope: str
    #: nano-dollars
    cap: int
    given: Round


@pytest.fixture(scope="module")
def racers() -> Iterator[list[subprocess.Popen[str]]]:
    with ExitStack() as stack:
        found = [stack.enter_context(_racer()) for _ in range(PROCESSES)]
        for process in found:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        yield found


@contextmanager
def _racer() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.integration.ledger.racer"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            # it ends when it is told nothing more
            cast("Any", process.stdin).close()
            process.wait(90)


def _race(number: int, url: str) -> Race:
    kind = dict(KINDS[number % len(KINDS)])
    draw = random.Random(f"{SEED}-{number}")
    size = draw.randint(50, 5_000)
    once = kind.setdefault("once", True)
    smallest = size // draw.randint(2, 10) if kind.pop("mixed", False) else size
    # what is left over pays for no call
    cap = CALLS * size + (draw.randrange(size) if once else 0)
    now = datetime.now(UTC)
    ends = now.hour == 23 and now.minute > 50
    return Race(
        scope="total" if ends else draw.choice(["day", "month", "total"]),
        cap=cap * NANO_A_TOKEN,
        given=Round(
            url=url,
            tenant=f"race{uuid.uuid4().hex}",
            jobs=JOBS // PROCESSES // THREADS,
            seed=number,
            smallest=smallest,
            largest=size,
            **kind,
        ),
    )


@pytest.mark.timeout(120 + 60 * RACES)
async def test_no_race_spends_more_than_the_cap_or_leaves_a_call_unmade(
    redis_url: str, racers: list[subprocess.Popen[str]]
) -> None:
    async with connect(redis_url) as redis:
        for number in range(RACES):
            await _run(redis, _race(number, redis_url), racers, number)


async def _run(redis: Redis, race: Race, racers: list[subprocess.Popen[str]], number: int) -> None:
    given, started = race.given, time.monotonic()
    today = datetime.now(UTC).date().isoformat()
    window = {"day": f"day:{today}", "month": f"month:{today[:7]}", "total": "total"}[race.scope]
    limits: dict[str, Any] = {race.scope: dollars(race.cap)}
    await write_limits(redis, given.tenant, Limits(**limits))
    word = uuid.uuid4().hex
    monitor = Monitor(given.url, tenant=given.tenant, caps={window: race.cap}, until=word)
    told = Told()
    try:
        for process, i in zip(racers, range(PROCESSES), strict=True):
            line = asdict(given) | {"seed": given.seed * PROCESSES + i}
            print(json.dumps(line), file=process.stdin, flush=True)
        for process in racers:
            assert process.stdout is not None
            add(told, Told(**json.loads(process.stdout.readline())))
    finally:
        await redis.echo(word)
        seen = monitor.result()
    await _check(redis, race, told, seen, window)
    left = (race.cap - told.charged) / given.smallest / NANO_A_TOKEN
    sys.stdout.write(
        f"race {number}: {race.scope}, {told.answered} calls answered, {len(told.refused)} refused, "
        f"{seen.steps} steps checked, peak {seen.peak[window] / race.cap:.4f} of the cap, "
        f"{left:.3f} of a smallest call left, {time.monotonic() - started:.1f} s\n"
    )


async def _check(redis: Redis, race: Race, told: Told, seen: Seen, window: str) -> None:
    given = race.given
    assert seen.wrong == []
    assert seen.steps >= 3 * 3 * told.answered, "the monitor has seen every attempt"
    prefix = keys.prefix(given.tenant)
    asking = redis.eval(CHECK, 2, f"{prefix}money", f"{prefix}money:open", window, race.cap)
    within, spent, reserved, opened = await cast("Awaitable[list[int]]", asking)
    assert (within, reserved, opened) == (1, 0, 0)
    # overshoot 0, by our own count of what the calls came to
    assert spent == told.charged <= race.cap
    assert race.cap - spent < min(told.refused), "what is left would have paid for a call"
    if given.once:
        assert (told.answered, len(told.refused)) == (CALLS, JOBS - CALLS)
    else:
        assert told.answered >= CALLS
        assert len(told.refused) == JOBS
    entries = await stream(redis, given.tenant)
    live = await counters(redis, given.tenant)
    assert live == {n: value for n, value in fold(entries).items() if not n.startswith("run_")}
    assert live == +seen.counters
    words = last_words(entries)
    assert set(words.values()) == {"settle"}
    assert sorted(words) == sorted(told.attempts)
