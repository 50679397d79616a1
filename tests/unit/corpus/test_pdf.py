from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.corpus.pdf import DENSE, KINDS, score
from posology.corpus import pdf
from posology.corpus.items import Item, Parts, Record, Remark
from posology.corpus.pdf import process
from posology.corpus.pdf.layout import lines
from posology.corpus.pdf.lines import joined, learn
from posology.corpus.pdf.process import Word
from posology.corpus.pdfium.ink import Drawings
from posology.corpus.pdfium.page import replies
from posology.errors import BadFile, ReaderUnavailable
from posology.types import Pages, Passage
from tests.support.growth import MOST, growth
from tests.support.literature import pdf as make_pdf


def write(folder: Path, *pages: list[str], title: str = "") -> Path:
    path = folder / "a_leaflet.pdf"
    path.write_bytes(make_pdf(pages, title=title))
    return path


def passages(path: Path) -> list[Passage]:
    return [item.passage for item in pdf.read(path) if isinstance(item, Record)]


def texts(path: Path) -> list[str]:
    return [passage.text for passage in passages(path)]


def test_pages_become_parts_of_one_article(tmp_path: Path) -> None:
    folder = tmp_path / "leaflets"
    folder.mkdir()
    path = write(folder, ["Salt (plain) helped", "some."], ["It ended."])
    first, last = pdf.read(path)
    assert isinstance(first, Record)
    passage = first.passage
    assert passage.id == "file:leaflets/a_leaflet.pdf#1"
    assert passage.parent == "file:leaflets/a_leaflet.pdf"
    assert passage.text == "Salt (plain) helped some.\n\nIt ended."
    assert (passage.title, passage.section, passage.source) == ("a leaflet", None, "pdf")
    assert passage.pages == Pages(numbers=(1, 2), starts=(0, 27))
    assert (passage.page, passage.last_page) == (1, 2)
    assert last == Parts(id=passage.parent, count=1, path=path, line=2)


def test_a_sentence_goes_on_over_the_end_of_a_page(tmp_path: Path) -> None:
    path = write(tmp_path, ["It began. Half of them"], ["were well. The end."], ["No stop here"])
    (passage,) = passages(path)
    assert passage.text == "It began. Half of them were well. The end.\n\nNo stop here"
    assert passage.pages == Pages(numbers=(1, 2, 3), starts=(0, 23, 44))


def test_the_title_is_taken_if_the_first_page_shows_it(tmp_path: Path) -> None:
    page = ["The use of salt", "in water", "It helped."]
    (passage,) = passages(write(tmp_path, page, title="The Use of Salt in Water"))
    assert passage.title == "The Use of Salt in Water"
    (passage,) = passages(write(tmp_path, page, title="Microsoft Word - draft3.doc"))
    assert passage.title == "a leaflet"


def test_what_repeats_on_two_pages_or_within_them_stays(tmp_path: Path) -> None:
    pages = [["Salt helps.", "One.", "Salt helps.", "Two.", "End."] for _ in range(2)]
    assert texts(write(tmp_path, *pages))[0].count("Salt helps.") == 4
    middle = [[f"First {w}.", f"Next {w}.", "Same.", f"Near {w}.", f"Last {w}."] for w in "abcde"]
    assert texts(write(tmp_path, *middle))[0].count("Same.") == 5


def test_pages_that_are_all_alike_stay(tmp_path: Path) -> None:
    (passage,) = passages(write(tmp_path, *[["Salt helps."]] * 4))
    assert passage.text.count("Salt helps.") == 4
    assert passage.pages is not None
    assert passage.pages.numbers == (1, 2, 3, 4)


def test_a_long_page_is_cut_between_sentences(tmp_path: Path) -> None:
    lines = [f"Line {i} says that salt was given to all of them." for i in range(40)]
    found = texts(write(tmp_path, lines))
    assert len(found) > 1
    assert " ".join(" ".join(found).split()) == " ".join(lines)


def test_no_encoding_of_output_concerns_the_process_of_pdfium(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "utf-16")
    assert texts(write(tmp_path, ["Salt helps."])) == ["Salt helps."]


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
    assert _bad(list(pdf.read(path))).reason.startswith("damaged")


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
    assert texts(tmp_path / "open.pdf") == ["Salt helps."]


