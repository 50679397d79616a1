"""Runs PDFium in a process of its own (:mod:`posology.corpus.pdfium`) and returns the words of each page."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posology.corpus.drafts import Remarked
from posology.corpus.pdf.scans import Scans
from posology.types import UNREADABLE

_PREFIX = re.compile(r"[A-Z]{6}\+")
#: and halves of pairs of surrogates, which no UTF-8 can hold
_PRIVATE = re.compile("[\ud800-\udfff\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd]")
#: of Symbol, from its code 0x20, as Adobe maps them
_SYMBOL = (
    " !∀#∃%&∋()*+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"
    + UNREADABLE * 33
    + "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊⟨®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪�⟩∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭�"
)
#: what PDFium itself says of Symbol's glyphs
_KNOWN = frozenset(_SYMBOL) | {"µ", "∆", "Ω", "ϖ"}
#: maximum size of a file; a larger one is reported and not read
MAX_BYTES = 200_000_000
MAX_PAGES = 5_000
#: maximum number of characters of all pages, whose lines are kept in memory to find repeated ones
MAX_CHARACTERS = 50_000_000
#: maximum number of characters of a page; a dense one has 8,000
MAX_PAGE = 1_000_000
#: bytes of memory of PDFium's process; a dense page needs about 30 MB
MAX_MEMORY = 1 << 30
#: seconds of processor time of PDFium's process; a dense page needs about 0.02 s
MAX_SECONDS = 300

#: points; a page of 200 inches has 14,400
_FARTHEST = 1e6
#: height of type, points
_LOWEST = 0.1
_SCRIPT = Path(__file__).parents[1] / "pdfium" / "__main__.py"
#: bytes of a page's words; a dense page has 50,000
_MAX_LINE = 100_000_000
#: share of a page's characters without Unicode of which it counts as unreadable
_ILLEGIBLE = 0.5


class Unreadable(Exception):
    """A file that cannot be read, with the reason."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """Characters of one baseline, without white space. Places are in points; ``y`` grows downwards."""

    text: str
    x0: float
    x1: float
    top: float
    base: float
    bottom: float
    #: of its type; fonts of one size have different heights
    size: float

    @property
    def height(self) -> float:
        """Return the height of its font: all of its characters have the same."""
        return self.bottom - self.top


@dataclass(frozen=True, kw_only=True, slots=True)
class Word:
    """Characters that touch; raised and lowered ones are runs of their own."""

    runs: tuple[Run, ...]
    #: the run of the largest type, the longest of several
    main: Run
    bold: bool
    #: direction of writing in degrees, clockwise; words of one direction have places on the same turned page
    turn: float

    @property
    def x0(self) -> float:
        """Return where it begins."""
        return self.runs[0].x0

    @property
    def x1(self) -> float:
        """Return where it ends."""
        return self.runs[-1].x1


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """A level or upright line of a page, as of a page that is turned. Places are in points; ``y`` grows downwards."""

    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Glyphs:
    """A file's words and own title, as PDFium reads them."""

    #: of the file's own data, which is often wrong
    title: str
    #: words of each page, in the order of its content
    pages: Generator[list[Word], None, None]
    #: of unreadable pages, and of what is not read of others, complete after the last page
    remarks: list[Remarked]
    #: pages that OCR read, complete after the last page
    scanned: list[int]
    #: pages that show something of which nothing is read, complete after the last page
    unread: list[int]
    #: those of them that are pictures, where there is no OCR
    pictures: list[int]
    #: by page and direction of writing, of pages that may have tables, up to the page that was yielded last
    rules: dict[int, dict[float, list[Rule]]]


