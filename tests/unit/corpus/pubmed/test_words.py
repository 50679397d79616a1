from __future__ import annotations

from pathlib import Path

import pytest
from lxml import etree

from posology.corpus.pubmed.words import words
from tests.support.growth import MOST, growth
from tests.support.pubmed_xml import MATHML, article, document
from tests.unit.corpus.pubmed.files import assert_valid, passage_of


def of(markup: str) -> str:
    assert_valid(document(article(abstract=markup)))
    return words(etree.fromstring(f"<AbstractText {MATHML}>{markup}</AbstractText>"))


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<b>Bold</b>, <i>E. <u>coli</u></i> &amp; x &lt; 5&#xb5;g", "Bold, E. coli & x < 5µg"),
        # numbers never run together
        ("10<sup>9</sup>/L", "10^9/L"),
        ("10<sup>-3</sup> or 10<sup>−3</sup>", "10^-3 or 10^−3"),
        ("10<sup><i>9</i></sup>", "10^9"),
        ("2<sup>n</sup>", "2^n"),
        ("(ng)<sup>2</sup>", "(ng)^2"),
        ("in 2019<sup>1,2</sup>", "in 2019^1,2"),
        ("CO<sub>2</sub><sup>13</sup>", "CO2^13"),
        ("log<sub>10</sub>2", "log10 2"),
        ("10<sub>2</sub>", "10_2"),
        ("10<sup>.5</sup>, 10<sup>½</sup>, 2<sup>n-1</sup>", "10^.5, 10^½, 2^n-1"),
        ("2<sup>-ΔΔCt</sup>", "2^-ΔΔCt"),
        ("10 <sup>9</sup>/L, 10 <sup>-3</sup>", "10 ^9/L, 10 ^-3"),
        ("10<sup>-</sup><sup>6</sup>", "10^-6"),
        # and what MEDLINE writes plainly stays plain
        ("CD4 <sup>+</sup>, 12 <sup>18</sup>F-FDG scans", "CD4 +, 12 18F-FDG scans"),
        ("CO<sub>2</sub>, H<sub>2</sub>O", "CO2, H2O"),
        ("Ca(OH)<sub>2</sub>", "Ca(OH)2"),
        ("Ca<sup>2+</sup> and CD4<sup>+</sup>", "Ca2+ and CD4+"),
        ("<sup>99m</sup>Tc, [<sup>18</sup>F]", "99mTc, [18F]"),
        ("kg/m<sup>2</sup>", "kg/m2"),
        ("the 2<sup>nd</sup> dose", "the 2nd dose"),
        ("p53<sup>-/-</sup> mice", "p53-/- mice"),
        ("x<sup></sup>y<sup> </sup>z", "xyz"),
        # white space and what nobody sees
        ("a\n\t b  c", "a b c"),
        ("soft\u00adhyphen, zero\u200bwidth\ufeff", "softhyphen, zerowidth"),
        ("P\u2009=\u20090.05\u00a0mg", "P\u2009=\u20090.05\u00a0mg"),
        ("cafe\u0301 \u212b \u2126", "café Å Ω"),
        ("naïve μ µ ﬁ ²", "naïve μ µ ﬁ ²"),
        ("𝛽-thalassaemia 😀", "𝛽-thalassaemia 😀"),
        ("a&#x85;b", "a b"),
        # as every browser shows the codes of Windows
        ("5&#x96;6, it&#146;s, &#x81;", "5–6, it’s, �"),
        (
            "CO<sub>2 </sub>levels, 10<sup> 9 </sup>/L, x<sup> and</sup> y",
            "CO2 levels, 10^9 /L, x and y",
        ),
    ],
)
def test_markup(markup: str, text: str) -> None:
    assert of(markup) == text


def math(inside: str) -> str:
    return f"<mml:math {MATHML}>{inside}</mml:math>"


def power(base: str, exponent: str) -> str:
    return f"<mml:msup>{base}{exponent}</mml:msup>"


