"""What a question can have for the money that is left."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from policies.affordable import Quote, afford, describe, options
from posology.types import DECLINE, Dose

BRIEF = Dose(strategy="briefcontext")
DIRECT = Dose(strategy="direct")
LADDER = Dose(strategy="direct", rungs=(2, 4, 8), escalate=True)
COMPRESSED = Dose(strategy="compressed", keep=0.2)
#: what BriefContext steps down to
SMALLER = (Dose(strategy="compressed", keep=0.4), Dose(strategy="compressed", keep=0.1))


def over(passages: int) -> Dose:
    return Dose(strategy="direct", passages=passages)


def priced(*prices: tuple[Dose, str]) -> Quote:
    known = {dose: Decimal(price) for dose, price in prices}
    return lambda dose: known[dose]


@pytest.mark.parametrize(
    ("wanted", "compressed", "smaller"),
    [
        # the whole passages come after the compressed ones that read them, and before less of them
        (BRIEF, SMALLER, [SMALLER[0], DIRECT, SMALLER[1], over(4), over(2), over(1)]),
        (BRIEF, (), [DIRECT, over(4), over(2), over(1)]),
        (COMPRESSED, SMALLER[1:], [DIRECT, SMALLER[1], over(4), over(2), over(1)]),
        (DIRECT, (), [over(4), over(2), over(1)]),
        # one that did not pay, where money is short
        (DIRECT, (COMPRESSED,), [COMPRESSED, over(4), over(2), over(1)]),
        # a ladder begins with two passages: nothing that shows as many is any cheaper
        (LADDER, (), [over(1)]),
        (
            Dose(strategy="compressed", keep=0.2, compressor="x", rungs=(3, 6, 8), escalate=True),
            (),
            [Dose(strategy="direct", rungs=(3, 6, 8), escalate=True), over(1)],
        ),
        (over(5), (), [over(2), over(1)]),
        (over(1), (), []),
    ],
    ids=lambda value: describe(value) if isinstance(value, Dose) else "",
)
def test_it_steps_down_in_this_order(
    wanted: Dose, compressed: Sequence[Dose], smaller: list[Dose]
) -> None:
    assert list(options(wanted, passages=8, compressed=compressed)) == [wanted, *smaller]


PRICES = priced(
    (BRIEF, "0.9"), (SMALLER[0], "0.6"), (DIRECT, "0.7"), (SMALLER[1], "0.5"), (over(4), "0.4"), (over(2), "0.2"),
    (over(1), "0.1"),
)  # fmt: skip


def test_a_falling_cap_passes_every_dose_and_then_declines() -> None:
    caps = [Decimal(10 - step) / 10 for step in range(10)] + [Decimal("0.09")]
    given_ = [
        afford(BRIEF, remaining=cap, quote=PRICES, passages=8, compressed=SMALLER).dose
        for cap in caps
    ]
    assert list(dict.fromkeys(given_)) == [
        BRIEF, *SMALLER, over(4), over(2), over(1), Dose(strategy=DECLINE),
    ]  # fmt: skip


def test_who_declines_names_every_price() -> None:
    found = afford(BRIEF, remaining=Decimal("0.0999"), quote=PRICES, passages=8, compressed=SMALLER)
    assert found.dose == Dose(strategy=DECLINE)
    assert len(found.offers) == 7
    assert not any(offer.fits for offer in found.offers)
    assert "$0.0999 are left" in found.reason
    assert "direct over 1 passage $0.1: declined" in found.reason


def test_who_steps_down_says_from_what() -> None:
    found = afford(BRIEF, remaining=Decimal("0.45"), quote=PRICES, passages=8, compressed=SMALLER)
    assert found.dose == over(4)
    assert [offer.fits for offer in found.offers] == [False] * 4 + [True]
    assert (
        "briefcontext $0.9; compressed keeping 40% of the sentences $0.6; compressed keeping 10%"
        in found.reason
    )
    assert "stepped down to direct over 4 passages, $0.4" in found.reason


def test_what_is_dearer_than_what_was_too_dear_is_priced_and_not_told_of() -> None:
    compressed = Dose(strategy="compressed", keep=0.4)
    quote = priced((BRIEF, "0.5"), (compressed, "0.7"), (DIRECT, "0.6"), (over(1), "0.1"))
    found = afford(BRIEF, remaining=Decimal("0.2"), quote=quote, passages=2, compressed=SMALLER[:1])
    assert found.dose == over(1)
    # in the record it is, so that the same can be decided from it
    assert [offer.dose for offer in found.offers] == [BRIEF, compressed, DIRECT, over(1)]
    assert "compressed" not in found.reason


@pytest.mark.parametrize("wanted", [BRIEF, COMPRESSED])
def test_where_compressing_costs_calls_the_passages_whole_are_what_is_paid_for(
    wanted: Dose,
) -> None:
    compressed = (COMPRESSED,) if wanted == BRIEF else ()
    quote = priced((BRIEF, "2"), (COMPRESSED, "1"), (DIRECT, "0.6"))
    found = afford(wanted, remaining=Decimal("0.6"), quote=quote, passages=8, compressed=compressed)
    assert found.dose == DIRECT
    assert (
        "compressed keeping 20% of the sentences $1: stepped down to direct, $0.6" in found.reason
    )


def test_nothing_else_will_do_where_there_are_no_alternatives() -> None:
    found = afford(
        BRIEF,
        remaining=Decimal("0.5"),
        quote=PRICES,
        passages=8,
        compressed=SMALLER,
        alternatives=False,
    )
    assert found.dose == Dose(strategy=DECLINE)
    assert [offer.dose for offer in found.offers] == [BRIEF]


def test_what_costs_exactly_what_is_left_fits() -> None:
    found = afford(BRIEF, remaining=Decimal("0.9"), quote=PRICES, passages=8, compressed=SMALLER)
    assert found.dose == BRIEF
    assert found.reason == "$0.9 at worst, of $0.9 that are left."


@given(
    prices=st.lists(st.decimals(0, 1, places=3), min_size=7, max_size=7),
    remaining=st.decimals(0, 1, places=3),
)
def test_the_first_that_fits_is_given(prices: list[Decimal], remaining: Decimal) -> None:
    asked = list(options(BRIEF, passages=8, compressed=SMALLER))
    known = dict(zip(asked, prices, strict=True))
    found = afford(
        BRIEF, remaining=remaining, quote=known.__getitem__, passages=8, compressed=SMALLER
    )
    fitting = [dose for dose in asked if known[dose] <= remaining]
    assert found.dose == (fitting[0] if fitting else Dose(strategy=DECLINE))


@given(passages=st.integers(1, 200), wanted=st.sampled_from([BRIEF, DIRECT, COMPRESSED]))
def test_each_dose_is_smaller_and_the_last_is_one_passage(passages: int, wanted: Dose) -> None:
    found = [dose.passages for dose in options(wanted, passages=passages, compressed=SMALLER)]
    shown = [count for count in found if count is not None]
    assume(passages > 1)
    assert shown == sorted(set(shown), reverse=True)
    assert shown[0] < passages
    assert shown[-1] == 1


@pytest.mark.parametrize(
    ("dose", "said"),
    [
        (over(1), "direct over 1 passage"),
        (over(3), "direct over 3 passages"),
        (COMPRESSED, "compressed keeping 20% of the sentences"),
        (LADDER, "direct, by 2, 4, 8 passages"),
        (BRIEF, "briefcontext"),
    ],
)
def test_doses_in_words(dose: Dose, said: str) -> None:
    assert describe(dose) == said


def test_a_compressor_that_is_named_is_told_of() -> None:
    dose = Dose(strategy="compressed", keep=0.2, compressor="leancontext_top")
    assert describe(dose) == "compressed by leancontext_top keeping 20% of the sentences"