def glyphs(path: Path, scans: Scans | None = None) -> Glyphs:
    """Return the words of a file, a page at a time. Close ``pages``, or read all of it.

    Args:
        path: of the file.
        scans: reads its pages without text; ``None``: they are not read.

    Raises:
        Unreadable: the file cannot be read; also raised by ``pages``.
        OSError: it cannot be opened.
    """
    with path.open("rb"):
        if path.stat().st_size > MAX_BYTES:
            raise Unreadable(f"must have <= {MAX_BYTES:,} bytes")
    replies = _replies(path)
    try:
        first = next(replies)
        if (count := first["pages"]) > MAX_PAGES:
            raise Unreadable(f"must have <= {MAX_PAGES:,} pages (got {count:,})")
    except BaseException:
        replies.close()
        raise
    remarks: list[Remarked] = []
    scanned: list[int] = []
    unread: list[int] = []
    pictures: list[int] = []
    rules: dict[int, dict[float, list[Rule]]] = {}
    return Glyphs(
        title=first["title"],
        pages=_pages(replies, scans, remarks, scanned, unread, pictures, rules),
        remarks=remarks,
        scanned=scanned,
        unread=unread,
        pictures=pictures,
        rules=rules,
    )


def _pages(
    replies: Generator[dict[str, Any], None, None],
    scans: Scans | None,
    remarks: list[Remarked],
    scanned: list[int],
    unread: list[int],
    pictures: list[int],
    rules: dict[int, dict[float, list[Rule]]],
) -> Generator[list[Word], None, None]:
    size = 0
    with closing(replies), closing(scans) if scans is not None else nullcontext():
        for number, reply in enumerate(replies, start=1):
            if "wrong" in reply:
                remarks.append(Remarked(reason=reply["wrong"], record=f"page {number}"))
                unread.append(number)
                yield []
                continue
            words = list(map(_word, reply["words"]))
            runs = [run.text for word in words for run in word.runs]
            length = sum(map(len, runs))
            unknown = sum(run.count(UNREADABLE) for run in runs)
            illegible = unknown > _ILLEGIBLE * length
            if scans is not None and reply["drawn"] and (not runs or illegible):
                seen = scans.read(number)
                words = list(map(_word, seen.get("words", ())))
                size += sum(len(word.main.text) + 1 for word in words)
                reason = _unsure(seen)
                # a picture on which OCR finds no words may have none
                illegible = "wrong" in seen or (
                    len(words) == seen["illegible"] and bool(words or runs)
                )
                if words and not illegible:
                    scanned.append(number)
            else:
                size += length + len(runs)
                if reply["rules"] is not None:
                    rules[number] = _ruled(reply)
                reason = _reasons(
                    unknown, length, hidden=reply["hidden"], unlooked=reply["unlooked"]
                )
                if reply["scanned"] and not runs:
                    pictures.append(number)
                    unread.append(number)
            if size > MAX_CHARACTERS:
                raise Unreadable(f"must have <= {MAX_CHARACTERS:,} characters")
            if reason:
                remarks.append(Remarked(reason=reason, record=f"page {number}"))
            if illegible:
                unread.append(number)
            yield [] if illegible else words


def _ruled(reply: dict[str, Any]) -> dict[float, list[Rule]]:
    rules: dict[float, list[Rule]] = {turn: [] for turn, *_ in reply["words"]}
    for turn, *places in reply["rules"]:
        # a damaged file has any places
        if turn in rules and all(-_FARTHEST < one < _FARTHEST for one in places):
            x0, y0, x1, y1 = places
            rules[turn].append(Rule(x0=x0, y0=y0, x1=x1, y1=y1))
    return rules


def _unsure(seen: dict[str, Any]) -> str:
    """Return what OCR did not read of a page; empty: it read all that it found."""
    if "wrong" in seen:
        return str(seen["wrong"])
    if not (unsure := seen["illegible"]):
        return ""
    some = "1 word" if unsure == 1 else f"{unsure:,} words"
    return (
        f"{some} of {len(seen['words']):,} that OCR cannot read for sure, {UNREADABLE} in the text: "
        "their sentences are not quoted"
    )


