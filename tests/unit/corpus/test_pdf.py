from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from posology.corpus import pdf
from posology.corpus.items import Item, Parts, Record
from posology.corpus.lines import joined
from posology.errors import BadFile, BadRecord, ReaderUnavailable
from tests.support.growth import MOST, growth
from tests.support.literature import pdf as make_pdf


def write(folder: Path, *pages: list[str], title: str = "") -> Path:
    path = folder / "a_leaflet.pdf"
    path.write_bytes(make_pdf(pages, title=title))
    return path


def shown(path: Path) -> list[tuple[str | None, str]]:
    return [
        (item.passage.section, item.passage.text)
        for item in pdf.read(path)
        if isinstance(item, Record)
    ]


def test_pages_become_parts_of_one_article(tmp_path: Path) -> None:
    folder = tmp_path / "leaflets"
    folder.mkdir()
    path = write(folder, ["Salt (plain) helped", "some."], ["It ended."])
    first, second, last = pdf.read(path)
    assert isinstance(first, Record)
    passage = first.passage
    assert passage.id == "file:leaflets/a_leaflet.pdf#1"
    assert passage.parent == "file:leaflets/a_leaflet.pdf"
    assert passage.text == "Salt (plain) helped some."
    assert (passage.title, passage.section, passage.source) == ("a leaflet", "page 1", "pdf")
    assert isinstance(second, Record)
    assert second.passage.section == "page 2"
    assert last == Parts(id=passage.parent, count=2, path=path, line=3)


def test_a_sentence_over_the_end_of_a_page_is_the_next_pages(tmp_path: Path) -> None:
    path = write(tmp_path, ["It began. Half of them"], ["were well. The end."], ["No stop here"])
    assert shown(path) == [
        ("page 1", "It began."),
        ("page 2", "Half of them were well. The end."),
        ("page 3", "No stop here"),
    ]


def test_the_title_is_taken_if_the_first_page_shows_it(tmp_path: Path) -> None:
    page = ["The use of salt", "in water", "It helped."]
    (record, _) = pdf.read(write(tmp_path, page, title="The Use of Salt in Water"))
    assert isinstance(record, Record)
    assert record.passage.title == "The Use of Salt in Water"
    (record, _) = pdf.read(write(tmp_path, page, title="Microsoft Word - draft3.doc"))
    assert isinstance(record, Record)
    assert record.passage.title == "a leaflet"


def test_running_heads_and_page_numbers_go(tmp_path: Path) -> None:
    pages = [["Notes on salt 2001", f"Page says {word}.", str(i)] for i, word in enumerate("abcd")]
    assert shown(write(tmp_path, *pages)) == [
        (f"page {i}", f"Page says {word}.") for i, word in enumerate("abcd", start=1)
    ]


def test_what_repeats_on_two_pages_or_within_them_stays(tmp_path: Path) -> None:
    pages = [["Salt helps.", "One.", "Salt helps.", "Two.", "End."] for _ in range(2)]
    assert shown(write(tmp_path, *pages))[0][1].count("Salt helps.") == 2
    middle = [[f"First {w}.", f"Next {w}.", "Same.", f"Near {w}.", f"Last {w}."] for w in "abcde"]
    assert all("Same." in text for _, text in shown(write(tmp_path, *middle)))


def test_pages_that_are_all_alike_stay(tmp_path: Path) -> None:
    assert len(shown(write(tmp_path, *[["Salt helps."]] * 4))) == 4


def test_a_long_page_is_cut_between_sentences(tmp_path: Path) -> None:
    lines = [f"Line {i} says that salt was given to all of them." for i in range(40)]
    found = shown(write(tmp_path, lines))
    assert len(found) > 1
    assert " ".join(text for _, text in found) == " ".join(lines)
    assert {page for page, _ in found} == {"page 1"}


def _bad(items: list[Item]) -> BadFile:
    (only,) = items
    assert isinstance(only, BadFile)
    return only


def test_pictures_only_is_a_bad_file(tmp_path: Path) -> None:
    bad = _bad(list(pdf.read(write(tmp_path, [], []))))
    assert "OCR" in bad.reason


