"""What the state machine does to a ledger and to the model, and how it compares the two."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from hypothesis.stateful import RuleBasedStateMachine, invariant

from posology.budget.books.audit import Auditor
from posology.budget.ledger.base import NANO, dollars
from posology.errors import BudgetError, BudgetExhausted, HeadroomReserved
from posology.types import Limits
from tests.integration.ledger.helpers import (
    Entry,
    RedisDesk,
    asked,
    figures,
    fold,
    fold_figures,
    last_words,
    open_desk,
)
from tests.integration.ledger.model import Model, Try, day_of

T = TypeVar("T")
#: seconds
LEASE = 10
CAPS = {"day": 5 * NANO, "month": 8 * NANO, "total": 12 * NANO}
#: the caps of runs
RUNS: dict[str, int | None] = {"run_a": 3 * NANO, "run_b": None, "run_c": 9 * NANO}
#: real seconds; Redis itself forgets a queue that nobody asks about for five
_SLOW = 4.0


class Machine(RuleBasedStateMachine):
    kind, url = "memory", ""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.stack = AsyncExitStack()
        opened = open_desk(self.kind, f"m{uuid.uuid4().hex}", self.url)
        # the client belongs to the loop
        self.desk = self.wait(self.stack.enter_async_context(opened))
        self.ledger = self.desk.ledger(LEASE)
        self.model = Model(caps={}, own={}, calls=None)
        self.entries: list[Entry] = []
        self.words: dict[str, str] = {}
        self.days: set[str] = set()
        #: attempts whose process is gone
        self.crashed: set[str] = set()
        self.ids = 0
        self.asked_at = time.monotonic()
        self.slow = False

    def wait(self, running: Coroutine[Any, Any, T]) -> T:
        return self.loop.run(running)

    @property
    def now(self) -> int:
        return self.desk.clock.now

    def limit(self, scopes: set[str], calls: int | None) -> None:
        caps = {scope: CAPS[scope] for scope in scopes}
        self.model = Model(caps=caps, own=RUNS, calls=calls)
        given: dict[str, Any] = {scope: dollars(cap) for scope, cap in caps.items()}
        self.wait(self.desk.limit(Limits(calls=calls, **given)))

    def ask(self, run: str, n: int, ticket: str | None = None) -> None:
        """Reserve, and see whether the answer was the one that the promises leave."""
        self.ids += 1
        attempt, day, model = f"a{self.ids}", day_of(self.now), self.model
        ticket = ticket or f"t{self.ids}"
        self.slow |= time.monotonic() - self.asked_at > _SLOW
        self.asked_at = time.monotonic()
        too_dear, held = model.too_dear(run, n, day), model.held(run, n, day)
        before = model.before(ticket, run, n, self.now)
        said = self.said(self.ledger.reserve(self.reservation(attempt, run, n, ticket)))
        match said:
            case None:
                assert not too_dear | held
                assert not before or self.slow, f"{ticket} was served before {before}"
                model.leave(ticket)
                model.tries[attempt] = Try(
                    id=attempt, run=run, bound=n, day=day, lease=self.now + LEASE * 1000
                )
                self.days.add(day)
            case BudgetExhausted():
                assert said.scope in too_dear
                model.leave(ticket)
            case HeadroomReserved():
                assert not too_dear
                # whoever waits does so for a limit, or for others who came first
                held |= {"turn", "job"} if before or self.slow else set()
                assert said.scope in held
                model.wait(ticket, run if said.scope == "job" else None, self.now)

    def said(self, running: Coroutine[Any, Any, None]) -> BudgetError | None:
        try:
            self.wait(running)
        except BudgetError as error:
            return error
        return None

    def reservation(self, attempt: str, run: str, n: int, ticket: str) -> Any:
        cap = RUNS[run]
        return asked(
            attempt,
            dollars(n),
            run=run,
            ticket=ticket,
            cap=None if cap is None else dollars(cap),
        )

    def pick(self, i: int, *states: str, crashed: bool = False) -> Try | None:
        found = [
            t
            for t in self.model.tries.values()
            if (not states or t.state in states) and (crashed or t.id not in self.crashed)
        ]
        return found[-1 - i % len(found)] if found else None

    @invariant()
    def the_ledger_agrees(self) -> None:
        self.wait(self._agree())

    async def _agree(self) -> None:
        new = await self.desk.entries(len(self.entries))
        self.entries += new
        runs = {t.run for t in self.model.tries.values()}
        live = await self.desk.counters(*sorted(runs))
        assert live == self.model.counters()
        assert fold(self.entries) == live
        assert all(n >= 0 for n in live.values())
        assert last_words(self.entries) == {t.id: t.last_word for t in self.model.tries.values()}
        self.within_caps(live)
        for what in ("spent", "reserved"):
            by_month = Counter[str]()
            for day in self.days:
                by_month[day[:7]] += live[f"{what}:day:{day}"]
            assert by_month.total() == live[f"{what}:total"], "the sum over days"
            assert all(n == live[f"{what}:month:{m}"] for m, n in by_month.items())
        if isinstance(self.desk, RedisDesk):
            found = await figures(self.desk.redis, self.desk.tenant, *sorted(self.days))
            assert found == fold_figures(self.entries)
            assert all(n >= 0 for of in found.values() for n in of.values())

    def within_caps(self, live: Counter[str]) -> None:
        """In every scope; what calls cost above their bounds is none of its promises."""
        for run in RUNS:
            for day in self.days:
                for of, cap in self.model.scopes(run, day).values():
                    above = sum(
                        max(0, t.charged - t.bound)
                        for t in self.model.tries.values()
                        if of in (f"day:{t.day}", f"month:{t.day[:7]}", "total", t.run)
                    )
                    spent, reserved = self.model.sums(of)
                    assert spent + reserved <= cap + above, f"{of} is above its cap"

    def teardown(self) -> None:
        try:
            self.nothing_is_left_open()
        finally:
            self.wait(self.stack.aclose())
            self.loop.close()

    def nothing_is_left_open(self) -> None:
        """Whatever the others did, a lease later nothing is held that nobody asks for."""
        self.desk.clock.forward(LEASE)
        swept = self.wait(self.ledger.sweep())
        assert set(swept) == self.model.sweep(self.now)
        self.the_ledger_agrees()
        assert not self.model.open
        assert fold(self.entries)["reserved:total"] == 0
        if isinstance(self.desk, RedisDesk):
            # the ledger's own check comes to the same
            desk = self.desk
            assert self.wait(Auditor(desk.redis, desk.url, desk.tenant).verify()).right
