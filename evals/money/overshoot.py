"""Measures how far a budget is overrun when 64 calls start at once. ``python -m evals.money.overshoot``.

The cap is $0.45. The stub provider replies after 0.7 s; its own books are the truth: finished requests times list price.
Four stories:

* ``full``: each reply is as long as ``max_tokens`` allows, so a call costs its bound. The cap pays 25.
* ``short``: replies are a tenth as long, so the cap pays all 64, though not their bounds.
* ``lost``: as ``full``, but every fourth request is done and billed, and its reply is lost with the connection. A call
  makes up to three attempts.
* ``long``: prompts of 300,000 tokens to a model with a higher price from 272,000 on. The cap pays 3.

Posology: the real stack over the OpenAI adapter, the cap as the tenant's limit in the same Redis. A call waits if only
in-flight reservations block it, and is refused if the budget cannot pay for it. LiteLLM's figures beside it, in ``evals/README.md``, were measured once.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import anyio

from evals.money.ledger import a_redis
from evals.money.stub import ATTEMPTS, CALLS, CAP, STORIES, Books, Outcome, Story
from posology.budget.bounds.calls import CallBound
from posology.budget.ledger.journal import LedgerJournal
from posology.budget.ledger.redis import RedisLedger
from posology.budget.prices.book import packaged
from posology.budget.tenants.store import TenantStore
from posology.errors import BudgetError, ProviderError
from posology.llm.accounting import Account
from posology.llm.providers.openai import OpenAIAdapter
from posology.llm.retry import RetryPolicy
from posology.llm.stack import build
from posology.query import make_query
from posology.store.connection import connect
from posology.testing import StubProvider
from posology.types import Call, Limits, Message, PromptId, Role, Scope, Stage


class Ours:
    """The real stack, with the cap as the tenant's limit.

    Args:
        url: of the Redis that holds the ledger.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, story: Story, stub: StubProvider) -> Outcome:
        """Make the calls for a tenant that has not spent anything."""
        return asyncio.run(self._calls(story, stub))

    async def _calls(self, story: Story, stub: StubProvider) -> Outcome:
        store = connect(self._url)
        tenant = f"t{time.time_ns()}"
        await TenantStore(store, self._url).create(tenant, Limits(total=CAP))
        ledger = RedisLedger(store, self._url, tenant=tenant)
        adapter = OpenAIAdapter(api_key="none", base_url=stub.openai_url)
        ends = Counter[str]()

        async def one() -> None:
            complete = build(
                adapter,
                # a run of its own, as each question of a user's is
                journal=LedgerJournal(ledger, Account()),
                prices=packaged(),
                bound=CallBound(),
                retry=RetryPolicy(attempts=ATTEMPTS),
            )
            try:
                await complete(call_of(story))
            except BudgetError:
                ends["refused"] += 1
            except ProviderError:
                ends["failed"] += 1
            else:
                ends["answered"] += 1

        started = time.perf_counter()
        async with anyio.create_task_group() as group:
            for _ in range(CALLS):
                group.start_soon(one)
        seconds = time.perf_counter() - started
        balances = {balance.scope: balance for balance in await ledger.balances()}
        account = balances[Scope.TOTAL]
        if account.reserved:
            raise RuntimeError(
                f"${account.reserved} are still set aside though nothing is under way"
            )
        await adapter.aclose()
        await store.aclose()
        return Outcome(
            answered=ends["answered"],
            refused=ends["refused"],
            failed=ends["failed"],
            account=account.spent,
            seconds=seconds,
        )


def call_of(story: Story) -> Call:
    """The call as our strategies make them."""
    return Call(
        stage=Stage.ANSWER,
        model=f"openai:{story.model}",
        query=make_query("Does aspirin prevent stroke?"),
        excerpts=(),
        messages=(Message(role=Role.USER, content=story.prompt),),
        prompt=PromptId(name="answer", digest="0" * 16),
        max_tokens=story.max_tokens,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One run, with the truth."""

    story: Story
    requests: int
    outcome: Outcome

    @property
    def billed(self) -> Decimal:
        """Dollars by the provider's own books."""
        return self.requests * self.story.cost

    @property
    def overshoot(self) -> Decimal:
        """Dollars beyond the cap."""
        return max(Decimal(0), self.billed - CAP)

    def __str__(self) -> str:
        seen = self.outcome
        account = "?" if seen.account is None else f"{seen.account:.4f}"
        return (
            f"{self.story.name:6} {self.requests:8} {seen.answered:8} {seen.refused:7} "
            f"{seen.failed:6} {self.billed:9.4f} {account:>9} {self.overshoot:9.4f} "
            f"{self.overshoot / CAP:9.1%} {seen.seconds:7.1f}"
        )


HEAD = (
    f"{'story':6} {'requests':>8} {'answered':>8} {'refused':>7} {'failed':>6} {'billed $':>9} "
    f"{'account $':>9} {'overrun $':>9} {'overrun %':>9} {'seconds':>7}"
)


def run(stories: Sequence[Story], repeats: int) -> list[Row]:
    """Run every story as often as asked for, a line a run, on one stub and one Redis."""
    books = Books()
    rows: list[Row] = []
    print(HEAD)
    with (
        StubProvider(books.answer) as stub,
        tempfile.TemporaryDirectory() as folder,
        a_redis(Path(folder), file=False) as server,
    ):
        side = Ours(server.tcp)
        for story in stories:
            for _ in range(repeats):
                books.reset(story)
                outcome = side(story, stub)
                rows.append(Row(story=story, requests=books.requests, outcome=outcome))
                print(rows[-1], flush=True)
    return rows


def table(rows: list[Row]) -> str:
    """A line a story: what all runs of it have in common, or from the least to the most."""
    lines = [
        "",
        f"{'story':6} {'answered':>9} {'billed $':>15} {'account $':>15} {'overrun':>15}",
    ]
    for name, same in itertools.groupby(rows, key=lambda row: row.story.name):
        runs = list(same)
        accounts = [run.outcome.account for run in runs if run.outcome.account is not None]
        lines.append(
            f"{name:6} "
            f"{span([f'{run.outcome.answered}' for run in runs]):>9} "
            f"{span([f'{run.billed:.4f}' for run in runs]):>15} "
            f"{span([f'{account:.4f}' for account in accounts]):>15} "
            f"{span([f'{run.overshoot / CAP:.1%}' for run in runs]):>15}"
        )
    return "\n".join(lines)


def span(values: list[str]) -> str:
    """One value, or the least and the most of several."""
    known = sorted(set(values), key=lambda text: float(text.rstrip("%")))
    return "?" if not known else "-".join(dict.fromkeys((known[0], known[-1])))


def main() -> None:
    """Print a line a run, and the table; the exit status is 1 when the cap did not hold."""
    parser = argparse.ArgumentParser(description="How far a budget is overrun.")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--stories", nargs="+", default=[story.name for story in STORIES])
    given = parser.parse_args()
    rows = run([story for story in STORIES if story.name in given.stories], given.repeats)
    print(table(rows))
    if any(row.overshoot for row in rows):
        raise SystemExit("the cap did not hold")


if __name__ == "__main__":
    main()
