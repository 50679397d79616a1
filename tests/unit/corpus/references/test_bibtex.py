from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.corpus.items import Item, Record
from posology.corpus.references import bibtex
from posology.corpus.references.latex import LatexError, plain_of
from posology.errors import BadFile, BadRecord, ReaderUnavailable
from posology.types import UNREADABLE
from tests.support.growth import MOST, growth
from tests.support.literature import BIB


def items(folder: Path, content: bytes) -> list[Item]:
    path = folder / "a.bib"
    path.write_bytes(content)
    return list(bibtex.read(path))


def texts(found: list[Item]) -> list[str]:
    return [item.passage.text for item in found if isinstance(item, Record)]


def test_entries_their_fields_and_places(tmp_path: Path) -> None:
    first, none, odd, last = items(tmp_path, BIB)
    assert isinstance(first, Record)
    passage = first.passage
    assert passage.text == "Pain fell by 20% in adults & children (p<0.05), <5 μg at 10^9/L."
    assert (passage.id, passage.title, passage.journal) == (
        "pmid:501",
        "Salt and Wäter",
        "Notes on Salt",
    )
    assert (passage.published, passage.doi) == ("2012-07", "10.1000/b_1")
    assert isinstance(none, BadRecord)
    assert "Nothing" in none.reason
    assert isinstance(odd, BadRecord)
    assert r"\foo" in odd.reason
    assert isinstance(last, Record)
    assert [item.line for item in (first, none, odd, last)] == [3, 9, 10, 11]


@pytest.mark.parametrize(
    "field",
    [
        r"doi={10.1000/978-3{\_}28}",
        r"doi={10.1000/978-3\_28}",
        r"url={https://doi.org/10.1000/978-3\_28}",
        r"doi={10.1000/978-3\textunderscore{}28}",
    ],
)
def test_the_marks_of_latex_are_no_part_of_a_doi(tmp_path: Path, field: str) -> None:
    (found,) = items(tmp_path, f"@article{{a, abstract={{Salt helped.}}, {field}}}".encode())
    assert isinstance(found, Record)
    assert found.passage.doi == "10.1000/978-3_28"


def test_comparisons_in_a_doi_are_read(tmp_path: Path) -> None:
    doi = "10.1002/(SICI)1097(1998)82:1$<$1::AID-1$>$3.0"
    (found,) = items(tmp_path, f"@article{{a, abstract={{Salt helped.}}, doi={{{doi}}}}}".encode())
    assert isinstance(found, Record)
    assert found.passage.doi == doi.replace("$", "").lower()


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"5 \textless{} 6 {\textgreater} 4", "5 < 6 > 4"),
        (r"$p \leq 0.05$ and $\geq$ 3", "p ≤ 0.05 and ≥ 3"),
        (r"10\textsuperscript{-3} and 10$^{9}$", "10^-3 and 10^9"),
        (r"CO$_2$, CO\textsubscript{2}, m$^{2}$", "CO2, CO2, m2"),
        (r"37\,$^{\circ}$C", "37 °C"),
        (r"{\"u} \'e {\o} \ss{}", "ü é ø ß"),
        ("$50 and $60", "$50 and $60"),
        (r"{A} of $50", "A of $50"),
        (r"{A}: 20% of a & b\% # c", "A: 20% of a & b% # c"),
        ("20% off {x}\nnext line", "20% off x\nnext line"),
        (r"See \href{https://x.org/a_b}{the registry}.", "See the registry."),
        (r"See \url{https://x.org/a_b%20c}.", "See https://x.org/a_b%20c."),
        (r"\mbox{5 mg} of a \textbeta-blocker, {\it not} \pounds5", "5 mg of a β-blocker, not £5"),
        (r"$\frac{1}{2}$, $\frac{n-1}{N}$, $\frac12$", "1/2, (n-1)/N, 1/2"),
        (r"$\left( \dfrac{1}{2} \right)$ of $10^{n-1}$", "( 1/2 ) of 10^(n-1)"),
        (r"As \cite{a} says", f"As {UNREADABLE} says"),
        (r"{A} ~5 mg, Fig.~5, a\_b", "A ~5 mg, Fig.\xa05, a_b"),
        ("nothing of it: 5 % < 6 & more_so ^2", "nothing of it: 5 % < 6 & more_so ^2"),
    ],
)  # fmt: skip
def test_latex_is_read_and_plain_text_stays(latex: str, text: str) -> None:
    assert plain_of(latex) == text


@pytest.mark.parametrize(
    "latex",
    [
        r"\href", r"a \verb", r"\begin{array}\end{array}", r"\verb|<|", r"\begin{itemize} \item a", r"$\sqrt$", r"\input{a}",
        r"\def\a{5}", r"\begin{tabular}{l}a\end{tabular}", r"\foo", r"a {b", "a } b", "{" * 5_000, r"\x{" * 5_000, "{}" * 99_999,
    ],
)  # fmt: skip
def test_what_is_not_understood_is_an_error(latex: str) -> None:
    with pytest.raises(LatexError):
        plain_of(latex)


