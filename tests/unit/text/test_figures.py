from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.text.figures import (
    Figure,
    any_stated,
    blanked,
    figures,
    lacking,
    names,
    spelt,
    uncompared,
)


def told(text: str) -> list[tuple[str, str, str]]:
    return [(f"{f.size}", f.comparison, "/".join(f.unit)) for f in figures(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1,204 women", [("1204", "", "")]),
        ("50 000 IU", [("50000", "", "iu")]),
        ("a 5-mg tablet", [("5", "", "g")]),
        ("15 mg/kg per day", [("15", "", "g/d/g")]),
        ("15 mg per kg daily", [("15", "", "g/d/g")]),
        ("p < 0.05", [("0.05", "<", "")]),
        ("below 0.05", [("0.05", "<", "")]),
        ("no more than 3 g", [("3", "≤", "g")]),
        ("not less than 3 g", [("3", "≥", "g")]),
        ("at least twelve weeks", [("12", "≥", "wk")]),
        ("5, 10 and 20 mg", [("5", "", "g"), ("10", "", "g"), ("20", "", "g")]),
        ("40–75 years", [("40", "", "y"), ("75", "", "y")]),
        ("(IQR −0.4 to +0.2)", [("-0.4", "", ""), ("0.2", "", "")]),
        ("12·4 per cent", [("12.4", "", "%")]),
        ("p=.43", [("0.43", "", "")]),
        ("10⁵ copies", [("1E+5", "", "")]),
        ("IL-6, CD4 and COVID-19", []),
        ("20 patients and 30 mg", [("20", "", ""), ("30", "", "g")]),
        ("one dose, one of five, no one, than the new one.", [("1", "", ""), ("5", "", "")]),
    ],
)
def test_numbers_are_read_with_comparison_and_unit(
    text: str, found: list[tuple[str, str, str]]
) -> None:
    assert told(text) == found


def test_names_of_letters_and_digits_are_compared_without_hyphens() -> None:
    assert names("IL-6 and IL6, H1N1, BMS-986165") == {"il6", "h1n1", "bms986165"}
    assert names("6 of 10 patients") == frozenset()
    assert names("G4s and TH17s in the 1990s, H3S, IL-6s") == {"g4", "th17", "h3s", "il6"}


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
    assert figures(f"It was {value} g/L.") == (Figure(value=value, unit=("g", "l")),)
    assert figures(f"It was {value:,} mg/dL.") == figures(f"It was {value} mg/dL.")


@given(st.text(max_size=60))
def test_any_text_can_be_read(text: str) -> None:
    assert all(figure.says(figure) for figure in figures(text) if figure.value.is_finite())