def test_a_page_that_cannot_be_read_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    content = make_pdf([["One."], ["Two."], ["Three."]])
    # the second page, the object after its content, is no dictionary
    first, middle = content.split(b"\n7 0 obj\n")
    _, rest = middle.split(b"endobj", 1)
    path.write_bytes(first + b"\n7 0 obj\n(no page)\nendobj" + rest)
    bad, *records, parts = pdf.read(path)
    assert isinstance(bad, Remark)
    assert (bad.record, bad.line) == ("page 2", 1)
    assert bad.reason.startswith("cannot be read: ")
    assert [r.passage.text for r in records if isinstance(r, Record)] == ["One.\n\nThree."]
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
        with monkeypatch.context() as patch:
            patch.setattr(process, name, value)
            assert reason in _bad(list(pdf.read(path))).reason


def test_a_page_of_too_many_characters_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "MAX_PAGE", 5)
    bad, good, _ = pdf.read(write(tmp_path, ["One long page."], ["Two."]))
    assert isinstance(bad, Remark)
    assert "got 14" in bad.reason
    assert isinstance(good, Record)


def _bomb(tmp_path: Path, size: int) -> Path:
    """A page whose content is ``size`` MiB when unpacked, and a thousandth of that before."""
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(size)) + packer.flush()
    page = make_pdf([["One."]])
    start = page.index(b"<< /Length")
    head = f"<< /Length {len(packed)} /Filter /FlateDecode >>\nstream\n".encode()
    path = tmp_path / "bomb.pdf"
    path.write_bytes(page[:start] + head + packed + page[page.index(b"\nendstream") :])
    return path


def test_what_is_too_large_unpacked_is_a_bad_file_and_this_process_stays_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "MAX_MEMORY", 256 << 20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    items = list(pdf.read(_bomb(tmp_path, 400)))
    assert not any(isinstance(item, Record) for item in items)
    assert isinstance(items[0], BadFile)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [("MAX_SECONDS", 0, "processor time"), ("MAX_MEMORY", 1 << 24, "PDFium")],
)
def test_the_process_of_pdfium_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: int, reason: str
) -> None:
    monkeypatch.setattr(process, name, value)
    assert reason in _bad(list(pdf.read(write(tmp_path, *[["One."] * 40] * 200)))).reason


@pytest.mark.parametrize("size", ["0", "-10", "1e30", "0.0001"])
def test_type_of_any_size_is_read(tmp_path: Path, size: str) -> None:
    path = tmp_path / "a.pdf"
    content = make_pdf([["Salt helps.", "It is cheap."]])
    path.write_bytes(content.replace(b"/F1 10 Tf", f"/F1 {size} Tf".rjust(9).encode()))
    assert any(isinstance(item, Record | BadFile) for item in pdf.read(path))


def test_places_that_are_no_numbers_are_read() -> None:
    def word(*places: float) -> Word:
        return process._word([0, 0, [["word", *places]]])

    nan, inf = float("nan"), float("inf")
    words = [word(nan, inf, -inf, 1e30, 0), word(0, 1, 2, 2, 2), word(5, 4, 3, 2, 1)]
    assert sum(line.text.count("word") for line in lines(words, 1)) == 3


def test_pages_of_many_small_words_take_time_in_proportion() -> None:
    def lay(count: int) -> None:
        body = process._word([0, 0, [["body", 0, 20, 0, 8, 10]]])
        small = [process._word([0, 0, [["2", x, x + 1, 0, 4, 5]]]) for x in range(count)]
        assert lines([body, *small], 1)

    assert growth(lay, 4_000) < MOST


def test_a_crash_of_pdfium_is_a_bad_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crashing = tmp_path / "crashing.py"
    crashing.write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    monkeypatch.setattr(process, "_SCRIPT", crashing)
    assert "SIGSEGV" in _bad(list(pdf.read(write(tmp_path, ["One."])))).reason


