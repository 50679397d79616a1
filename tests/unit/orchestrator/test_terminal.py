from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.terminal import money, safe


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\x1b[31mred", "a[31mred"),
        ("a\x9b31m", "a31m"),
        ("title\x07\x08", "title"),
        ("5\u202e gm 52", "5 gm 52"),
        ("one\ntwo\tthree", "one\ntwo\tthree"),
        ("µg ≥ β é 漢", "µg ≥ β é 漢"),
        ("lone \ud800", "lone "),
    ],
)
def test_what_a_terminal_would_obey_is_left_out(text: str, shown: str) -> None:
    assert safe(text) == shown


@given(st.text())
def test_safe_text_has_no_control_characters_and_loses_nothing_else(text: str) -> None:
    shown = safe(text)
    assert not any(ord(c) < 32 and c not in "\n\t" for c in shown)
    assert "\x1b" not in shown
    assert [c for c in shown if c.isalnum()] == [c for c in text if c.isalnum()]


@pytest.mark.parametrize(
    ("cost", "shown"),
    [
        (None, "unknown"),
        (Decimal(0), "$0"),
        (Decimal("0.00012345"), "$0.000123"),
        (Decimal("1.5"), "$1.5000"),
    ],
)
def test_money(cost: Decimal | None, shown: str) -> None:
    assert money(cost) == shown