def alike(one: str, other: str) -> bool:
    mine, others = figures(one), figures(other)
    return len(mine) == len(others) > 0 and all(map(Figure.says, mine, others))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a change of − 5", "a change of -5"),
        ("10 mg − 15 mg", "10 mg to 15 mg"),
        ("(− 5 mm", "(−5 mm"),
        ("7.2 mmHg", "7.2 mm Hg"),
        ("miR-142-5P", "miR-142-5p"),
        ("65 years or older", "≥65 years"),
        ("10 000 adults", "10,000 adults"),
        ("10\u202f000", "10000"),
        ("150 × 10⁹/L", "150 x 10^9/L"),
        ("150 x 10(9)/l", "150 × 10⁹/L"),
        ("0·48", "0.48"),
        ("5 µg", "5 mcg"),
        ("5 μg", "5 micrograms"),
        ("12 cmH2O", "12 cm H2O"),
        ("5.1 mmol·L⁻¹", "5.1 mmol/L"),
        ("5.1 mmol L-1", "5.1 mmol per litre"),
        ("15 mg/kg/day", "15 mg per kilogram of body weight per day"),
        ("15 mg·kg⁻¹·d⁻¹", "15 mg/kg/day"),
        ("15 mg/(kg·d)", "15 mg/kg/d"),
        ("≥140/90 mm Hg", "140/90 mmHg or higher"),
        ("65 years of age or older", "≥ 65 years"),
        ("aged 65 and over", "aged ≥65"),
        ("65+ years", "≥65 years"),
        ("up to 5 mg", "at most 5 mg"),
        ("5 mg or less", "≤5 mg"),
        ("1.2 million", "1,200,000"),
        ("two hundred and six", "206"),
        ("twenty-five", "25"),
        ("1 g", "1000 mg"),
        ("37 °C", "37 degrees Celsius"),
        ("200 cells/mm3", "200 cells/µL"),
        ("200/µL", "200 cells per cubic millimeter"),
        ("72 beats/min", "72 bpm"),
        ("72 min-1", "72/min"),
        ("-5 mm", "−5 mm"),
        ("minus 5 mm", "−5 mm"),
        ("− 5 mm", "-5 mm"),
        ("12.4 per cent", "12.4%"),
        ("0,48", "0.48"),
        ("p < .05", "p<0.05"),
        ("P<0·05", "p < 0.05"),
        ("3 x 10-3", "0.003"),
        ("3 × 10−3", "0.003"),
        ("1.5e-3", "0.0015"),
        ("100 mg/m2", "100 mg per square meter"),
        ("100 mg/m²", "100 mg/m^2"),
        ("more than or equal to 5 mg", "≥5 mg"),
        ("> or = 5 mg", "≥5 mg"),
        (">= 5 mg", "at least 5 mg"),
        ("not exceeding 5 mg", "≤ 5 mg"),
        ("younger than 18 years", "<18 years"),
        ("18 years or younger", "≤18 years"),
        ("100 person-years", "100 patient years"),
        ("１２ mg", "12 mg"),
        ("5–10 mg", "5 to 10 mg"),
        ("10^9 cells", "10⁹ cells"),
        ("adults over 65 years", "adults >65 years"),
        ("over the age of 65", "older than 65"),
        ("1½ tablets", "1.5 tablets"),
        ("$5", "5 dollars"),
        ("2 log10 copies/mL", "2 log₁₀ copies/mL"),
        ("2-fold", "twofold"),
        ("5 percentage points", "5-percentage-point"),
        ("20 ng·h/mL", "20 ng*h/mL"),
        ("2 or more", "at least two"),
        ("5 mg daily", "5 mg per day"),
        ("12 events per 100 person-years", "12/100 person-years"),
        ("1.234.567", "1,234,567"),
        ("5 IU", "5 international units"),
        ("65-years-or-older", "≥65 years"),
        ("60 mL/min/1.73 m2", "60 mL/min per 1.73 m²"),
        ("12 (SD 3) mg", "12 (SD 3) mg"),
        ("1’234", "1234"),
        ("12.1%-15.3%", "12.1% to 15.3%"),
        ("65.2+/-10.1 years", "65.2 ± 10.1 years"),
        ("150 x 10^9 per litre", "150 × 10⁹/L"),
        ("150,000 per microliter", "150,000/µL"),
        ("twice daily", "two times a day"),
        ("5 mg twice a day", "5 mg b.i.d."),
        ("5 mg BID", "5 mg twice-daily"),
        ("thrice weekly", "3 times per week"),
        ("132.4 (15.2) mm Hg", "132.4 mm Hg (15.2 mm Hg)"),
        ("3.2 (SD 0.9) mmol/L", "3.2 mmol/L (SD 0.9 mmol/L)"),
        ("20 [10–40] mg", "20 mg [10 mg to 40 mg]"),
        ("5 mg (95% CI 3 to 7)", "5 mg (95% CI, 3 mg to 7 mg)"),
        ("95.0% effective (95% CI, 90.3 to 97.6)", "95% (95% CI 90.3% to 97.6%)"),
    ],
)  # fmt: skip
def test_ways_to_write_one_figure_are_equal(one: str, other: str) -> None:
    assert alike(one, other)
    assert alike(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("5 and 0 mg", "5 and 0 g"),
        ("5 and 0 mg", "5 g and 0 mg"),
        ("a change of − 5", "a change of 5"),
        ("5 mg", "5 µg"),
        ("≥5 mg", "≤5 mg"),
        (">5", "≥5"),
        ("1.5", "15"),
        ("1·5", "15"),
        ("1,5", "15"),
        ("10⁹", "10⁸"),
        ("10^9", "109"),
        ("10⁹", "10"),
        ("10 000", "10"),
        ("10,000", "10.000"),
        ("5 mm", "5 mm Hg"),
        ("5 mmHg", "5 cm H2O"),
        ("15 mg/kg", "15 mg"),
        ("15 mg/kg/day", "15 mg/kg/h"),
        ("5 mg/tablet", "5 mg"),
        ("5 mg/tablet", "5 mg/capsule"),
        ("5 mmol/L", "5 mmol/day"),
        ("5 mmol/L", "5 µmol/L"),
        ("5 mg/dL", "5 mg/L"),
        ("5%", "5"),
        ("5%", "5 percentage points"),
        ("-5", "5"),
        ("− 5 mm", "5 mm"),
        ("3 months", "3 weeks"),
        ("3 min", "3 mo"),
        ("65 years or older", "65 years"),
        ("65 years or older", "65 years or younger"),
        ("5 xq", "5 xq/L"),
        ("5xq", "5zq"),
        ("5 D", "5 d"),
        ("5 M", "5 m"),
        ("1 in 5", "1 in 50"),
        ("100 person-years", "100 person-months"),
        ("$5", "€5"),
        ("one hundred and two", "one hundred"),
        ("twenty-five", "twenty"),
        ("5 kg", "5 kg/m2"),
        ("5 °C", "5 °F"),
        ("2 m", "2 m2"),
        ("1½", "1"),
        ("0.48, 95% CI", "0.48%, 95% CI"),
        ("3 x 10-3", "3 x 10-2"),
        ("5 mg/(kg·d)", "5 mg"),
        ("5 µg/kg/min", "5 µg/kg/h"),
        ("5 M", "5 MU"),
        ("≠5", "5"),
        ("1:10", "1:100"),
        ("1 200 mg", "200 mg"),
        ("1e-3", "1e3"),
        ("95% CI", "P = 0.95"),
        ("16S", "16 s"),
        ("5 mg and 10 mg", "5 mg and 10 µg"),
        ("65 years or older", ">65 years"),
        ("140/90 mm Hg or higher", "140/90 mm Hg"),
        ("0.48, 95% CI 0.30 to 0.77", "0.48% and 95% CI 0.30 to 0.77"),
        ("once daily", "once weekly"),
        ("once daily", "twice daily"),
        ("5 mg b.i.d.", "5 mg t.i.d."),
        ("20 mg (95% CI 0.3 to 0.6)", "20 mg (95% CI 0.3 mg to 0.6 mg)"),
        ("12 (n = 3) mg", "12 mg (n = 3 mg)"),
        ("12 (3) of them", "12 (3) mg"),
    ],
)  # fmt: skip
def test_figures_that_differ_are_never_equal(one: str, other: str) -> None:
    assert not alike(one, other)
    assert not alike(other, one)