def test_no_command_of_the_library_raises_anything_else() -> None:
    """Whatever pylatexenc knows, in the forms in which it read too far."""
    from pylatexenc import latex2text, latexwalker

    syntax = latexwalker.get_default_latex_context_db()
    known = (syntax, latex2text.get_default_latex_context_db())
    macros = {one.macroname for some in known for one in some.iter_macro_specs()}
    names = [one.environmentname for one in syntax.iter_environment_specs()]
    texts = [rf"a \{name}{rest}" for name in sorted(macros) for rest in ("", "{}", "{a}")]
    texts += [rf"a \begin{{{name}}}\end{{{name}}}" for name in names]
    assert len(texts) > 1_000
    for text in texts:
        with contextlib.suppress(LatexError):
            plain_of(text)


@given(st.text("abc 5%&#$<>=.,;()µ≥-", max_size=60))
def test_text_without_commands_is_not_changed(text: str) -> None:
    shown = plain_of("{A} " + text.replace("$", r"\$"))
    assert "".join(shown.split()) == "A" + "".join(
        text.replace("---", "—").replace("--", "–").split()
    )


def test_entries_of_one_key_are_both_read(tmp_path: Path) -> None:
    content = (
        b"@article{a, title={Salt}, abstract={One.}} @article{a, title={Sand}, abstract={Two.}}"
    )
    found = items(tmp_path, content)
    assert texts(found) == ["One.", "Two."]
    assert len({item.passage.id for item in found if isinstance(item, Record)}) == 2
    assert [item.line for item in found if isinstance(item, Record)] == [1, 2]


def test_a_broken_entry_and_a_wrong_byte_cost_themselves(tmp_path: Path) -> None:
    content = (
        b"@article{a, title={unclosed\n@article{b, abstract={5 \xb5g.}}\n"
        b"@article{c, abstract={Two.}, abstract={Three.}}\n@article{d, abstract={Four.}}\n"
    )
    found = items(tmp_path, content)
    assert texts(found) == ["Two.\nThree.", "Four."]
    bad = [item for item in found if isinstance(item, BadRecord)]
    assert [item.line for item in bad] == [1, 2]
    assert "0xB5" in bad[1].reason


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (b"@article{a, title={x} abstract={Salt.}}", "a comma or # is missing"),
        (b"@article{a, title={x, abstract={Salt.}}", "missing"),
        (b"article{a, title={x}, abstract={Salt.}}", "is its @ missing"),
        (b"@article{a, abstract=salt}", "'salt' is not defined"),
        (rb"@article{a, abstract={Salt \verb}}", "misread"),
    ],
)
def test_a_fault_costs_its_entry(tmp_path: Path, entry: bytes, reason: str) -> None:
    bad, record = items(tmp_path, entry + b"\n@article{b, abstract={Two.}}\n")
    assert isinstance(bad, BadRecord)
    assert reason in bad.reason
    assert texts([record]) == ["Two."]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b'"Salt " # "helped."', "Salt helped."),
        (b'{Salt } # s # " in all."', "Salt did not help in all."),
        (b'"He said {"}Salt{"}."', 'He said "Salt".'),
    ],
)
def test_values_are_joined(tmp_path: Path, value: bytes, text: str) -> None:
    content = b'@string{s = "did not " # "help"}\n@article{a, abstract=' + value + b"}\n"
    assert texts(items(tmp_path, content)) == [text]


@pytest.mark.parametrize(
    ("first", "reason"), [("Salt.", "must have <= 1,000,000 characters"), ("", "has no abstract")]
)
def test_strings_within_strings_are_bounded(tmp_path: Path, first: str, reason: str) -> None:
    levels = (f"@string{{s{n} = {' # '.join([f's{n - 1}'] * 20)}}}" for n in range(1, 9))
    content = f'@string{{s0 = "{first}"}}\n' + "\n".join(levels)
    content += "\n@article{a, abstract = s8}\n@article{b, abstract = {Sand did not.}}\n"
    bad, good = items(tmp_path, content.encode())
    assert isinstance(bad, BadRecord)
    assert reason in str(bad)
    assert texts([good]) == ["Sand did not."]


def test_a_file_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bibtex, "MAX_CHARACTERS", 100)
    (bad,) = items(tmp_path, BIB)
    assert isinstance(bad, BadFile)
    assert "100 characters" in bad.reason


def test_without_bibtexparser_an_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bibtexparser", None)
    with pytest.raises(ReaderUnavailable, match=r"pip install 'posology\[bibtex\]'"):
        items(tmp_path, BIB)
    assert bibtex.count(tmp_path / "a.bib") == 0


def test_braces_take_time_in_proportion() -> None:
    def work(size: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            items(Path(folder), b"@article{a, title={" + b"{" * size)

    assert growth(work, 100_000) < MOST
