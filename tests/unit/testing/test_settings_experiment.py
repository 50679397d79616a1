from __future__ import annotations

import anyio
import numpy as np
import pytest

from evals.policy import (
    DEFAULTS,
    DIRECT,
    SHIPPED,
    Asked,
    Bench,
    Measured,
    admitted,
    alone,
    arms,
    cheapest,
    dearer,
    halves,
)
from evals.pooled import Question
from policies.affordable import PARTITIONED, WHOLE
from policies.specs import parse
from posology.testing.simulation import profiles
from posology.types import Dose, Passage
from tests.support.tasks import retrieval_of

PROFILES = list(profiles())


def asked(number: int) -> Asked:
    passages = tuple(Passage(id=f"p{i}", text=f"Note {i} is short. It is clear.") for i in range(8))
    question = Question(
        id=str(number), text=f"Which note is {number}?", answers=(), passage=f"p{number % 8}"
    )
    retrieval = retrieval_of(question.query, passages)
    own = retrieval.passages[number % 8]
    return Asked(question=question, retrieval=retrieval, gold={own.passage.id: list(own.sentences)})


def arm(cost: float, right: float, wrong: float, n: int = 10) -> Measured:
    shape = (len(PROFILES), n)
    return Measured(
        cost=np.full(shape, cost),
        right=np.full(shape, right),
        refused=np.full(shape, 1 - right - wrong),
        wrong=np.full(shape, wrong),
    )


def test_the_defaults_of_the_experiment_are_the_shipped_ones() -> None:
    written = parse(f"{SHIPPED}:{','.join(DEFAULTS.values())}").policy()
    assert written.parts == parse(SHIPPED).policy().parts


def test_every_change_of_one_setting_is_among_the_combinations() -> None:
    tried = list(arms())
    assert len(tried) == len(set(tried))
    assert set(alone()) < set(tried)


def test_the_halves_share_no_paragraph() -> None:
    every = [asked(n) for n in range(40)]
    first, second = ({every[i].question.passage for i in half} for half in halves(every, 0))
    assert first
    assert second
    assert not first & second


def test_a_cheap_policy_that_is_wrong_more_often_than_direct_rag_is_not_chosen() -> None:
    found = {
        DIRECT: arm(3.0, 0.8, 0.1),
        "router": arm(2.0, 0.8, 0.1),
        "router:start=1": arm(1.0, 0.7, 0.2),
        "router:start=4": arm(1.5, 0.8, 0.05),
    }
    assert admitted(found) == ["router", "router:start=4"]
    assert cheapest(found, admitted(found)) == "router:start=4"
    assert dearer(found["router"], found["router:start=4"]) == pytest.approx((4 / 3,) * 3)


def test_an_escalation_costs_the_ladder_and_briefcontext() -> None:
    bench = Bench([asked(n) for n in range(24)], "none", partial=True)
    ladder = Dose(strategy=WHOLE, rungs=(2, 4))

    async def run(dose: Dose) -> Measured:
        return Measured.of(await bench.run([dose] * len(bench.asked)))

    async def all_three() -> list[Measured]:
        doses = (
            ladder,
            Dose(strategy=PARTITIONED),
            Dose(strategy=WHOLE, rungs=(2, 4), escalate=True),
        )
        return [await run(dose) for dose in doses]

    first, last, both = anyio.run(all_three)
    went_on = first.refused.astype(bool)
    assert went_on.any()
    assert not went_on.all()
    assert both.cost[went_on] == pytest.approx((first.cost + last.cost)[went_on])
    assert both.cost[~went_on] == pytest.approx(first.cost[~went_on])
    assert (both.right[went_on] == last.right[went_on]).all()