def _reasons(unknown: int, length: int, *, hidden: int, unlooked: int) -> str:
    """Return what is not read of a page, or should not be; empty: all is as it should be.

    Args:
        unknown: number of characters without Unicode.
        length: number of all characters that are shown.
        hidden: number of characters that are not shown.
        unlooked: number of those that may not be.
    """
    reasons = []
    if unknown > _ILLEGIBLE * length:
        reasons.append(f"{unknown:,} of {length:,} characters have no Unicode: the page needs OCR")
    elif unknown:
        some = "1 character has" if unknown == 1 else f"{unknown:,} characters have"
        reasons.append(
            f"{some} no Unicode, {UNREADABLE} in the text: their sentences are not quoted"
        )
    if hidden:
        some = "1 character" if hidden == 1 else f"{hidden:,} characters"
        reasons.append(
            f"{some} that the page does not show (invisible, tiny, or out of sight) not read"
        )
    if unlooked:
        some = "1 character" if unlooked == 1 else f"{unlooked:,} characters"
        reasons.append(
            f"{some} in the color of paper or on a layer read as if shown: too many pages to draw"
        )
    return "; ".join(reasons)


def _run(text: str, x0: float, x1: float, top: float, base: float, bottom: float, *of: Any) -> Run:
    # a damaged file has any places, infinite ones among them
    places = x0, x1, top, base, bottom
    x0, x1, top, base, bottom = (one if -_FARTHEST < one < _FARTHEST else 0.0 for one in places)
    bottom = max(bottom, top + _LOWEST)
    size, signs = of or (bottom - top, "")
    return Run(
        text=decoded(text, signs),
        x0=x0,
        x1=x1,
        top=top,
        base=base,
        bottom=bottom,
        size=size if _LOWEST < size < _FARTHEST else _LOWEST,
    )


def _word(reply: list[Any]) -> Word:
    turn, bold, places = reply
    runs = tuple(_run(*run) for run in places)
    main = runs[0]
    if len(runs) > 1:
        main = max(runs, key=lambda run: (round(run.height, 1), len(run.text)))
    return Word(
        runs=runs,
        main=main,
        bold=bool(bold),
        turn=turn,
    )


def _replies(path: Path) -> Generator[dict[str, Any], None, None]:
    limits = (MAX_MEMORY, MAX_SECONDS, MAX_PAGE)
    # -P: beside the script are modules that must not hide others
    command = [sys.executable, "-P", str(_SCRIPT), str(path.absolute()), *map(str, limits)]
    process = subprocess.Popen(  # noqa: S603 - our own program; the file's path is its argument
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None  # it is a pipe
    try:
        while (line := process.stdout.readline(_MAX_LINE)).endswith(b"\n"):
            reply = json.loads(line)
            if "unreadable" in reply:
                raise Unreadable(reply["unreadable"])
            yield reply
        if len(line) == _MAX_LINE:
            raise Unreadable(f"has a page of more than {_MAX_LINE:,} bytes")
        if status := process.wait():
            raise Unreadable(_died(status))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _died(status: int) -> str:
    if status > 0:
        return f"PDFium's process ended with status {status}"
    if -status == getattr(signal, "SIGXCPU", None):
        return f"needs more than {MAX_SECONDS} s of processor time"
    return f"damaged, or needs more than {MAX_MEMORY >> 20:,} MiB: PDFium stopped ({signal.Signals(-status).name})"


def decoded(text: str, font: str) -> str:
    """Return text with the signs that its font shows, :data:`~posology.types.UNREADABLE` for what is not known.

    Args:
        text: as PDFium reads it.
        font: name of a font of signs; empty: of letters.
    """
    if font and _PREFIX.sub("", font).casefold().startswith("symbol"):
        return "".join(map(_symbol, text))
    if font:
        return "".join(
            UNREADABLE if char <= "\xff" or _PRIVATE.match(char) else char for char in text
        )
    return text if text.isascii() else _PRIVATE.sub(UNREADABLE, text)


def _symbol(char: str) -> str:
    if char in _KNOWN:
        return char
    code = ord(char) - (0xF000 if char >= "\uf000" else 0)
    return _SYMBOL[code - 0x20] if 0x20 <= code <= 0xFF else char
