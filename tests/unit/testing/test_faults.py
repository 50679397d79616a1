from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from posology.testing.provider.faults import Chance, Faults, estimate
from posology.testing.provider.steps import Broken, Cut, Recorded, Reply, Status, Step
from posology.types import Usage

REQUEST = Recorded(path="/v1/messages", headers={}, json={})


def steps(faults: Faults, *, seed: int = 1, number: int = 20_000) -> list[Step]:
    chance = Chance(faults, reply=str, seed=seed)
    return [chance(REQUEST) for _ in range(number)]


def kind(step: Step) -> str:
    match step:
        case Status():
            return f"{step.code} within" if step.within else str(step.code)
        case Reply(zeros=True):
            return "zeros"
        case Broken():
            return f"broken by {step.by}"
        case Cut(of=None):
            return "before the work"
        case Cut(after_bytes=None):
            return "before the reply"
        case Cut():
            return "within the reply"
    return "reply"


def test_shares_are_kept() -> None:
    faults = Faults(
        rate_limited=0.2, errors=0.1, cuts=0.4, cuts_after_work=0.5, errors_within=0.1, zero_usage=0.05, breaks=0.09
    )  # fmt: skip
    shares = {k: n / 20_000 for k, n in Counter(map(kind, steps(faults))).items()}
    expected = {
        "429": 0.2,
        "500": 0.1,
        "before the work": 0.2,
        "before the reply": 0.1,
        "within the reply": 0.1,
        "429 within": 0.05,
        "502 within": 0.05,
        "zeros": 0.05,
        "broken by cut": 0.03,
        "broken by end": 0.03,
        "broken by error": 0.03,
        "reply": 0.06,
    }
    assert shares == pytest.approx(expected, abs=0.02)


def test_the_same_seed_draws_the_same() -> None:
    faults = Faults(rate_limited=0.3, cuts=0.3, latency=(0.5, 1.5))
    one, same, other = (steps(faults, seed=seed, number=50) for seed in (1, 1, 2))
    assert one == same != other


@pytest.mark.parametrize(
    "wrong",
    [
        {"latency": (1.0, 0.5)},
        {"latency": (-1.0, 0.5)},
        {"errors": -0.1},
        {"errors": 0.6, "cuts": 0.6},
        {"cuts_after_work": 1.1},
        {"errors_within": 0.6, "zero_usage": 0.6},
    ],
)
def test_shares_that_are_none_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"the sum|the smaller"):
        Faults(**wrong)


def test_usage_is_estimated_from_lengths() -> None:
    asked = {"system": "x" * 40, "messages": [{"role": "user", "content": "x" * 80}]}
    assert estimate(asked, "x" * 20) == Usage(input=31, output=6)
    assert estimate(None, "") == Usage(input=1, output=1)
