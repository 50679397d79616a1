"""The figures of section 5.3, and where they hang on a thousand that is 1,024 in one place and 1,000 in another."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.compressors.cost import CostModel
from orchestrator.question.estimates.savings import machine_dollars

K, THOUSAND = Decimal(1_024), Decimal(1_000)
#: A10G, 0.383 s a summary, half of the time at work. The paper's dollars come out when a price "per 1,000 tokens"
#: is per 1,024 for the retrieval and the input (of $0.0015, the price of gpt-3.5-turbo from June 2023 on, though
#: its footnote says $0.002) and per 1,000 for the output (of $0.002).
PAPER = CostModel(
    dollars_per_hour=Decimal("0.485"),
    seconds=0.383,
    utilisation=0.5,
    retrieval_price=Decimal("0.0001") / K,
    input_price=Decimal("0.0015") / K,
    output_price=Decimal("0.002") / THOUSAND,
)


def test_a_summary_costs_what_the_paper_says() -> None:
    assert round(machine_dollars(0.383, Decimal("0.485")), 7) == Decimal("0.0000516")
    # cut, not rounded: it is 1.03197e-4
    assert str(machine_dollars(0.383, Decimal("0.485"), 0.5))[:9] == "0.0001031"
    assert 9_390 < 3_600 / 0.383 < 9_400


def test_a_question_costs_what_the_paper_says() -> None:
    whole = PAPER.whole(question=128, tokens_in=512, tokens_out=64)
    assert whole.retrieval == Decimal("0.0000125")
    assert whole.total == Decimal("0.0008905")
    # "35 % of the context is 50 % of the call": 394 of 512 tokens are context
    less = PAPER.compressed(question=128, tokens_in=512, tokens_out=64, context=394, left=0.35)
    assert less.input / whole.input == pytest.approx(Decimal("0.5"), abs=Decimal("0.0005"))
    assert less.total == pytest.approx(Decimal("0.00061869"), abs=Decimal("0.0000005"))
    assert less.saving(whole) == pytest.approx(Decimal("0.305"), abs=Decimal("0.001"))


def test_with_one_thousand_throughout_it_is_two_percent_more() -> None:
    same = replace(
        PAPER,
        retrieval_price=Decimal("0.0001") / THOUSAND,
        input_price=Decimal("0.0015") / THOUSAND,
    )
    assert same.whole(question=128, tokens_in=512, tokens_out=64).total == Decimal("0.0009088")


def test_the_three_passages_that_it_retrieves_take_three_summaries() -> None:
    whole = PAPER.whole(question=128, tokens_in=512, tokens_out=64)
    three = replace(PAPER, summaries=3.0)
    less = three.compressed(question=128, tokens_in=512, tokens_out=64, context=394, left=0.35)
    assert Decimal("0.05") < less.saving(whole) < Decimal("0.08"), "what is left of the 30 %"
    once = replace(PAPER, summaries=0.0)
    kept = once.compressed(question=128, tokens_in=512, tokens_out=64, context=394, left=0.35)
    assert kept.saving(whole) > Decimal("0.42"), "summaries that are kept for good"


@given(st.floats(0, 1e6), st.decimals(0, 1_000, allow_nan=False, places=4), st.floats(0.001, 1))
def test_an_idle_machine_makes_the_same_work_dearer(
    seconds: float, price: Decimal, utilisation: float
) -> None:
    busy, idle = machine_dollars(seconds, price), machine_dollars(seconds, price, utilisation)
    assert 0 <= busy <= idle * (1 + Decimal("1e-20"))
    assert machine_dollars(2 * seconds, price) >= busy


@pytest.mark.parametrize(
    ("seconds", "price", "utilisation"),
    [(-1, "1", 1), (float("nan"), "1", 1), (float("inf"), "1", 1), (1, "-1", 1), (1, "NaN", 1), (1, "1", 0), (1, "1", 1.1)],
)  # fmt: skip
def test_what_cannot_be_is_refused(seconds: float, price: str, utilisation: float) -> None:
    with pytest.raises(ValueError, match="got"):
        machine_dollars(seconds, Decimal(price), utilisation)


def test_a_context_is_part_of_its_call() -> None:
    with pytest.raises(ValueError, match="10"):
        PAPER.compressed(question=1, tokens_in=10, tokens_out=1, context=11, left=0.5)
    with pytest.raises(ValueError, match="0 to 1"):
        PAPER.compressed(question=1, tokens_in=10, tokens_out=1, context=5, left=1.5)
