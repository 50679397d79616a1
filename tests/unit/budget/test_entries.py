from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from posology.budget.ledger import entries
from posology.budget.ledger.base import MAX_CAP, NANO, dollars, nano
from posology.types import Attempt, Opening, Outcome, PromptId, Stage, Usage

TOKENS = st.integers(0, 10**7)
AMOUNTS = st.decimals(min_value=0, max_value=1_000, places=12)
USAGES = st.builds(
    Usage,
    input=TOKENS,
    cache_read=TOKENS,
    cache_write_5m=TOKENS,
    cache_write_1h=TOKENS,
    output=TOKENS,
    reasoning=TOKENS,
)
COMMON: dict[str, Any] = {
    "id": st.text(min_size=1),
    "attempt": st.integers(1, 9),
    "stage": st.sampled_from(Stage),
    "model": st.text(),
    "prompt": st.builds(PromptId, name=st.text(), digest=st.text()),
    "started": st.floats(0, 4e9),
    "strategy": st.text(),
    "input_bound": TOKENS,
    "max_tokens": TOKENS,
    "reserved": AMOUNTS,
    "prices": st.text(),
}
ATTEMPTS = st.builds(
    Attempt,
    call=st.integers(1, 99),
    outcome=st.sampled_from(Outcome),
    error=st.none() | st.text(),
    usage=st.none() | USAGES,
    cost=st.none() | AMOUNTS,
    latency=st.integers(0, 10**9).map(lambda micros: micros / 1e6),
    request_id=st.none() | st.text(),
    **COMMON,
)
OPENINGS = st.builds(Opening, call=st.none() | st.integers(1, 99), key=st.text(), **COMMON)


@given(ended=ATTEMPTS)
def test_an_attempt_comes_back_as_it_was(ended: Attempt) -> None:
    assert entries.attempt(json.loads(json.dumps(entries.ended(ended)))) == ended


@given(opening=OPENINGS)
def test_of_an_opening_the_rest_is_unknown_and_nothing_is_zero(opening: Opening) -> None:
    entry = json.loads(json.dumps(entries.opened(opening)))
    lost = entries.attempt(entry | {"call": 1, "outcome": "lost", "latency": 0.0})
    assert (lost.usage, lost.cost, lost.error, lost.request_id) == (None, None, None, None)
    assert lost.charged == opening.reserved
    for name in ("id", "attempt", "stage", "model", "prompt", "started", "prices", "input_bound"):
        assert getattr(lost, name) == getattr(opening, name)


@given(amount=st.decimals(min_value=0, max_value=MAX_CAP, places=15))
def test_nano_dollars_are_rounded_up(amount: Decimal) -> None:
    counted = nano(amount)
    assert counted - 1 < amount * NANO <= counted
    assert nano(dollars(counted)) == counted


@given(counted=st.integers(0, 2**53))
def test_every_nano_dollar_has_its_own_dollars(counted: int) -> None:
    assert nano(dollars(counted)) == counted
    assert nano(dollars(str(counted))) == counted
