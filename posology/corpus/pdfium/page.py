"""The words of a file, page by page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import pypdfium2
from pypdfium2 import raw

from posology.corpus.pdfium.characters import NONE, UNKNOWN, characters
from posology.corpus.pdfium.ink import Drawings, Inks, Piece, length
from posology.corpus.pdfium.objects import Lost, Objects
from posology.corpus.pdfium.places import baseline, place, turned, turns
from posology.corpus.pdfium.rules import Rules

_WORD = re.compile(r"\S+")
#: share of a character's height by which two baselines may differ and count as one
_SAME = 0.04
#: a page without it has no table that is read as rows
_TABLE = re.compile(r"\bTABLE\s|\bTable\s")


def replies(path: str, most: int) -> Iterator[dict[str, Any]]:
    """Yield what is printed of a file, see :mod:`posology.corpus.pdfium`.

    Args:
        path: of the file.
        most: maximum number of characters of a page.
    """
    try:
        document = pypdfium2.PdfDocument(path)
        count = len(document)
        title = document.get_metadata_value("Title")
    except pypdfium2.PdfiumError as error:
        locked = getattr(error, "err_code", None) == raw.FPDF_ERR_PASSWORD
        yield {"unreadable": "encrypted: remove its password" if locked else "damaged, or no PDF"}
        return
    yield {"pages": count, "title": title}
    drawings = Drawings()
    for number in range(count):
        try:
            page = document[number]
            text = page.get_textpage()
            size = text.count_chars()
            if size > most:
                yield {"wrong": f"must have <= {most:,} characters (got {size:,})"}
            else:
                yield _reply(page, text.raw, size, drawings)
            text.close()
            page.close()
        except pypdfium2.PdfiumError as error:
            yield {"wrong": f"cannot be read: {error}"}


def _reply(page: Any, text: Any, size: int, drawings: Drawings) -> dict[str, Any]:
    """Return the words of a page in the order of its content, and the numbers of characters that it does not show, or may not.

    Args:
        page: of PDFium.
        text: of the page.
        size: number of its characters.
        drawings: of the file.
    """
    inks, objects = Inks(page, text, drawings), Objects(page)
    chars = characters(text, size)
    every = list(_pieces(chars, inks))
    inks.look(objects)
    read = inks.read(every, objects)
    lost = list(objects.lost())
    directions = turns([*(one.ink.angle for one in read), *(one.angle for one in lost)])
    words = list(_words(text, read, directions))
    words += (_lost(one, directions[one.angle]) for one in lost)
    scanned = inks.is_scanned(objects)
    has_tables = not scanned and _TABLE.search(chars) is not None
    return {
        "words": words,
        "hidden": length(every) - length(read),
        "unlooked": inks.unlooked,
        "drawn": bool(objects.on),
        "scanned": scanned,
        "rules": Rules(page).of(dict.fromkeys(directions.values())) if has_tables else None,
    }


def _pieces(chars: str, inks: Inks) -> Iterator[Piece]:
    """Yield words, those of several text objects in pieces."""
    end = 0
    for word in _WORD.finditer(chars):
        # PDFium ends a line where a raised character begins
        spaced = end == 0 or bool(chars[end : word.start()].strip("\r\n"))
        start, end = word.span()
        ink = inks.of(start)
        if end - start == 1 or inks.of(end - 1) is ink:
            yield inks.piece(ink, word[0], start, spaced=spaced)
            continue
        of = [inks.of(i) for i in range(start, end)]
        cuts = [0, *(i for i in range(1, len(of)) if of[i] is not of[i - 1]), len(of)]
        for first, last in pairwise(cuts):
            some = word[0][first:last]
            yield inks.piece(of[first], some, start + first, spaced=spaced and not first)


def _words(
    text: Any, pieces: Iterable[Piece], directions: dict[float, float]
) -> Iterator[list[Any]]:
    word: list[list[Any]] = []
    turn, bold = 0.0, False
    for piece in pieces:
        of, spaced = directions[piece.ink.angle], piece.spaced
        for run in _runs(text, piece, of):
            # a raised part comes as a line of its own
            if word and (spaced or of != turn or not _touch(word[-1], run)):
                yield [turn, int(bold), word]
                word = []
            if not word:
                turn, bold = of, piece.ink.bold
            if run[0]:
                word.append(run)
            spaced = False
    if word:
        yield [turn, int(bold), word]


def _touch(left: list[Any], right: list[Any]) -> bool:
    """Return whether two runs are parts of one word."""
    height = max(left[5] - left[3], right[5] - right[3])
    return bool(
        -0.2 * height < right[1] - left[2] < 0.12 * height
        and abs(right[4] - left[4]) < 0.6 * height
    )


def _runs(text: Any, piece: Piece, turn: float) -> Iterator[list[Any]]:
    """Yield the runs of a piece: of letters alone, the ends tell whether it has several."""
    start, last = piece.first, piece.first + len(piece.chars) - 1
    x0, top, x1, bottom = place(text, start, turn)
    base = baseline(text, start, turn)
    if start < last:
        limit = _SAME * (bottom - top)
        if not piece.chars.isalpha() or abs(baseline(text, last, turn) - base) > limit:
            for i in range(start + 1, last + 1):
                if abs((at := baseline(text, i, turn)) - base) > limit:
                    x1 = place(text, i - 1, turn)[2]
                    yield _run(piece, start, i, (x0, x1, top, base, bottom))
                    x0, top, x1, bottom = place(text, i, turn)
                    start, base = i, at
        if start < last:
            x1 = place(text, last, turn)[2]
    yield _run(piece, start, last + 1, (x0, x1, top, base, bottom))


def _run(piece: Piece, start: int, end: int, places: Iterable[float]) -> list[Any]:
    chars = piece.chars[start - piece.first : end - piece.first].replace(NONE, "")
    return [chars, *(round(one, 2) for one in places), piece.ink.size, piece.ink.signs]


def _lost(one: Lost, turn: float) -> list[Any]:
    """Return the word of a glyph that PDFium's text leaves out."""
    x, base = turned(one.x, one.y, turn)
    places = (x, x + 0.5 * one.height, base - one.height, base, base + 0.2 * one.height)
    return [turn, 0, [[UNKNOWN, *(round(at, 2) for at in places), round(one.height, 2), ""]]]