_SPACES = st.sampled_from(["", " ", "\u00a0", "\u2009", "\u202f"])


@given(st.integers(1_000, 9_999_999), st.integers(0, 99), _SPACES)
def test_a_number_is_one_value_however_it_is_written(whole: int, part: int, space: str) -> None:
    value, raised = Decimal(f"{whole}.{part:02}"), str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
    shifted = f"{whole / 1000:.3f}"
    by_mark = [f"{value:,}".replace(",", mark) for mark in (",", " ", "\u00a0", "\u2009", "\u202f")]
    ways = [*by_mark, *(one.replace(".", "·") for one in by_mark), f"{value}"]
    assert {figures(f"{one}{space}mg/dL") for one in ways} == {figures(f"{value} mg/dL")}
    powers = [
        f"{shifted} × 10{'3'.translate(raised)}",
        f"{shifted} x 10^3",
        f"{shifted} x 10(3)",
        f"{shifted}e3",
    ]
    assert {figures(f"{one}{space}/L") for one in powers} == {figures(f"{whole}/L")}


@given(st.integers(0, 9_999), st.sampled_from([("≥", "or older"), ("≤", "or younger")]))
def test_a_threshold_is_one_figure_on_either_side(value: int, said: tuple[str, str]) -> None:
    sign, words = said
    ways = [
        f"{sign}{value} years",
        f"{sign} {value}\u00a0y",
        f"{value} years {words}",
        f"{value} years of age {words}",
    ]
    assert {figures(one) for one in ways} == {
        (Figure(value=Decimal(value), comparison=sign, unit=("y",)),)
    }
    assert not alike(ways[0], f"{value} years")


@given(st.text(alphabet="0123456789.,·×^⁹ -−±/%<≥()µmgLkHh²", max_size=24))
def test_any_run_of_marks_is_read_within_its_text(text: str) -> None:
    found = figures(text)
    assert all(
        0 <= one.start <= one.number < one.number_end <= one.end <= len(text) for one in found
    )
    assert all(one.end <= other.start or one.end <= other.number for one, other in pairwise(found))
    assert len(blanked(text)) == len(uncompared(text)) == len(text)


def test_a_claim_is_compared_with_its_source() -> None:
    source = "Of 10 000 adults aged 65 years or older, 5% took no more than 5 mg/kg."
    assert not lacking(
        "5 per cent of the 10,000 (≥65 years) took at most 5 mg per kilogram.", source
    )
    assert [one.size for one in lacking("6% of 1000 adults took ≤5 mg/kg.", source)] == [6, 1000]
    assert any_stated("6% of 10,000", source)
    assert not any_stated("6 of them", source)
    # a table's cell, whose column names the unit
    assert not lacking("7.2", "It rose by 7.2 mm Hg.")
    assert lacking("It was 7.2.", "It rose by 7.2 mm Hg.")


def test_a_claim_is_spelt_as_its_source() -> None:
    source = "Adults aged 65 years or older took 5 µg."
    assert spelt("At ≥65 years they took 5 mcg, not 5 mg.", source) == (
        "At 65 years or older they took 5 µg, not 5 mg."
    )


def test_a_figure_of_a_list_keeps_the_unit_of_the_claim() -> None:
    assert spelt("They took 5 mg.", "Doses were 5, 10 and 20 mg.") == "They took 5 mg."


def test_comparisons_can_be_left_out() -> None:
    assert uncompared("It was no more than 5 mg.").split() == ["It", "was", "5", "mg."]
    assert blanked("It was 65 years or older.").split() == ["It", "was", "."]
    assert names("at 5 cmH2O and SpO2") == {"spo2"}
