"""Scanned pages are read by OCR; ``evals.corpus.scans`` prints what is read right of them."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from posology.corpus import pdf
from posology.corpus.items import Record, Remark
from posology.corpus.pdf import process, scans
from posology.corpus.pdf.numbering import WINDOW
from posology.errors import BadFile
from posology.types import UNREADABLE, Pages, Passage
from tests.support.literature import pdf as make_pdf
from tests.support.pdfs.scans import SCANS, compare, pictured

_OCR = pytest.mark.skipif(not scans.available(), reason="needs the extra ocr")
#: shares of words and of numbers that are read right, at least; 0076-scans.md has what is measured
FLOORS = {"Greek and units": (0.95, 0.97), "faint": (0.98, 0.96)}
_FLOOR = (0.99, 0.98)
#: of a long scan
PAGES = 500


def write(folder: Path, name: str) -> Path:
    path = folder / "scan.pdf"
    path.write_bytes(SCANS[name]().content)
    return path


def passages(path: Path) -> list[Passage]:
    return [item.passage for item in pdf.read(path) if isinstance(item, Record)]


@_OCR
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SCANS if name != "empty"])
def test_a_scan_is_read(tmp_path: Path, name: str) -> None:
    made = SCANS[name]()
    found = passages(write(tmp_path, name))
    right = compare(made.text, " ".join(one.text for one in found))
    words, numbers = FLOORS.get(name, _FLOOR)
    assert right.right >= words * right.words
    assert right.right_numbers >= numbers * right.numbers
    assert right.false == ()
    pages = {page for one in found if one.pages is not None for page in one.pages.numbers}
    assert {-page for page in pages if page < 0} == set(made.scanned)


@_OCR
@pytest.mark.slow
def test_an_empty_scan_is_a_bad_file(tmp_path: Path) -> None:
    (bad,) = pdf.read(write(tmp_path, "empty"))
    assert isinstance(bad, BadFile)
    assert bad.reason == "has no text, and OCR finds none"


def test_without_the_packages_a_scan_is_named_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    (bad,) = pdf.read(write(tmp_path, "clean"))
    assert isinstance(bad, BadFile)
    assert "pip install 'posology[ocr]'" in bad.reason
    unread, *rest = pdf.read(write(tmp_path, "mixed"))
    assert isinstance(unread, Remark)
    assert unread.record == "page 2"
    assert "pip install 'posology[ocr]'" in unread.reason
    (passage,) = [item.passage for item in rest if isinstance(item, Record)]
    assert (passage.page, passage.last_page, passage.ocr) == (1, 1, False)
    assert passage.unread_pages == 1


def _program(folder: Path, text: str) -> Path:
    path = folder / "program.py"
    path.write_text(text)
    return path


def _replying(folder: Path, *words: str) -> Path:
    made = [
        [0.0, 0, [[text, 60 + 40 * i, 95 + 40 * i, 90, 100, 101]]] for i, text in enumerate(words)
    ]
    reply = json.dumps({"words": made, "illegible": words.count(UNREADABLE)})
    return _program(folder, f"import sys\nfor _ in sys.stdin: print({reply!r}, flush=True)")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("posology.corpus.pdf.reader.available", lambda: True)


@pytest.mark.usefixtures("installed")
def test_a_file_with_text_begins_no_ocr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.pdf"
    # the second page is blank
    path.write_bytes(make_pdf([["Salt helps."], []]))
    monkeypatch.setattr(scans.Scans, "_start", None)
    assert [(one.text, one.unread_pages) for one in passages(path)] == [("Salt helps.", 0)]


@pytest.mark.usefixtures("installed")
def test_words_that_are_not_sure_are_unknown_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scans, "_SCRIPT", _replying(tmp_path, "Give", UNREADABLE, "daily."))
    bad, *rest = pdf.read(write(tmp_path, "mixed"))
    assert isinstance(bad, Remark)
    assert bad.record == "page 2"
    assert bad.reason.startswith("1 word of 3 that OCR cannot read for sure")
    found = [item.passage for item in rest if isinstance(item, Record)]
    assert any(f"Give {UNREADABLE} daily." in one.text and one.ocr for one in found)
    assert {one.unread_pages for one in found} == {0}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(("words", "unread"), [((UNREADABLE, UNREADABLE), 1), ((), 0)])
def test_a_page_of_which_no_word_is_sure_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], unread: int
) -> None:
    monkeypatch.setattr(scans, "_SCRIPT", _replying(tmp_path, *words))
    (one,) = passages(write(tmp_path, "mixed"))
    assert (one.last_page, one.unread_pages) == (1, unread)


@pytest.mark.usefixtures("installed")
def test_a_page_at_which_ocr_stops_is_a_bad_record_and_so_are_those_after_three(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashing = _program(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    monkeypatch.setattr(scans, "_SCRIPT", crashing)
    ocr = scans.Scans(tmp_path / "a.pdf")
    said = [ocr.read(number)["wrong"] for number in range(1, 6)]
    assert [one.startswith("OCR stopped") for one in said] == [True, True, True, False, False]
    assert "3 pages" in said[-1]
    bad, *rest = pdf.read(write(tmp_path, "mixed"))
    assert isinstance(bad, Remark)
    assert bad.record == "page 2"
    assert [item.passage.unread_pages for item in rest if isinstance(item, Record)] == [1]


@pytest.mark.usefixtures("installed")
def test_a_long_scan_is_read_with_the_words_of_few_pages_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = 40
    held: list[int] = []

    class Stub:
        """Reads the same words of each page, and counts those of pages before that are still there."""

        def __init__(self, _: Path) -> None:
            place = [
                [0.0, 0, [["salt", 60 + 9 * i, 67 + 9 * i, 90, 100, 101]]] for i in range(words)
            ]
            self._reply = {"words": place, "illegible": 0}

        def read(self, number: int) -> dict[str, Any]:
            if number % 50 == 0:
                there = sum(type(one) is process.Word for one in gc.get_objects())
                held.append(there // words)
            return self._reply

        def close(self) -> None: ...

    monkeypatch.setattr("posology.corpus.pdf.reader.Scans", Stub)
    path = tmp_path / "long.pdf"
    path.write_bytes(pictured([Image.new("L", (8, 8), 200)] * PAGES))
    assert passages(path)[-1].last_page == PAGES
    assert len(held) == PAGES // 50
    # those of the window at hand, and of the next while it is filled
    assert max(held) <= 2 * WINDOW


@_OCR
def test_the_process_of_ocr_holds_the_picture_of_one_page(monkeypatch: pytest.MonkeyPatch) -> None:
    import pypdfium2

    from posology.corpus.ocr import page as ocr
    from posology.corpus.ocr.__main__ import answer

    pictures: list[weakref.ref[Any]] = []
    draw = ocr.picture

    def drawn(page: Any) -> Any:
        assert not any(one() is not None for one in pictures)
        pictures.append(weakref.ref(shown := draw(page)))
        return shown

    monkeypatch.setattr(ocr, "picture", drawn)
    monkeypatch.setattr(ocr, "reply", lambda *_: {"words": [], "illegible": 0})
    with pypdfium2.PdfDocument.new() as document:
        for _ in range(PAGES):
            document.new_page(9, 9).close()
        for number in range(1, PAGES + 1):
            assert "wrong" not in answer(document, number, None)
    assert len(pictures) == PAGES


@pytest.mark.usefixtures("installed")
def test_a_reading_that_is_given_up_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scans, "_SCRIPT", _replying(tmp_path, "Salt"))
    ocr = scans.Scans(write(tmp_path, "clean"))
    found = process.glyphs(tmp_path / "scan.pdf", ocr)
    assert next(found.pages)
    running = ocr._process
    assert running is not None
    found.pages.close()
    assert running.returncode is not None


@_OCR
@pytest.mark.slow
def test_no_connection_is_opened_and_nothing_is_fetched(tmp_path: Path) -> None:
    """The process of OCR, whose audit hook ends it at anything of a network."""
    # urllib3, which rapidocr imports, binds a socket of this machine to see whether it has IPv6
    path = write(tmp_path, "table")
    script = scans._SCRIPT
    hook = (
        "import os, runpy, sys\n"
        "def hook(event, args):\n"
        "    if event in ('socket.connect', 'socket.getaddrinfo', 'socket.sendto', 'urllib.Request'): os._exit(9)\n"
        "sys.addaudithook(hook)\n"
        f"sys.argv = [{str(script)!r}, *sys.argv[1:]]\n"
        f"runpy.run_path({str(script)!r}, run_name='__main__')\n"
    )
    program = _program(tmp_path, hook)
    command = [sys.executable, "-P", str(program), str(path), str(scans.MAX_MEMORY), "120"]
    done = subprocess.run(command, input=b"1\n", capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert len(json.loads(done.stdout)["words"]) > 50


@_OCR
def test_the_picture_of_a_page_of_any_size_is_bounded() -> None:
    import pypdfium2

    from posology.corpus.ocr.page import PIXELS, picture

    document = pypdfium2.PdfDocument.new()
    for width, height in ((28_346, 28_346), (14_400, 10), (595, 842)):
        shown = picture(document.new_page(width, height))
        assert shown.size <= 1.01 * PIXELS
    assert shown.shape == (3509, 2480)


@_OCR
@pytest.mark.parametrize(
    ("text", "sure", "before", "legible"),
    [
        ("helped", 0.6, "", True),
        ("helped", 0.4, "", False),
        ("12.5", 0.75, "", False),
        ("12.5", 0.9, "", True),
        ("109/L", 1.0, "×", False),
        ("×109/L", 1.0, "5", False),
        ("109", 1.0, "of", True),
        ("10", 1.0, "×", True),
        ("10■/L", 1.0, "×", False),
    ],
)
def test_words_are_legible_by_their_probability(
    text: str, sure: float, before: str, legible: bool
) -> None:
    from posology.corpus.ocr.models import Seen
    from posology.corpus.ocr.page import _legible

    assert _legible(Seen(text=text, start=0, end=1, sure=sure), before) is legible


@_OCR
def test_the_probability_of_a_word_is_that_of_all_its_alignments() -> None:
    from posology.corpus.ocr.models import _chance

    # of two steps, letters 1 and 2: "1" is 11, 1-, -1
    chances = np.array([[0.3, 0.6, 0.1, 0.0], [0.5, 0.4, 0.1, 0.0]], dtype=np.float32)
    assert _chance(chances, [1]) == pytest.approx(0.6 * 0.4 + 0.6 * 0.5 + 0.3 * 0.4)
    assert _chance(chances, [1, 2]) == pytest.approx(0.6 * 0.1)
    # equal letters need a blank between them
    assert _chance(chances, [1, 1]) == 0.0


def test_pages_know_which_of_a_text_ocr_read() -> None:
    pages = Pages(numbers=(1, -2, 3), starts=(0, 10, 20))
    assert pages.span(0, 30) == (1, 3)
    assert pages.span(10, 15) == (2, 2)
    assert [pages.scanned(*part) for part in ((0, 9), (5, 15), (21, 30))] == [False, True, False]
    assert Pages.read(pages.flat) == pages
    assert pages.cut(12, 25) == Pages(numbers=(-2, 3), starts=(0, 8))
    passage = Passage(id="a", text="x" * 30, pages=pages)
    assert (passage.page, passage.last_page, passage.ocr) == (1, 3, True)
