"""The last word of a ledger on each attempt."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from posology.budget.reconcile.ours import latest
from posology.budget.reconcile.report import Measure
from posology.types import Usage

OPENING = {"started": 100.0, "input_bound": 50, "max_tokens": 9}
USAGE = {"input": 7, "cache_read": 1, "output": 3}


def _entry(
    kind: str, name: str, entry: dict[str, Any] | None = None, **more: str
) -> dict[str, str]:
    told = {"entry": json.dumps(OPENING | (entry or {})), "model": "OpenAI:GPT-4o"}
    charged = {"bound": "2000", "charged": "2000", "known": "0", "outcome": "ok"}
    return {"kind": kind, "id": name, "at": "160000"} | told | charged | more


def _settled(name: str, **more: str) -> dict[str, str]:
    ended = {"usage": USAGE, "cost": "0.0000010005", "latency": 2.0, "request_id": "req_1"}
    return _entry("settle", name, ended, charged="1001", known="1", **more)


def test_an_attempt_that_has_ended_is_what_was_told_of_it() -> None:
    reserved = {"kind": "reserve", "id": "a", "at": "1", "reserved": "2000"}
    (ours,) = latest([reserved, _settled("a")], tenant="acme")
    assert (ours.provider, ours.model, ours.tenant) == ("openai", "gpt-4o", "acme")
    assert (ours.started, ours.ended, ours.request_id) == (100.0, 102.0, "req_1")
    assert ours.usage == Usage(input=7, cache_read=1, output=3)
    # the counter's is rounded up
    assert (ours.cost, ours.bound) == (Decimal("0.0000010005"), Decimal("0.000002"))
    assert ours.figures()[Measure.INPUT] == (8, 8)


def test_a_lost_attempt_may_have_cost_anything_up_to_its_bound() -> None:
    (ours,) = latest([_entry("lose", "a", outcome="lost")], tenant="acme")
    assert (ours.usage, ours.cost) == (None, None)
    # nobody told when it ended: by then it had been given up
    assert (ours.started, ours.ended) == (100.0, 160.0)
    assert ours.figures() == {
        Measure.REQUESTS: (0, 1),
        Measure.INPUT: (0, 50),
        Measure.UNCACHED: (0, 50),
        Measure.CACHE_READ: (0, 50),
        Measure.CACHE_WRITE: (0, 50),
        Measure.CACHE_WRITE_5M: (0, 50),
        Measure.CACHE_WRITE_1H: (0, 50),
        Measure.OUTPUT: (0, 9),
        Measure.COST: (Decimal(0), Decimal("0.000002")),
    }


def test_what_was_lost_and_then_told_counts_once() -> None:
    lost = _entry("lose", "a", outcome="lost")
    told = _settled("a") | {"kind": "correct"}
    (ours,) = latest([lost, told], tenant="acme")
    assert ours.usage is not None
    assert ours.cost == Decimal("0.0000010005")


def test_what_was_never_sent_does_not_count() -> None:
    lost = _entry("lose", "b", outcome="lost")
    put_right = _entry("correct", "b", outcome="released", known="1", charged="0")
    released = _entry("release", "a", outcome="released", known="1", charged="0")
    assert list(latest([released, lost, put_right], tenant="acme")) == []


def test_what_was_turned_away_is_no_request() -> None:
    refused = {"usage": dict.fromkeys(USAGE, 0), "cost": "0", "latency": 0.1}
    (ours,) = latest([_entry("settle", "a", refused, known="1", charged="0")], tenant="acme")
    assert ours.turned_away
    assert ours.figures() == {}


def test_a_price_that_is_unknown_leaves_the_tokens_known() -> None:
    (ours,) = latest([_entry("settle", "a", {"usage": USAGE, "cost": None})], tenant="acme")
    assert ours.figures()[Measure.OUTPUT] == (3, 3)
    assert ours.figures()[Measure.COST] == (Decimal(0), Decimal("0.000002"))