def test_what_is_no_pdf_is_a_bad_file(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(b"hello")
    assert _bad(list(pdf.read(path))).reason.startswith("damaged: ")


@pytest.mark.parametrize("algorithm", ["RC4-128", "AES-256"])
def test_a_file_with_a_password_is_a_bad_file_and_one_without_is_read(
    tmp_path: Path, algorithm: str
) -> None:
    from pypdf import PdfReader, PdfWriter

    plain = write(tmp_path, ["Salt helps."])
    for password, name in (("secret", "closed.pdf"), ("", "open.pdf")):
        writer = PdfWriter(clone_from=PdfReader(plain))
        writer.encrypt(password, owner_password="owner", algorithm=algorithm)
        writer.write(tmp_path / name)
    bad = _bad(list(pdf.read(tmp_path / "closed.pdf")))
    assert bad.reason == "encrypted: remove its password"
    assert shown(tmp_path / "open.pdf") == [("page 1", "Salt helps.")]


def test_a_page_that_cannot_be_read_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    first, one, two, three = make_pdf([["One."], ["Two."], ["Three."]]).split(b"/F1 3 0 R")
    damaged = first.replace(b"3 0 obj\n<< /Type", b"3 0 obj\n< /Type")
    # of the three pages only the second still has the damaged font
    path.write_bytes(damaged + b"/F1 7" + one + b"/F1 3 0 R" + two + b"/F1 7" + three)
    bad, *records, parts = pdf.read(path)
    assert isinstance(bad, BadRecord)
    assert (bad.record, bad.line) == ("page 2", 1)
    assert bad.reason.startswith("cannot be read: ")
    assert [r.passage.section for r in records if isinstance(r, Record)] == ["page 1", "page 3"]
    assert isinstance(parts, Parts)


def test_files_beyond_the_bounds_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, ["One."], ["Two."])
    for name, value, reason in (
        ("MAX_CHARACTERS", 6, "6 characters"),
        ("MAX_PAGES", 1, "got 2"),
        ("MAX_BYTES", 100, "100 bytes"),
    ):
        monkeypatch.setattr(pdf, name, value)
        assert reason in _bad(list(pdf.read(path))).reason


def test_without_pypdf_an_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, ["One."])
    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(ReaderUnavailable, match=r"pip install 'posology\[pdf\]'") as caught:
        pdf.read(path)
    assert caught.value.package == "pypdf"
    assert pdf.count(path) == 0


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["an inter-", "national trial"], "an international trial"),
        (["a placebo-", "controlled trial"], "a placebo-controlled trial"),
        (["the non-", "responders"], "the non-responders"),
        (["given by Smith-", "Jones"], "given by Smith-Jones"),
        (["between 5-", "10 mg"], "between 5- 10 mg"),
        (["either -", "or"], "either - or"),
        (["one", "two"], "one two"),
        (
            ["the drug-", "eluting one", "a drug-eluting stent"],
            "the drug-eluting one a drug-eluting stent",
        ),
        (["the re-", "sponse was", "a response of"], "the response was a response of"),
        ([], ""),
    ],
)
def test_divided_words_are_put_together(lines: list[str], text: str) -> None:
    assert joined(lines, Counter()) == text


@given(st.lists(st.text("abC-. 1", min_size=1, max_size=12).map(str.strip).filter(bool)))
@settings(deadline=None)
def test_only_hyphens_are_lost(lines: list[str]) -> None:
    def bare(text: str) -> str:
        return text.replace("-", "").replace(" ", "")

    assert bare(joined(lines, Counter())) == bare("".join(lines))


def test_lines_without_end_take_time_in_proportion(tmp_path: Path) -> None:
    def join(characters: int) -> None:
        long = "a" * characters
        assert joined([long, "b"], Counter()) == f"{long} b"

    def look(characters: int) -> None:
        slashes = "1" + "/" * characters + "x"
        ((_, text),) = shown(write(tmp_path, [slashes]))
        assert text == slashes

    assert growth(join, 25_000) < MOST
    assert growth(look, 12_500) < MOST
