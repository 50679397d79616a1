"""Paid runs by way of a provider's batches: half the price, faults, caps, and processes that are killed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest
from redis.asyncio import Redis

from orchestrator.connections import Connections
from orchestrator.lane.collector import LaneOptions
from orchestrator.settings import Settings
from orchestrator.training.forms import LabelOutput
from orchestrator.training.paid.calls import Bought, Purchase, buy_all
from orchestrator.training.paid.journal import journal_path, open_journal
from orchestrator.training.paid.lane import BatchBuyer, LaneTerms
from orchestrator.training.paid.rows import Failed
from posology.budget.ledger.base import Ledger, nano
from posology.budget.ledger.redis import RedisLedger
from posology.errors import BudgetError, BudgetExhausted
from posology.llm.memo import call_key
from posology.store import keys
from posology.store.connection import connect
from posology.testing import Reply, StubProvider
from posology.testing.provider.batches.book import BatchBook, BatchFaults
from posology.testing.provider.steps import Recorded, Step
from posology.types import Call, PromptId, Query, Stage, Usage
from tests.support.calls import call_to
from tests.support.commands import command_line
from tests.support.indices import write_rows
from tests.support.paid_runs import MODEL, environment_of, ingest_six, kill_when

USED = Usage(input=300, output=20)
NOTHING = Decimal(0)


def answer(_: Recorded) -> Step:
    return Reply(text="No answer", usage=USED)


def a_call(number: int) -> Call:
    text = f"Question {number}?"
    prompt = PromptId(name="label", digest="0123456789abcdef")
    return call_to(MODEL, text, stage=Stage.LABEL, query=Query(text=text), prompt=prompt)


@dataclass
class Rig:
    """Runs of one file, each by a buyer of its own."""

    ledger: Ledger
    stub: StubProvider
    path: Path
    cap: Decimal | None = None
    #: seconds after which a batch without an end is given up
    patience: float = 3_600.0
    bought: dict[str, Bought] = field(default_factory=dict)
    failures: list[Failed] = field(default_factory=list)

    @property
    def spent(self) -> Decimal:
        costs = [one.cost for one in self.bought.values()] + [one.cost for one in self.failures]
        return sum(costs, NOTHING)

    async def _fail(self, row: Failed) -> None:
        self.failures.append(row)

    async def run(self, calls: Sequence[Call], *, rows: int = 4) -> None:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("OPENAI_API_KEY", "sk-test")
            environment.setenv("OPENAI_BASE_URL", self.stub.openai_url)
            connections = Connections(Settings(), offline=lambda: pytest.fail("no call is offline"))
            endpoint = connections.batches(MODEL)
        terms = LaneTerms(
            endpoint=endpoint, prices=connections.prices, bound=connections.bound,
            options=LaneOptions(
                wait=0.0, rows=rows, poll=0.01, lease=1.0, grace=0.0, patience=self.patience
            ),
        )  # fmt: skip
        purchase = Purchase(
            completes=connections.complete, ledger=self.ledger, cap=self.cap, at_once=1
        )

        async def work(call: Call) -> None:
            bought = await buyer(call)
            self.bought[call_key(call)] = bought

        todo = [call for call in calls if call_key(call) not in self.bought]
        try:
            with open_journal(self.path) as journal:
                buyer = BatchBuyer(
                    purchase, terms, journal, spent=self.spent, failed=self._fail,
                    kept=self.bought.__contains__,
                )  # fmt: skip
                async with buyer.working():
                    await buy_all(work, todo, at_once=100)
        finally:
            await connections.aclose()


@pytest.fixture
def ledger(redis: Redis, redis_url: str, tenant: str) -> RedisLedger:
    return RedisLedger(redis, redis_url, tenant=tenant)


async def total(ledger: Ledger) -> tuple[Decimal, Decimal]:
    """Dollars spent and reserved."""
    (found,) = [one for one in await ledger.balances() if one.scope == "total"]
    return found.spent, found.reserved


def answered(book: BatchBook) -> Counter[str]:
    """How often each question was answered, and so billed."""
    bodies = {name: body for batch in book.batches.values() for name, body in batch.rows.items()}
    billed = [entry["client_id"] for entry in book.ledger.entries()]
    assert len(billed) == len(set(billed))
    return Counter(bodies[name]["messages"][-1]["content"] for name in billed)


@pytest.mark.anyio
async def test_each_call_is_answered_once_at_half_the_price(
    ledger: RedisLedger, tmp_path: Path
) -> None:
    book = BatchBook(answer)
    calls = [a_call(n) for n in range(10)]
    with StubProvider(batches=book) as stub:
        rig = Rig(ledger, stub, tmp_path / "run")
        await rig.run(calls)
        assert not any(one.path.endswith("/chat/completions") for one in stub.requests)
    assert {len(batch.rows) for batch in book.batches.values()} == {4, 2}
    assert set(answered(book).values()) == {1}
    assert len(rig.bought) == 10
    assert not book.files
    full = Connections(Settings(), offline=lambda: pytest.fail("no call")).prices.cost(MODEL, USED)
    assert full is not None
    assert rig.spent == 10 * full / 2 == (await total(ledger))[0]
    assert (await total(ledger))[1] == 0
    assert not journal_path(rig.path).exists()


@pytest.mark.anyio
async def test_faults_lose_no_call_and_pay_for_none_twice(
    ledger: RedisLedger, tmp_path: Path
) -> None:
    faults = BatchFaults(expired=0.2, errored=0.1, doubled=0.3, creates_lost=0.5, reads_failed=2)
    book = BatchBook(answer, faults)
    calls = [a_call(n) for n in range(24)]
    with StubProvider(batches=book) as stub:
        rig = Rig(ledger, stub, tmp_path / "run")
        await rig.run(calls)
    assert len(rig.bought) + len(rig.failures) == 24
    assert len(rig.bought) > 20
    assert set(answered(book).values()) == {1}
    assert (await total(ledger)) == (rig.spent, NOTHING)
    assert not journal_path(rig.path).exists()


@pytest.mark.anyio
async def test_rows_that_cannot_be_read_are_charged_at_their_bounds(
    ledger: RedisLedger, tmp_path: Path
) -> None:
    book = BatchBook(answer, BatchFaults(broken=0.3))
    with StubProvider(batches=book) as stub:
        rig = Rig(ledger, stub, tmp_path / "run")
        await rig.run([a_call(n) for n in range(16)])
    assert len(rig.bought) + len(rig.failures) == 16
    assert max(answered(book).values()) > 1
    assert (await total(ledger)) == (rig.spent, NOTHING)


@pytest.mark.anyio
async def test_a_run_stops_at_its_cap_and_goes_on_with_a_higher_one(
    ledger: RedisLedger, tmp_path: Path
) -> None:
    book = BatchBook(answer)
    calls = [a_call(n) for n in range(12)]
    connections = Connections(Settings(), offline=lambda: pytest.fail("no call"))
    worst = connections.prices.worst(
        MODEL, input_tokens=connections.bound(calls[0]), output_tokens=100, tier="batch"
    )
    with StubProvider(batches=book) as stub:
        rig = Rig(ledger, stub, tmp_path / "run", cap=worst * 3)
        with pytest.raises(BudgetExhausted):
            await rig.run(calls)
        assert rig.bought
        assert rig.spent <= worst * 3
        assert (await total(ledger)) == (rig.spent, NOTHING)
        rig.cap = worst * 100
        await rig.run(calls)
    assert len(rig.bought) == 12
    assert set(answered(book).values()) == {1}
    assert (await total(ledger)) == (rig.spent, NOTHING)


@pytest.mark.anyio
async def test_calls_wait_while_others_have_reserved_the_rest(
    redis: Redis, ledger: RedisLedger, tenant: str, tmp_path: Path
) -> None:
    connections = Connections(Settings(), offline=lambda: pytest.fail("no call"))
    worst = connections.prices.worst(
        MODEL, input_tokens=connections.bound(a_call(0)), output_tokens=100, tier="batch"
    )
    # room for two, then for more, since less is charged than was reserved; and one call at once
    await redis.hset(f"{keys.prefix(tenant)}tenant", mapping={"total": nano(worst * 4), "calls": 1})
    book = BatchBook(answer)
    with StubProvider(batches=book) as stub:
        rig = Rig(ledger, stub, tmp_path / "run")
        try:
            await rig.run([a_call(n) for n in range(8)], rows=8)
        except BudgetError:
            assert len(rig.bought) < 8
    assert len(rig.bought) >= 4
    assert (await total(ledger)) == (rig.spent, NOTHING)
    assert (await total(ledger))[0] <= worst * 4


@pytest.mark.anyio
@pytest.mark.parametrize("days", [False, True])
async def test_a_run_that_is_interrupted_finds_its_batches_again(
    ledger: RedisLedger, tmp_path: Path, days: bool
) -> None:
    """Patience with a batch that has no end is none with one that ended while no process ran."""
    # batches end at the test's word
    book = BatchBook(answer, BatchFaults(polls=None))
    calls = [a_call(n) for n in range(6)]
    with StubProvider(batches=book) as stub:
        rig = Rig(ledger, stub, tmp_path / "run")
        async with anyio.create_task_group() as group:
            group.start_soon(rig.run, calls)
            with anyio.fail_after(90):
                while len(book.batches) < 2:  # noqa: ASYNC110 - the stub has no event
                    await anyio.sleep(0.01)
            group.cancel_scope.cancel()
        assert not rig.bought
        assert journal_path(rig.path).exists()
        if days:
            book.end_all()
            rig.patience = 0.0
        else:
            book.faults = replace(book.faults, polls=1)
        await rig.run(calls)
    assert len(rig.bought) == 6
    assert len(book.batches) == 2
    assert set(answered(book).values()) == {1}
    assert (await total(ledger)) == (rig.spent, NOTHING)
    assert not journal_path(rig.path).exists()


KILLS: dict[str, Callable[[str, BatchBook], bool]] = {
    "planned, before or while it is created": lambda journal, _: '"planned"' in journal,
    "at the provider": lambda _, book: bool(book.batches),
    "created": lambda journal, _: '"created"' in journal,
    "settled": lambda journal, _: '"settled"' in journal,
}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("moment", list(KILLS))
def test_a_run_that_is_killed_pays_for_no_call_twice(
    moment: str,
    tiny_encoder: Path,
    tmp_path: Path,
    redis_url: str,
    tenant: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    environment = environment_of(ingest_six(tmp_path, tiny_encoder), tiny_encoder) | {
        "POSOLOGY_REDIS_URL": redis_url, "POSOLOGY_TENANT": tenant, "POSOLOGY_BATCH_ROWS": "3",
        "POSOLOGY_BATCH_WAIT": "0", "POSOLOGY_BATCH_POLL": "0.1", "POSOLOGY_BATCH_LEASE": "2",
    }  # fmt: skip
    rows: list[dict[str, Any] | str] = [
        {"question": "Does aspirin lower the risk of stroke?"},
        {"question": "What was the dose of aspirin in adults?"},
    ]
    asked = write_rows(tmp_path / "q.jsonl", rows)
    arguments = ["label", "--questions", str(asked), "--model", MODEL, "--out", "l.jsonl",
                 "--tier", "batch", "--json"]  # fmt: skip
    journal = journal_path(tmp_path / "l.jsonl")
    book = BatchBook(answer)

    def ready() -> bool:
        text = journal.read_text(encoding="utf-8") if journal.exists() else ""
        return KILLS[moment](text, book)

    # a batch whose creation was cut off is there at once, or never
    monkeypatch.setattr("posology.llm.providers.batches.base.APPEARS", 0.0)
    with StubProvider(batches=book) as stub:
        served = {"OPENAI_BASE_URL": stub.openai_url}
        kill_when(ready, ["compressor", *arguments], environment | served, tmp_path)
        assert journal.exists()
        refused = command_line(environment, "compressor")(*arguments[:-3], stub=stub)
        assert refused.exit_code == 3
        assert "--tier batch" in refused.stderr
        result = command_line(environment, "compressor")(*arguments, stub=stub)
    assert result.exit_code == 0, result.output
    out = LabelOutput.model_validate_json(result.stdout)
    assert out.labelled == 10
    assert set(answered(book).values()) == {1}
    assert not journal.exists()
    labels = [json.loads(line) for line in (tmp_path / "l.jsonl").read_text().splitlines()]
    assert len({row["call"] for row in labels if row["row"] == "label"}) == 10

    async def balance() -> tuple[Decimal, Decimal]:
        client = connect(redis_url)
        try:
            return await total(RedisLedger(client, redis_url, tenant=tenant))
        finally:
            await client.aclose()

    assert anyio.run(balance) == (out.spent_usd, NOTHING)
