"""A process that takes part in races: threads, each with an event loop and a connection of its own.

A line of JSON on standard input starts a round, a line of JSON on standard output ends it.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from decimal import Decimal

import anyio

from posology.budget.ledger.base import nano
from posology.budget.ledger.journal import LedgerJournal
from posology.budget.ledger.redis import RedisLedger
from posology.errors import BudgetExhausted, ProviderOverloaded
from posology.llm.accounting import Account
from posology.llm.calls import Caller
from posology.llm.retry import RetryPolicy
from posology.llm.stack import build
from posology.query import make_query
from posology.seams import Complete
from posology.store.connection import connect
from posology.testing import FlatPrices, ScriptedModel
from posology.types import Call, Completion, Finish, Message, PromptId, Role, Stage, Usage
from tests.support.adapters import sending

#: dollars a token; only output is bounded and billed, so that a call's bound is its ``max_tokens``
PRICES = FlatPrices(token=Decimal("0.000001"))
NANO_A_TOKEN = 1_000
THREADS = 4
#: seconds; a round is over long before
WAIT_TIMEOUT = 60.0
MODEL = "openai:gpt-4o-mini"


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """What the jobs of one process do."""

    url: str
    tenant: str
    #: a thread
    jobs: int
    seed: int
    #: tokens that calls are bounded by, at least and at most
    smallest: int
    largest: int
    #: of the bound that calls cost, at least; at most all of it
    share: float
    #: of the calls that have no usage in their reply
    unknown: float = 0.0
    #: of the calls that are turned away, and made again
    turned_away: float = 0.0
    #: a job makes one call, or goes on until it is refused
    once: bool = True


@dataclass(kw_only=True, slots=True)
class Told:
    """What came of it."""

    #: calls that were answered
    answered: int = 0
    #: bounds of calls that were refused for good, nano-dollars
    refused: list[int] = field(default_factory=list)
    attempts: list[str] = field(default_factory=list)
    #: nano-dollars
    charged: int = 0
    #: nano-dollars of attempts whose cost is unknown
    at_bounds: int = 0


def main() -> None:
    """Run rounds until there are no more."""
    with ThreadPoolExecutor(THREADS) as pool:
        print("ready", flush=True)  # noqa: T201 - that is how it tells
        for line in sys.stdin:
            given = Round(**json.loads(line))
            start = threading.Barrier(THREADS)
            parts = [pool.submit(_thread, given, i, start) for i in range(THREADS)]
            told = Told()
            for part in parts:
                add(told, part.result())
            print(json.dumps(asdict(told)), flush=True)  # noqa: T201 - that is how it tells


def add(to: Told, other: Told) -> None:
    """Add up what two threads or processes told."""
    to.answered += other.answered
    to.refused += other.refused
    to.attempts += other.attempts
    to.charged += other.charged
    to.at_bounds += other.at_bounds


def _thread(given: Round, index: int, start: threading.Barrier) -> Told:
    async def run() -> Told:
        told = Told()
        async with connect(given.url) as redis:
            ledger = RedisLedger(redis, given.url, tenant=given.tenant)
            async with anyio.create_task_group() as group:
                for job in range(given.jobs):
                    draw = random.Random(f"{given.seed}-{index}-{job}")
                    group.start_soon(_job, given, ledger, draw, told)
        return told

    start.wait()
    return asyncio.run(run())


async def _job(given: Round, ledger: RedisLedger, draw: random.Random, told: Told) -> None:
    account = Account()
    complete = build(
        sending(_provider(given, draw)),
        journal=LedgerJournal(ledger, account),
        prices=PRICES,
        bound=lambda _: 0,
        retry=RetryPolicy(attempts=20, base=0.001, cap=0.01, deadline=None),
        caller=Caller(sleep=lambda seconds: anyio.sleep(seconds / 4), wait_timeout=WAIT_TIMEOUT),
    )
    for call in _calls(given, draw):
        try:
            await complete(call)
        except BudgetExhausted as error:
            told.refused.append(nano(error.asked))
            break
        told.answered += 1
    for attempt in account.attempts:
        told.attempts.append(attempt.id)
        told.charged += nano(attempt.charged)
        told.at_bounds += nano(attempt.reserved) if attempt.cost is None else 0


def _calls(given: Round, draw: random.Random) -> Iterator[Call]:
    for number in range(1 if given.once else 10_000):
        yield Call(
            stage=Stage.ANSWER,
            model=MODEL,
            query=make_query("Does it help?"),
            excerpts=(),
            messages=(Message(role=Role.USER, content=f"{number}"),),
            prompt=PromptId(name="answer", digest="0" * 16),
            max_tokens=draw.randint(given.smallest, given.largest),
        )


def _provider(given: Round, draw: random.Random) -> Complete:
    def reply(call: Call) -> Completion | ProviderOverloaded:
        if draw.random() < given.turned_away:
            return ProviderOverloaded("no", provider="openai", model=MODEL, usage=Usage())
        spent = round(call.max_tokens * draw.uniform(given.share, 1.0))
        unknown = draw.random() < given.unknown
        return Completion(
            text="It does.",
            usage=None if unknown else Usage(output=spent),
            finish=Finish.STOP,
            served_model="gpt-4o-mini",
        )

    model = ScriptedModel(reply)

    async def complete(call: Call) -> Completion:
        await anyio.sleep(draw.uniform(0.0, 0.01))
        return await model(call)

    return complete


if __name__ == "__main__":
    main()
