from __future__ import annotations

from dataclasses import replace

import anyio
import numpy as np
import pytest

from evals.policy.bench import SHIPPED, Asked, Bench
from evals.policy.medical import Snippet, holding, joined, nearest
from evals.policy.report import DIRECT, Measured, admitted, better, cheapest, dearer, halves
from evals.policy.router import ROUTER, Arm, Outcome, beaten
from evals.policy.settings import DEFAULTS, alone, arms
from orchestrator.evaluation.simulation import profiles
from policies.affordable import PARTITIONED, WHOLE
from policies.specs import parse
from posology.query import make_query
from posology.types import Dose, Passage, Retrieval
from tests.support.tasks import retrieval_of

PROFILES = list(profiles())


def asked(number: int) -> Asked:
    passages = tuple(Passage(id=f"p{i}", text=f"Note {i} is short. It is clear.") for i in range(8))
    retrieval = retrieval_of(make_query(f"Which note is {number}?"), passages)
    more = (*passages, Passage(id="p8", text="Another note is short. It is clear."))
    own = retrieval.passages[number % 8]
    return Asked(
        origin="notes",
        id=str(number),
        documents=frozenset({f"p{number % 8}", f"p{number % 8 + 100 * (number % 3)}"}),
        retrieval=retrieval,
        wider=retrieval_of(retrieval.query, more),
        gold={own.passage.id: list(own.sentences)},
    )


def snippet(start: int, text: str, *, abstract: bool = True) -> Snippet:
    return Snippet(document="d", abstract=abstract, start=start, end=start + len(text), text=text)


def shown(text: str) -> Retrieval:
    return retrieval_of(make_query("Does aspirin help?"), (Passage(id="d", text=text),))


def arm(cost: float, right: float, wrong: float, n: int = 10) -> Measured:
    shape = (len(PROFILES), n)
    return Measured(
        cost=np.full(shape, cost),
        right=np.full(shape, right),
        refused=np.full(shape, 1 - right - wrong),
        wrong=np.full(shape, wrong),
    )


def answers(cost: float, *, right: int, wrong: int, one: float | None = None) -> list[Outcome]:
    """A hundred outcomes of one cost; the first may have another."""
    found = [
        Outcome(
            right=n < right,
            refused=n >= right + wrong,
            calls=1,
            input=1,
            output=1,
            cost=cost,
            dose="",
            branch="",
        )
        for n in range(100)
    ]
    return found if one is None else [replace(found[0], cost=one), *found[1:]]


def test_the_defaults_of_the_experiment_are_the_shipped_ones() -> None:
    written = parse(f"{SHIPPED}:{','.join(DEFAULTS.values())}").policy()
    assert written.parts == parse(SHIPPED).policy().parts


def test_every_change_of_one_setting_is_among_the_combinations() -> None:
    tried = list(arms())
    assert len(tried) == len(set(tried))
    assert set(alone()) < set(tried)


def test_the_halves_share_no_paragraph() -> None:
    every = [asked(n) for n in range(40)]
    first, second = (
        {document for i in half for document in every[i].documents} for half in halves(every, 0)
    )
    assert first
    assert second
    assert not first & second


def test_snippets_of_a_document_are_joined_in_order_and_overlap_once() -> None:
    whole = "Aspirin was given. Pain fell by half. None bled."
    parts = {
        snippet(19, whole[19:]),
        snippet(0, "Aspirin for pain", abstract=False),
        snippet(0, whole[:28]),
        snippet(19, whole[19:36]),
    }
    assert joined(parts) == f"Aspirin for pain {whole}"


def test_a_sentence_that_only_repeats_the_question_is_not_the_nearest_to_the_answer() -> None:
    found = shown("We asked whether aspirin helps. Pain fell by half. None bled.")
    words = frozenset({"pain", "fell", "half"})
    [gold] = nearest({"d": None}, words)(found)["d"]
    assert found.passages[0].passage.text[gold.start : gold.end].startswith("Pain fell")
    assert nearest({"other": None}, words)(found) == {}


def test_of_a_list_the_sentences_with_most_items_count() -> None:
    text = "Aspirin was given. Aspirin and heparin were given. Heparin, aspirin and rest helped."
    found = shown(text)
    gold = holding({"d": [(0, len(text))]}, [["aspirin"], ["heparin", "LMWH"]])(found)["d"]
    assert gold == list(found.passages[0].sentences[1:])
    assert holding({"d": [(0, 18)]}, [["warfarin"]])(found) == {}


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


def test_a_policy_is_better_only_if_it_is_cheaper_right_as_often_and_wrong_as_seldom() -> None:
    found = {
        "router": arm(2.0, 0.8, 0.1),
        "cheaper": arm(1.0, 0.8, 0.1),
        "cheaper, right more often": arm(1.0, 0.9, 0.05),
        "cheaper, wrong more often": arm(1.0, 0.8, 0.15),
        "cheaper, refused more often": arm(1.0, 0.7, 0.1),
        "dearer": arm(3.0, 0.9, 0.0),
    }
    assert better(found, "router") == ["cheaper", "cheaper, right more often"]


def test_the_router_is_beaten_by_a_cheaper_dose_or_surely_by_a_better_setting() -> None:
    ways = [
        Arm(name=ROUTER),
        *(Arm(name=name, rival=True) for name in ("dearer dose", "cheaper dose", "wrong dose")),
        *(Arm(name=name) for name in ("cheaper setting", "a setting that refuses", "chance")),
    ]
    found = {
        ROUTER: answers(2.0, right=80, wrong=10),
        "dearer dose": answers(3.0, right=90, wrong=0),
        "cheaper dose": answers(1.0, right=70, wrong=10),
        "wrong dose": answers(1.0, right=80, wrong=11),
        "cheaper setting": answers(1.0, right=80, wrong=10),
        "a setting that refuses": answers(0.1, right=70, wrong=0),
        "chance": answers(2.05, right=80, wrong=10, one=0.0),
    }
    found[ROUTER][0] = replace(found[ROUTER][0], cost=9.0)
    assert list(beaten(found, ways)) == ["cheaper dose", "cheaper setting"]


@pytest.mark.parametrize(
    ("search", "then"), [(False, Dose(strategy=PARTITIONED)), (True, Dose(strategy=WHOLE, skip=2))]
)
def test_an_escalation_costs_the_ladder_and_what_follows(*, search: bool, then: Dose) -> None:
    bench = Bench([asked(n) for n in range(24)], "none", partial=True)
    ladder = Dose(strategy=WHOLE, rungs=(2, 4))

    async def run(dose: Dose) -> Measured:
        return Measured.of(await bench.run([dose] * len(bench.asked)))

    async def all_three() -> list[Measured]:
        doses = (
            ladder,
            then,
            Dose(strategy=WHOLE, rungs=(2, 4), escalate=True, search=search),
        )
        return [await run(dose) for dose in doses]

    first, last, both = anyio.run(all_three)
    went_on = first.refused.astype(bool)
    assert went_on.any()
    assert not went_on.all()
    assert both.cost[went_on] == pytest.approx((first.cost + last.cost)[went_on])
    assert both.cost[~went_on] == pytest.approx(first.cost[~went_on])
    assert (both.right[went_on] == last.right[went_on]).all()
