"""Random histories of a tenant's money, in one process and in Redis, compared with a model after every step.

A process crashes by forgetting what it has reserved. To look longer than the suite does::

    LEDGER_EXAMPLES=5000 LEDGER_SEED=1 pytest tests/integration/ledger/test_machine.py
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test

from posology.budget.ledger.base import NANO, dollars
from tests.integration.ledger.helpers import ended
from tests.integration.ledger.machine import CAPS, LEASE, RUNS, Machine
from tests.integration.ledger.model import Try

# not read from the settings: they say how long a person wants to look, and nothing of Posology
EXAMPLES = int(os.environ.get("LEDGER_EXAMPLES", "30"))
SEED = os.environ.get("LEDGER_SEED")
STEPS = 40

ANY = st.integers(0, 40)
RUN = st.sampled_from(sorted(RUNS))
SIZES = st.sampled_from([0, 1, NANO // 3, NANO // 2, NANO, 2 * NANO, 3 * NANO])
MANY = st.lists(SIZES, min_size=1, max_size=4)
OFTEN, RARELY = st.sampled_from([True, True, True, False]), st.sampled_from([False, False, True])
#: seconds, or the next window; mostly short, else nothing would stay open
TIMES = st.sampled_from(
    [0.1, 0.1, 1, 1, 4.9, 5, LEASE / 2, LEASE / 2, LEASE, 86_400, "day", "day", "month"]
)
#: of the bound; ``None``: unknown. One in many costs more than it could
SHARES = st.sampled_from(
    [Decimal(0), Decimal("0.3"), Decimal("0.5"), Decimal(1), Decimal(1), None, Decimal("1.25")]
)


class Money(Machine):
    """Few rules that do many things: of many rules, most histories would know only some."""

    @initialize(
        scopes=st.sets(st.sampled_from(sorted(CAPS))),
        calls=st.sampled_from([None, None, None, 3]),
        run=RUN,
        sizes=MANY,
    )
    def begin(self, scopes: set[str], calls: int | None, run: str, sizes: list[int]) -> None:
        self.limit(scopes, calls)
        self.reserve(run, sizes)

    @rule(run=RUN, sizes=MANY)
    def reserve(self, run: str, sizes: list[int]) -> None:
        for n in sizes:
            self.ask(run, n)

    @precondition(lambda self: self.model.waiters)
    @rule(i=ANY, run=RUN, n=SIZES, leaves=RARELY)
    def ask_again(self, i: int, run: str, n: int, leaves: bool) -> None:
        # whoever has left does not come back under the same ticket here
        self.model.bury(self.now)
        if not self.model.waiters:
            return
        waiter = self.model.waiters[i % len(self.model.waiters)]
        if leaves:
            for run in RUNS:
                self.wait(self.ledger.leave(waiter.ticket, run))
            self.model.leave(waiter.ticket)
        else:
            # a ticket is of one run
            self.ask(waiter.run or run, n, waiter.ticket)

    @precondition(lambda self: self.model.open)
    @rule(i=ANY, share=SHARES, sent=OFTEN)
    def end(self, i: int, share: Decimal | None, sent: bool) -> None:
        t = self.pick(i, "open")
        if t is not None:
            self.tell(t, share if sent else "release")

    @precondition(lambda self: any(t.state == "lost" for t in self.model.tries.values()))
    @rule(i=ANY, share=SHARES, sent=OFTEN)
    def late_truth(self, i: int, share: Decimal | None, sent: bool) -> None:
        t = self.pick(i, "lost", crashed=True)
        assert t is not None
        self.tell(t, share if sent else "release")

    @precondition(lambda self: self.model.tries)
    @rule(i=ANY, share=SHARES)
    def repeat(self, i: int, share: Decimal | None) -> None:
        """The reply to what was done already was lost: it changes nothing, whatever it says."""
        t = self.pick(i, crashed=True)
        assert t is not None
        match t.state:
            case "settled":
                self.tell(t, share)
            case "released":
                self.tell(t, "release")
            case "open":
                self.wait(self.ledger.reserve(self.reservation(t.id, t.run, t.bound, "another")))
            case "lost" if t.lost is not None:
                self.wait(self.ledger.reserve(self.reservation(t.id, t.run, t.bound, "another")))

    @precondition(lambda self: self.model.open)
    @rule(i=ANY, run=RUN, crashes=RARELY)
    def live_on(self, i: int, run: str, crashes: bool) -> None:
        """A lease is extended, or the process of a run ends: nobody will tell of its calls, but for late."""
        t = self.pick(i, "open")
        if crashes:
            self.crashed |= {t.id for t in self.model.open if t.run == run}
        elif t is not None:
            assert self.wait(self.ledger.extend([t.id, "nobody"])) == 1
            t.lease = self.now + LEASE * 1000

    @rule(to=TIMES, sweeps=st.booleans())
    def pass_time(self, to: float | str, sweeps: bool) -> None:
        if isinstance(to, str):
            self.desk.clock.now = next_window(self.now, month=to == "month")
        else:
            self.desk.clock.forward(to)
        if sweeps:
            assert set(self.wait(self.ledger.sweep())) == self.model.sweep(self.now)

    def tell(self, t: Try, share: Decimal | str | None) -> None:
        """Settle, or release, as any process may that has heard of the attempt."""
        if isinstance(share, str):
            self.wait(self.ledger.release(t.id))
            self.model.release(t.id)
            return
        cost = None if share is None else int(t.bound * share)
        told = ended(t.id, None if cost is None else dollars(cost), dollars(t.bound))
        self.wait(self.ledger.settle(told))
        self.model.settle(t.id, cost)


def next_window(now: int, *, month: bool) -> int:
    """When the next day or the next month begins, ms."""
    at = datetime.fromtimestamp(now / 1000, UTC)
    then = at.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    while month and then.day != 1:
        then += timedelta(days=1)
    return round(then.timestamp() * 1000)


@pytest.mark.timeout(3_600 if SEED else 600)
@pytest.mark.parametrize("kind", ["memory", "redis"])
def test_no_history_breaks_what_the_ledger_promises(
    request: pytest.FixtureRequest, kind: str
) -> None:
    Money.kind = kind
    Money.url = request.getfixturevalue("redis_url") if kind == "redis" else ""
    machine = Money if SEED is None else seed(int(SEED))(Money)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            derandomize=SEED is None,
            deadline=None,
            database=None,
            # a person who looks wants the shortest history, and waits for it
            phases=[Phase.generate] if SEED is None else list(Phase),
            suppress_health_check=list(HealthCheck),
        ),
    )
