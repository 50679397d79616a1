"""Every reason that the policies can record has a translation, and others stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from orchestrator.cli.ask.reasons import dose_in_words, in_words
from policies.affordable import afford, describe
from policies.preflight import Published
from posology.types import Dose


@pytest.mark.parametrize(
    ("recorded", "words"),
    [
        (
            (
                "Preflight (auto): the key passage is beyond place 3 of the fused order with probability 0.444, no less than "
                "0.130"
            ),
            (
                "The chance that the key passage is not among the first 3 is about 44 %: too high to trust the first passages "
                "(limit: 13 %)."
            ),
        ),
        (
            (
                "Preflight (auto): no calibration for passages in late-0 of fused order: the IoU of the first 3 by meaning and "
                "by words is 0.00, no more than 0.2: the key passage may be lost in the middle"
            ),
            (
                "No calibration fits this embedder and order of passages (late-0 of fused), so the rankings are a hint only. "
                "Dense and BM25 rankings disagree on the top 3 (IoU 0.00 ≤ 0.20), so the key passage may be buried among the "
                "others."
            ),
        ),
        (
            (
                "Doubling: not calibrated, the issue is no reason for BriefContext, and too likely for a few passages: direct, "
                "by 8 passages, in one call, then BriefContext over all."
            ),
            (
                "A hint does not justify BriefContext, but reading only a few passages is too risky: read all 8 passages in one "
                "call; if they hold no answer, read all of them in small groups (BriefContext)."
            ),
        ),
        (
            (
                "Preflight (auto): the key passage is beyond place 3 of the late-0 of dense>bm25 order with probability 0.044, "
                "below 0.130"
            ),
            (
                "The chance that the key passage is not among the first 3 is about 4 %: low enough to begin with the first "
                "passages (limit: 13 %)."
            ),
        ),
        (
            "Preflight (auto): of 2 passages none is beyond place 3",
            "Only 2 passages were found, so none can be buried among the others.",
        ),
        (
            "Doubling: direct, by 4, 8 passages, each if the one before is refused, then BriefContext over all.",
            (
                "Read the first 4 passages; if they hold no answer, read 8; if there is still no answer, read all of them in "
                "small groups (BriefContext)."
            ),
        ),
        (
            "Doubling: direct, by 2 passages, each if the one before is refused.",
            "Read all 2 passages in one call.",
        ),
        (
            (
                "Doubling: less likely than 0.5, the issue is not worth BriefContext, and too likely for a few passages: "
                "direct, by 8 passages, in one call, then BriefContext over all."
            ),
            (
                "That is below 50 %, so BriefContext is not worth its cost yet, but reading only a few passages is too risky: "
                "read all 8 passages in one call; if they hold no answer, read all of them in small groups (BriefContext)."
            ),
        ),
        (
            "Doubling: 8 of 8 passages were read, and the reply was a refusal to the last: BriefContext over all.",
            "8 of 8 passages were read and the model found no answer: read all of them in small groups (BriefContext).",
        ),
        (
            "Doubling: direct, by 4, 8 passages, each if the one before is refused, then a second search.",
            (
                "Read the first 4 passages; if they hold no answer, read 8; if there is still no answer, search for others."
            ),
        ),
        (
            "Search: 8 passages were read without an answer that a quote supports: 5 others.",
            (
                "8 passages were read and the model found no answer: read the best of them with 5 others, found by a second "
                "search."
            ),
        ),
        ("leancontext would save about $0.10 and costs $0: it pays.", None),
        ("any other sentence", None),
    ],
)
def test_recorded_reasons_in_plain_words(recorded: str, words: str | None) -> None:
    assert in_words([recorded]) == [words or recorded]


@pytest.mark.parametrize("iou", [0.0, 0.2, 0.5, 1.0])
def test_the_words_say_what_the_rule_predicts(iou: float) -> None:
    predicted = Published()({"preflight.iou_3": iou})
    (words,) = in_words([f"Preflight (published): {predicted.reason}"])
    assert ("may be buried" in words) is predicted.issue


@pytest.mark.parametrize("remaining", ["1", "0.05", "0.001"])
def test_sentences_of_money_are_translated_as_they_are_recorded(remaining: str) -> None:
    prices: Mapping[Any, Decimal] = {
        8: Decimal("0.10"),
        4: Decimal("0.04"),
        2: Decimal("0.02"),
        1: Decimal("0.01"),
    }
    found = afford(
        Dose(strategy="direct"),
        remaining=Decimal(remaining),
        quote=lambda dose: prices[dose.passages or 8],
        passages=8,
    )
    (words,) = in_words([f"Money: {found.reason}"])
    assert not words.startswith("Money")
    assert f"${remaining}" in words
    if found.dose.passages:
        assert f"{describe(found.dose)}, at most $0.04" in words


def test_a_ladder_is_read_as_steps() -> None:
    assert dose_in_words("direct, by 4, 8 passages") == "direct over 4, then 8 passages"
    assert dose_in_words("direct over 3 passages") == "direct over 3 passages"