N10, N3, X, Y = (
    "<mml:mn>10</mml:mn>",
    "<mml:mn>3</mml:mn>",
    "<mml:mi>x</mml:mi>",
    "<mml:mi>y</mml:mi>",
)
MINUS3 = "<mml:mrow><mml:mo>-</mml:mo><mml:mn>3</mml:mn></mml:mrow>"
SUM = "<mml:mrow><mml:mi>x</mml:mi><mml:mo>+</mml:mo><mml:mi>y</mml:mi></mml:mrow>"


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        (power(N10, N3), "10^3"),
        (power(N10, MINUS3), "10^-3"),
        (power(SUM, N3), "(x+y)^3"),
        (f"<mml:msub>{X}{N3}</mml:msub>", "x_3"),
        (f"<mml:msubsup>{X}{N3}{Y}</mml:msubsup>", "x_3^y"),
        (f"<mml:mfrac>{SUM}{N3}</mml:mfrac>", "(x+y)/3"),
        (f'<mml:mfrac linethickness="0">{X}{Y}</mml:mfrac>', "x; y"),
        (f"<mml:msqrt>{SUM}</mml:msqrt>", "√(x+y)"),
        (f"<mml:mroot>{X}{N3}</mml:mroot>", "x^(1/3)"),
        (f"<mml:mover>{X}<mml:mo>¯</mml:mo></mml:mover>", "x¯"),
        (f"<mml:mover>{X}{SUM}</mml:mover>", "x^(x+y)"),
        (f"<mml:munderover><mml:mo>∑</mml:mo>{X}{Y}</mml:munderover>", "∑_x^y"),
        (f"<mml:mrow>{X}<mml:mo>=</mml:mo>{N3}</mml:mrow>", "x = 3"),
        (f"<mml:mrow>{N10}<mml:mo>\u2062</mml:mo>{N3}</mml:mrow>", "10 3"),
        (f"<mml:mrow>\n  {N10}\n  {N3}\n</mml:mrow>", "10 3"),
        (f"<mml:mfenced>{X}{Y}</mml:mfenced>", "(x, y)"),
        (f'<mml:mfenced open="[" close="]" separators=";">{X}{Y}</mml:mfenced>', "[x; y]"),
        (
            (
                f"<mml:mtable><mml:mtr><mml:mtd>{X}</mml:mtd><mml:mtd>{Y}</mml:mtd></mml:mtr>"
                f"<mml:mtr><mml:mtd>{N3}</mml:mtd></mml:mtr></mml:mtable>"
            ),
            "[x, y; 3]",
        ),
        (f"<mml:mrow>{X}<mml:mspace/><mml:mtext> of </mml:mtext>{Y}</mml:mrow>", "x of y"),
        (f"<mml:mrow>{X}<mml:mphantom>{Y}</mml:mphantom></mml:mrow>", "x"),
        (
            f"<mml:semantics>{X}<mml:annotation>x tex</mml:annotation></mml:semantics>",
            "x",
        ),
        (
            (
                f"<mml:mmultiscripts>{X}{N3}<mml:none/><mml:mprescripts/><mml:none/>{N10}"
                "</mml:mmultiscripts>"
            ),
            "^10x_3",
        ),
    ],
)
def test_formulas(inside: str, text: str) -> None:
    assert of(math(inside)) == text
    assert of(f"of 5<DispFormula>{math(inside)}</DispFormula>6") == f"of 5 {text} 6"


def test_a_formula_whose_prefix_the_file_does_not_declare(tmp_path: Path) -> None:
    """The DTD declares it, and no DTD is read."""
    record = article(abstract="at <mml:math><mml:mn>5</mml:mn></mml:math> mg")
    assert passage_of(tmp_path, record, valid=False).text == "at 5 mg"


def test_a_formulas_numbers_are_its_own() -> None:
    assert of(f"dose 5{math('<mml:mn>3</mml:mn>')}7 mg") == "dose 5 3 7 mg"


def test_empty_and_endless_formulas_take_time_in_proportion() -> None:
    def empty(elements: int) -> None:
        made = etree.fromstring(f"<t {MATHML}><mml:math>{'<mml:mi/>' * elements}</mml:math></t>")
        assert words(made) == ""

    def endless(characters: int) -> None:
        long = "a" * characters + "!"
        made = math(power(f"<mml:mi>{long}</mml:mi>", "<mml:mn>2</mml:mn>"))
        assert words(etree.fromstring(f"<t {MATHML}>{made}</t>")) == f"({long})^2"

    assert growth(empty, 5_000) < MOST
    assert growth(endless, 25_000) < MOST
