"""Random spending of one tenant, and what it must add up to."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import cast

from redis.asyncio import Redis

from posology.budget.ledger.redis import RedisLedger
from posology.store import keys
from posology.types import Attempt, Opening, Outcome, PromptId, Reservation, Served, Stage, Usage

#: ms: 2026-01-30, so that a few days have two months
BEGIN = int(datetime(2026, 1, 30, 12, tzinfo=UTC).timestamp() * 1000)
DAY = 86_400_000
LEASE = 60.0
MODELS = ("openai:gpt-4o-mini", "anthropic:claude-haiku", '=cmd|"x"!A1', "openai:a|b,c\n'd")


@dataclass(kw_only=True)
class Told:
    """What became of one attempt."""

    opening: Opening
    job: str
    day: str
    #: ``None``: nobody knows
    cost: Decimal | None = None
    usage: Usage | None = None
    #: the kind of its last entry
    kind: str = "reserve"
    outcome: str | None = None
    #: service tier that it counts under
    tier: str = "standard"

    @property
    def charged(self) -> Decimal:
        return self.opening.reserved if self.cost is None else self.cost


@dataclass(kw_only=True)
class Traffic:
    """Spends at random on a ledger."""

    redis: Redis
    url: str
    tenant: str
    seed: int = 0
    now: int = BEGIN
    told: dict[str, Told] = field(default_factory=dict)
    jobs: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.ledger = RedisLedger(
            self.redis, self.url, tenant=self.tenant, lease=LEASE, clock=lambda: self.now
        )

    async def start(self, jobs: int = 3, runs: int = 3) -> None:
        """Make records of jobs; runs have theirs from their first call on."""
        self.jobs = [keys.new_id("job") for _ in range(jobs)]
        for job in self.jobs:
            await self.redis.hset(keys.budget(self.tenant, job), "id", job)
        self.jobs = [*self.jobs, *(keys.new_id("run") for _ in range(runs))]

    async def spend(self, steps: int) -> None:
        """Do some of everything that can happen."""
        for _ in range(steps):
            self.now += self.random.randrange(1, 20_000)
            self.now += DAY if self.random.random() < 0.02 else 0
            open_ = [name for name, one in self.told.items() if one.kind == "reserve"]
            # after a day nobody waits for the truth any more
            lost = sorted(await hash_of(self.redis, f"{keys.prefix(self.tenant)}money:lost"))
            match self.random.choices(
                ("reserve", "settle", "release", "sweep", "late", "too late"), (50, 35, 4, 6, 4, 1)
            )[0]:
                case "reserve":
                    await self.reserve()
                case "settle" if open_:
                    await self.settle(self.random.choice(open_), "settle")
                case "release" if open_:
                    await self.release(self.random.choice(open_), "release")
                case "late" if lost:
                    await self.settle(self.random.choice(lost), "correct")
                case "too late" if lost:
                    await self.release(self.random.choice(lost), "correct")
                case "sweep":
                    for attempt in await self.ledger.sweep():
                        self.told[attempt].kind = "lose"
                        self.told[attempt].outcome = "lost"

    async def reserve(self, *, nano: int | None = None) -> str:
        """Set something aside; returns the attempt's id."""
        n = self.random.choice((0, 1, 7_500, 123_456_789)) if nano is None else nano
        opening = Opening(
            id=f"{self.random.getrandbits(64):016x}",
            call=len(self.told) + 1,
            attempt=self.random.randrange(1, 4),
            stage=self.random.choice(list(Stage)),
            model=self.random.choice(MODELS),
            prompt=PromptId(name="answer", digest="0123456789abcdef"),
            key="k",
            started=self.now / 1000,
            strategy=self.random.choice(("direct", "briefcontext", "")),
            input_bound=900,
            max_tokens=400,
            reserved=Decimal(n) / 10**9,
            prices="test",
            tier=self.random.choice(("standard", "flex", "batch")),
        )
        job = self.random.choice(self.jobs)
        await self.ledger.reserve(
            Reservation(opening=opening, call=opening.call or 0, job=job, ticket=opening.id)
        )
        day = datetime.fromtimestamp(self.now / 1000, UTC).date().isoformat()
        self.told[opening.id] = Told(opening=opening, job=job, day=day, tier=opening.tier)
        return opening.id

    async def settle(self, attempt: str, kind: str, *, cost: Decimal | None = None) -> None:
        """Say how an attempt ended."""
        one = self.told[attempt]
        outcome = self.random.choice((Outcome.OK, Outcome.OK, Outcome.FAILED, Outcome.CANCELLED))
        factor = self.random.choice((Decimal(0), Decimal("0.25"), Decimal(1), Decimal("1.5"), None))
        if cost is None and factor is not None:
            # no fewer digits than a nano-dollar, so that nothing is rounded
            cost = (one.opening.reserved * factor).quantize(Decimal("1e-9"))
        usage = None if cost is None else Usage(
            input=self.random.randrange(500), cache_read=3, output=self.random.randrange(90), reasoning=2
        )  # fmt: skip
        served: Served | None = self.random.choice((None, "standard", "priority"))
        await self.ledger.settle(
            Attempt(
                id=attempt,
                call=one.opening.call or 0,
                attempt=one.opening.attempt,
                stage=one.opening.stage,
                model=one.opening.model,
                prompt=one.opening.prompt,
                outcome=outcome,
                error=None if outcome is Outcome.OK else "ProviderTimeout",
                usage=usage,
                cost=cost,
                started=one.opening.started,
                latency=0.25,
                request_id="=req" if self.random.random() < 0.5 else None,
                strategy=one.opening.strategy,
                input_bound=one.opening.input_bound,
                max_tokens=one.opening.max_tokens,
                reserved=one.opening.reserved,
                prices=one.opening.prices,
                tier=one.opening.tier,
                served=served,
            )
        )
        # what was lost stays with the tier that it was sent in
        tier = one.tier if kind == "correct" else served or one.tier
        self.told[attempt] = replace(
            one, cost=cost, usage=usage, kind=kind, outcome=str(outcome), tier=tier
        )

    async def release(self, attempt: str, kind: str) -> None:
        """Say that an attempt was not sent."""
        await self.ledger.release(attempt)
        self.told[attempt] = replace(
            self.told[attempt], cost=Decimal(0), kind=kind, outcome="released"
        )


async def hash_of(redis: Redis, name: str) -> dict[str, str]:
    """A hash as it stands in Redis."""
    return cast("dict[str, str]", await redis.hgetall(name))
