from __future__ import annotations

import pytest

from posology.corpus.documents.symbols import decoded, shows_signs
from posology.corpus.gaps import Gaps


@pytest.mark.parametrize(
    ("text", "font", "shown"),
    [
        ("abgD-", "Symbol", "αβγΔ−"),
        ("£³±´\uf0b3\uf06d", "symbol", "≤≥±×≥μ"),
        ("5 \xa0mg", "SymbolMT", "5 \xa0μγ"),
        ("≥μ", "Symbol", "≥μ"),
        ("ü\uf0fb", "Wingdings", "✓🗶"),
        ("Ÿ", "Wingdings", "•"),
        ("R", "Wingdings 2", "☑"),
        ("34", "Monotype Sorts", "✓✔"),
        ("abc ≥", "Arial", "abc ≥"),
        ("abc", None, "abc"),
        ("m \uf06d ≥", "MT Extra", "� � ≥"),
        ("\uf0b3", "Arial", "�"),
        ("\x7f", "Symbol", "�"),
    ],
)
def test_text_is_shown_as_its_font_does(text: str, font: str | None, shown: str) -> None:
    gaps = Gaps()
    assert gaps.shown(decoded(text, font, gaps)) == shown


def test_a_font_that_the_document_calls_one_of_signs() -> None:
    gaps = Gaps()
    assert gaps.shown(decoded("q ≥", "Pi", gaps, signs=True)) == "� ≥"
    assert shows_signs("wingdings 3")
    assert not shows_signs("Pi")
