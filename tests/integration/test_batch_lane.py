"""Jobs of the tier batch through the real endpoints of both providers, to a provider with faults, on a real Redis."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from orchestrator.connections import Connections
from orchestrator.lane.collector import LaneOptions
from orchestrator.settings import load_settings
from posology.budget.books.audit import Auditor
from posology.budget.ledger.base import nano
from posology.budget.ledger.redis import RedisLedger
from posology.published.jobs import JobOutput
from posology.store import keys
from posology.testing import BatchBook, BatchFaults, Recorded, Reply, Step, StubProvider
from posology.testing.provider.echo import echo
from posology.types import JobState, Outcome, Scope, Usage
from tests.integration.jobs_store.helpers import Bench, request
from tests.integration.jobs_store.local import Local, model, runner
from workers.engine.lane.collector import collect

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

MODELS = {"openai": "openai:gpt-5.4-mini", "anthropic": "anthropic:claude-haiku-4-5"}
OPTIONS = LaneOptions(wait=60.0, rows=20, poll=30.0, lease=100.0, grace=50.0)
DAY = 86_400.0


class Rig:
    """Workers that share a Redis and a provider."""

    def __init__(self, bench: Bench, book: BatchBook) -> None:
        self.bench = bench
        self._book = book
        self.connections = Connections(load_settings(), offline=lambda: pytest.fail("offline"))

    async def turn(self, seconds: float) -> None:
        """Let every worker do what is due, and time pass."""
        wires: Any = self.connections
        local = Local(bench=self.bench, runner=runner(self.bench, model(), wires=wires))
        await local.until_nothing_is_sent()
        self.bench.clock.forward(seconds)
        work = self.bench.worker("collector")
        connections = self.connections
        await collect(work, connections.batches, connections.prices, OPTIONS)
        await self.within_caps()

    async def within_caps(self) -> None:
        bench = self.bench
        ledger = RedisLedger(bench.redis, bench.url, tenant=bench.tenant, clock=bench.clock)
        for balance in await ledger.balances():
            assert balance.cap is None or balance.spent + balance.reserved <= balance.cap

    async def finish(self, jobs: list[str]) -> list[JobOutput]:
        for turn in range(150):
            await self.turn(60.0)
            if turn % 3 == 2:
                self._book.end_all()
            found = [await self.bench.store.get(job, tenant=self.bench.tenant) for job in jobs]
            if all(out.state.over for out in found):
                return found
        pytest.fail(f"not over: {Counter(out.state for out in found)}")


def _answer(row: Recorded) -> Step:
    return Reply(text=echo, usage=Usage(input=300, output=40))


@pytest.mark.parametrize("provider", list(MODELS))
@pytest.mark.parametrize("tier", ["batch", "batch-then-standard"])
async def test_each_job_ends_and_pays_for_what_was_billed(
    bench: Bench, provider: str, tier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = BatchFaults(
        polls=None, expired=0.1, errored=0.1, broken=0.1, doubled=0.3, creates_lost=0.4, reads_failed=2
    )  # fmt: skip
    book = BatchBook(_answer, faults)
    with StubProvider(_answer, batches=book) as stub:
        monkeypatch.setenv("OPENAI_BASE_URL", stub.openai_url)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", stub.anthropic_url)
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            monkeypatch.setenv(name, "sk-any")
        rig = Rig(bench, book)
        try:
            await bench.redis.hset(
                f"{keys.prefix(bench.tenant)}tenant", "total", nano(Decimal("0.4"))
            )
            jobs = [
                (
                    await bench.store.submit(
                        request(
                            f"Does drug {i} help?",
                            model=MODELS[provider],
                            tier=tier,
                            strategy="briefcontext" if i % 2 else "direct",
                            partition_size=2,
                            k=6,
                            deadline_seconds=DAY,
                        ),
                        tenant=bench.tenant,
                    )
                ).job
                for i in range(20)
            ]
            outs = await rig.finish(jobs)
            for _ in range(5):
                await rig.turn(60.0)
        finally:
            await rig.connections.aclose()
    assert {out.state for out in outs} <= {JobState.SUCCEEDED, JobState.FAILED}
    # three of ten rows have a fault, and a call may go into three batches
    assert sum(out.state is JobState.SUCCEEDED for out in outs) >= 15
    outs = [await bench.store.get(job, tenant=bench.tenant) for job in jobs]
    made = {one.id: one for out in outs for one in out.spending.attempts}
    billed = [entry["client_id"] for entry in book.ledger.entries()]
    assert len(billed) == len(set(billed))
    live = [one for one in made.values() if one.tier == "standard"]
    assert set(billed) == {one.id for one in made.values() if one.tier == "batch" and one.cost != 0}
    assert bool(live) == (tier != "batch")
    # what was billed, and could not be read, is charged at its bound
    assert {one.outcome for one in made.values() if one.cost is None} <= {Outcome.FAILED}
    ledger = RedisLedger(bench.redis, bench.url, tenant=bench.tenant, clock=bench.clock)
    (total,) = [one for one in await ledger.balances() if one.scope is Scope.TOTAL]
    assert total.reserved == 0
    assert total.spent == sum(out.charged_usd for out in outs)
    assert (await Auditor(bench.redis, bench.url, bench.tenant).verify()).right
