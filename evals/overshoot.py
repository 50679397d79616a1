"""Measures how far a budget is overrun when 64 calls start at once. ``python -m evals.overshoot``.

The cap is $0.45. The stub provider replies after 0.7 s; its own books are the truth: finished requests times list price.
Four stories:

* ``full``: each reply is as long as ``max_tokens`` allows, so a call costs its bound. The cap pays 25.
* ``short``: replies are a tenth as long, so the cap pays all 64, though not their bounds.
* ``lost``: as ``full``, but every fourth request is done and billed, and its reply is lost with the connection. Each
  side makes up to three attempts a call, the default of both.
* ``long``: prompts of 300,000 tokens to a model with a higher price from 272,000 on. The cap pays 3.

LiteLLM is the published package in an environment of its own (``--env``), with its strictest options:

* ``router``: ``provider_budget_config`` of its Router, spending shared by Redis. It compares spending with the limit
  and reserves nothing.
* ``proxy``: a key with ``max_budget``. Before a call, the proxy reserves its own count of input and ``max_tokens`` at the
  deployment's price in Redis, and corrects it after. ``closed`` adds ``fail_closed_budget_enforcement``: a call whose
  estimate does not fit is refused. ``again`` has clients retry refused calls every half second, as the proxy has no
  queue, until nothing changes for eight seconds.

The proxy's own books need Postgres through Prisma, which fetches a binary when it first starts. To avoid that, the key
comes from ``custom_auth`` with ``custom_auth_run_common_checks``, and its ``callbacks`` start the hook that corrects
reservations after a call; without it each call would stay charged at its estimate. One worker, Redis beside it, only
the router's retries: several workers and a slow Redis are not covered. The stub bills no more input than LiteLLM
counts, so that its estimate is a bound, except in ``long``, where its reservation ignores the price step.

Posology: the real stack over the OpenAI adapter, the cap as the tenant's limit in the same Redis. A call waits if only
in-flight reservations block it, and is refused if the budget cannot pay for it.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import anyio

from evals.overshoot_calls import ATTEMPTS, CALLS, CAP, STORIES, Books, Outcome, Story, own_redis
from evals.overshoot_litellm import VERSION, ByProxy, ByRouter, LiteLLM, NoLiteLLM, proxy
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
        port: of the Redis that holds the ledger.
    """

    def __init__(self, port: int) -> None:
        self._url = f"redis://127.0.0.1:{port}/0"

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


Side = Callable[[Story, StubProvider], Outcome]


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One run, with the truth."""

    story: Story
    side: str
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
            f"{self.story.name:6} {self.side:22} {self.requests:8} {seen.answered:8} {seen.refused:7} "
            f"{seen.failed:6} {self.billed:9.4f} {account:>9} {self.overshoot:9.4f} "
            f"{self.overshoot / CAP:9.1%} {seen.seconds:7.1f}"
        )


HEAD = (
    f"{'story':6} {'side':22} {'requests':>8} {'answered':>8} {'refused':>7} {'failed':>6} {'billed $':>9} "
    f"{'account $':>9} {'overrun $':>9} {'overrun %':>9} {'seconds':>7}"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """What is run, and how often."""

    stories: tuple[Story, ...]
    repeats: int
    sides: frozenset[str]


def measured(name: str, side: Side, stub: StubProvider, books: Books, trial: Trial) -> list[Row]:
    """Every story as often as asked for, a line a run."""
    rows = []
    for story in trial.stories:
        for _ in range(trial.repeats):
            books.reset(story)
            outcome = side(story, stub)
            rows.append(Row(story=story, side=name, requests=books.requests, outcome=outcome))
            print(rows[-1], flush=True)
    return rows


def run(trial: Trial, package: LiteLLM | None) -> list[Row]:
    """Run every side on one stub and one Redis."""
    books = Books()
    rows: list[Row] = []
    print(HEAD)
    with StubProvider(books.answer) as stub, own_redis() as port:
        if package and "router" in trial.sides:
            rows += measured("LiteLLM router", ByRouter(package, port), stub, books, trial)
        for closed in (False, True):
            if package and "proxy" in trial.sides:
                name = "LiteLLM proxy" + " closed" * closed
                with proxy(package, stub, port, closed=closed) as url:
                    for again in (False, True):
                        side = ByProxy(url, port, again=again)
                        rows += measured(name + " again" * again, side, stub, books, trial)
        if "posology" in trial.sides:
            rows += measured("Posology", Ours(port), stub, books, trial)
    return rows


def table(rows: list[Row]) -> str:
    """A line a story and side: what all runs of it have in common, or from the least to the most."""
    lines = [
        "",
        f"{'story':6} {'side':28} {'answered':>9} {'billed $':>15} {'account $':>15} {'overrun':>15}",
    ]
    for _, same in itertools.groupby(rows, key=lambda row: (row.side, row.story.name)):
        runs = list(same)
        accounts = [run.outcome.account for run in runs if run.outcome.account is not None]
        lines.append(
            f"{runs[0].story.name:6} {runs[0].side:28} "
            f"{span([f'{run.outcome.answered}' for run in runs]):>9} "
            f"{span([f'{run.billed:.4f}' for run in runs]):>15} "
            f"{span([f'{account:.4f}' for account in accounts]):>15} "
            f"{span([f'{run.overshoot / CAP:.1%}' for run in runs]):>15}"
        )
    # by story, since that is what sides are compared in
    order = [story.name for story in STORIES]
    return "\n".join(
        [*lines[:2], *sorted(lines[2:], key=lambda line: order.index(line.split()[0]))]
    )


def span(values: list[str]) -> str:
    """One value, or the least and the most of several."""
    known = sorted(set(values), key=lambda text: float(text.rstrip("%")))
    return "?" if not known else "-".join(dict.fromkeys((known[0], known[-1])))


def main() -> None:
    """Print a line a run, and the table; the exit status is 1 when Posology's cap did not hold."""
    parser = argparse.ArgumentParser(
        description="How far a budget is overrun, here and with LiteLLM."
    )
    parser.add_argument(
        "--env", type=Path, default=Path.home() / ".cache" / "posology-evals",
        help="where LiteLLM's environment is, or is made: 0.8 GB",
    )  # fmt: skip
    parser.add_argument("--require", action="store_true", help="fail when LiteLLM cannot be had")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--stories", nargs="+", default=[story.name for story in STORIES])
    parser.add_argument("--sides", nargs="+", default=["router", "proxy", "posology"])
    given = parser.parse_args()
    trial = Trial(
        stories=tuple(story for story in STORIES if story.name in given.stories),
        repeats=given.repeats,
        sides=frozenset(given.sides),
    )
    package = None
    if trial.sides & {"router", "proxy"}:
        try:
            package = LiteLLM(given.env)
        except NoLiteLLM as error:
            print(f"without LiteLLM, which cannot be installed here: {error}")
            if given.require:
                raise SystemExit(1) from None
        else:
            print(f"LiteLLM {VERSION}, {package.note}")
    rows = run(trial, package)
    print(table(rows))
    if any(row.overshoot for row in rows if row.side == "Posology"):
        raise SystemExit("Posology's cap did not hold")


if __name__ == "__main__":
    main()
