from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies.compression.wording.figures import Figure, figures, names


def told(text: str) -> list[tuple[str, str, str]]:
    return [(str(f.value), f.comparison, "/".join(f.unit)) for f in figures(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1,204 women", [("1204", "", "")]),
        ("50 000 IU", [("50000", "", "iu")]),
        ("a 5-mg tablet", [("5", "", "mg")]),
        ("15 mg/kg per day", [("15", "", "mg/kg/d")]),
        ("15 mg per kg daily", [("15", "", "mg/kg/d")]),
        ("p < 0.05", [("0.05", "<", "")]),
        ("below 0.05", [("0.05", "<", "")]),
        ("no more than 3 g", [("3", "≤", "g")]),
        ("not less than 3 g", [("3", "≥", "g")]),
        ("at least twelve weeks", [("12", "≥", "wk")]),
        ("5, 10 and 20 mg", [("5", "", "mg"), ("10", "", "mg"), ("20", "", "mg")]),
        ("40–75 years", [("40", "", "y"), ("75", "", "y")]),
        ("(IQR −0.4 to +0.2)", [("-0.4", "", ""), ("0.2", "", "")]),
        ("12·4 per cent", [("12.4", "", "%")]),
        ("p=.43", [("0.43", "", "")]),
        ("10⁵ copies", [("10", "", "⁵")]),
        ("IL-6, CD4 and COVID-19", []),
        ("20 patients and 30 mg", [("20", "", ""), ("30", "", "mg")]),
    ],
)
def test_numbers_are_read_with_comparison_and_unit(
    text: str, found: list[tuple[str, str, str]]
) -> None:
    assert told(text) == found


def test_names_of_letters_and_digits_are_compared_without_hyphens() -> None:
    assert names("IL-6 and IL6, H1N1, BMS-986165") == {"il6", "h1n1", "bms986165"}
    assert names("6 of 10 patients") == frozenset()


@pytest.mark.parametrize(
    ("stated", "source", "says"),
    [
        ("5 mg", "5 mg", True),
        ("5.0 mg", "5 mg", True),
        ("5 milligrams", "5mg", True),
        ("5 g", "5 mg", False),
        ("15 mg", "15 mg/kg", False),
        ("15 mg/kg", "15 mg/kg/day", True),
        ("15 mg/kg/h", "15 mg/kg/day", False),
        ("0.05", "< 0.05", False),
        ("> 0.05", "< 0.05", False),
        ("12.4", "12.4%", False),
        ("5 mg", "5 were", False),
        ("aged 40", "40 years", True),
        ("-0.1", "0.1", False),
    ],
)
def test_two_numbers_are_compared(stated: str, source: str, says: bool) -> None:
    (one,), (other,) = figures(stated), figures(source)
    assert one.says(other) is says


@given(st.decimals(min_value=0, max_value=10_000, places=2, allow_nan=False))
def test_every_number_is_found_as_it_is_written(value: Decimal) -> None:
    assert figures(f"It was {value} mg/dL.") == (Figure(value=value, unit=("mg", "dl")),)
    assert figures(f"It was {value:,} mg/dL.") == figures(f"It was {value} mg/dL.")


@given(st.text(max_size=60))
def test_any_text_can_be_read(text: str) -> None:
    assert all(figure.says(figure) for figure in figures(text) if figure.value.is_finite())