def test_a_reading_that_is_given_up_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, *[["One."] * 40] * 50)
    started = []

    class Recorded(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Recorded)
    found = process.glyphs(path)
    next(found.pages)
    found.pages.close()
    assert [one.returncode is not None for one in started] == [True]
    with pytest.raises(ChildProcessError):
        os.waitpid(started[0].pid, os.WNOHANG)


def test_without_pdfium_an_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, ["One."])
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(ReaderUnavailable, match=r"pip install 'posology\[pdf\]'") as caught:
        pdf.read(path)
    assert caught.value.package == "pypdfium2"
    assert pdf.count(path) == 0


@pytest.mark.parametrize(
    ("parted", "text"),
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
        (["with COVID-", "19 and TNF-", "α of 5-", "10 mg"], "with COVID-19 and TNF-α of 5- 10 mg"),
        ([], ""),
    ],
)
def test_divided_words_are_put_together(parted: list[str], text: str) -> None:
    assert paragraph(parted)[0] == text


def paragraph(parted: list[str]) -> tuple[str, list[int]]:
    known: Counter[str] = Counter()
    learn(parted, known)
    return joined(parted, known)


@given(st.lists(st.text("abC-. 1", min_size=1, max_size=12).map(str.strip).filter(bool)))
@settings(deadline=None)
def test_only_hyphens_are_lost_and_lines_are_where_they_begin(lines: list[str]) -> None:
    def bare(text: str) -> str:
        return text.replace("-", "").replace(" ", "")

    text, starts = paragraph(lines)
    assert bare(text) == bare("".join(lines))
    for line, start in zip(lines, starts, strict=True):
        assert text[start:].startswith(line.removesuffix("-"))


def test_lines_without_end_take_time_in_proportion(tmp_path: Path) -> None:
    def join(characters: int) -> None:
        long = "a" * characters
        assert paragraph([long, "b"])[0] == f"{long} b"

    def look(characters: int) -> None:
        slashes = "1" + "/" * characters + "x"
        assert texts(write(tmp_path, [slashes])) == [slashes]

    assert growth(join, 25_000) < MOST
    assert growth(look, 8_000) < MOST


def _replies(path: Path) -> Generator[dict[str, Any], None, None]:
    for reply in replies(str(path), process.MAX_PAGE):
        if "unreadable" in reply:
            raise process.Unreadable(reply["unreadable"])
        # joins the halves of a pair of surrogates
        yield json.loads(json.dumps(reply))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """PDFium in this process: to begin one of its own takes longer than to read a page."""
    monkeypatch.setattr(process, "_replies", _replies)


SAMPLES = {
    f"{kind}: {name}": make
    for kind, some in KINDS.items()
    for name, make in some.items()
    if name != DENSE
}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "name", [name for name in SAMPLES if name.startswith("articles") and name != "articles: table"]
)
def test_no_letter_is_read_twice(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a_file.pdf"
    path.write_bytes(SAMPLES[name]().content)
    found = Counter(char for text in texts(path) for char in text if char.isalnum())
    if not found:
        return
    shown = Counter(
        char
        for page in process.glyphs(path).pages
        for word in page or ()
        for run in word.runs
        for char in run.text.replace("ﬁ", "fi").replace("ﬂ", "fl")
    )
    assert not found - shown


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", SAMPLES)
def test_known_text_is_read(tmp_path: Path, name: str) -> None:
    made = SAMPLES[name]()
    found = score(made, pdf.read, tmp_path / "a_file.pdf")
    if not made.sentences:
        assert found.refused
        return
    assert (found.found, found.pages, found.twice, found.false) == (
        found.wanted,
        found.wanted,
        0,
        (),
    )
    assert found.title
    assert not found.kept
    assert found.bad == made.bad


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["white", "on a layer that is off"])
def test_what_there_was_no_time_to_look_at_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("posology.corpus.pdfium.page.Drawings", lambda: Drawings(left=0))
    path = tmp_path / "a_file.pdf"
    path.write_bytes(SAMPLES[f"hidden text: {name}"]().content)
    found = process.glyphs(path)
    assert list(found.pages)
    assert any("read as if shown" in one.reason for one in found.remarks)
