"""Finds the tables of a page below their captions, and takes those whose whole grid is certain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median

from posology.corpus.documents.grid import label_of
from posology.corpus.pdf.process import Rule, Word
from posology.corpus.pdf.segments import segments
from posology.corpus.pdf.tables import columns
from posology.corpus.pdf.tables.cells import Cell, Found, check
from posology.corpus.pdf.tables.ruled import RuledGrid
from posology.corpus.pdf.tables.shapes import (
    NEAR,
    Chunk,
    Crossed,
    Refused,
    Ruling,
    Spaces,
    TextLine,
    text_lines,
)

#: captions of a page, and words of a page that may have a table
_CAPTIONS, _WORDS = 10, 20_000
#: rules from one side of a table to the other
_RULES = 100
#: lines of a caption, and its distance from the table, in sizes of type
_CAPTION_LINES, _BELOW = 8, 14.0
#: distance of lines that ends a table without a last rule, in sizes of type
_APART = 3.0
#: of notes: distance from what is above, in sizes of type, and their type in sizes of the page's
_NOTE_NEAR, _NOTE_SIZE = 2.0, 0.95
#: words of a line of prose
_PROSE = 5
#: what is behind a label is no sentence: Table 2 shows
_TITLE = re.compile(r"\s*(?:[.:|–—-]|\(?[Cc]ontinued|\(?cont|[^\Wa-z]|\(|\Z)")
_CONTINUED = re.compile(r"\W*cont", re.IGNORECASE)


def tables(words: Sequence[Word], rules: Mapping[float, Sequence[Rule]]) -> Iterator[Found | str]:
    """Yield the tables of a page that are certain, and of others with a caption their labels.

    Args:
        words: of the page.
        rules: by direction of writing.
    """
    if len(words) > _WORDS:
        return
    for turn, some in rules.items():
        own = [word for word in words if word.turn == turn]
        if not any(word.main.text.casefold() == "table" for word in own):
            continue
        page = _Page(own, Ruling.of(some))
        for caption in page.captions[:_CAPTIONS]:
            try:
                yield page.read(caption)
            except Refused:
                text = Chunk(caption).text
                continued = _CONTINUED.match(text, len(label_of(text)))
                yield f"{_label(text)}, continued" if continued else _label(text)


class _Page:
    """The words and rules of a page in one direction."""

    def __init__(self, words: Sequence[Word], ruling: Ruling) -> None:
        self._words = words
        self._ruling = ruling
        self._segments = segments(words)
        self._size = median(word.main.size for word in words)
        #: first words of captions, from top to bottom
        self.captions = sorted(
            (one.words for one in self._segments if _is_caption(one.words)),
            key=lambda some: some[0].main.base,
        )

    def read(self, caption: Sequence[Word]) -> Found:
        """Return the table below a caption.

        Raises:
            Refused: there is none, or not all of it is certain.
        """
        first = caption[0]
        frame = self._frame(first)
        found = self._unruled(first) if frame is None else self._ruled(first, frame)
        check(found)
        return found

    def _frame(self, first: Word) -> Rule | None:
        """Return the rule above a table; ``None``: there is none below the caption."""
        size, base = first.main.size, first.main.base
        for one in self._ruling.level:
            if not base < one.y0 < base + _BELOW * size or one.x1 - one.x0 < 8 * size:
                continue
            if one.x0 - 3 * size <= first.x0 < one.x1:
                return one
        return None

    def _within(self, x0: float, x1: float, y0: float, y1: float) -> list[Word]:
        """Return the words of a part of the page.

        Raises:
            Refused: words cross its sides.
        """
        some = [word for word in self._words if y0 < word.main.base - 0.2 * word.main.size < y1]
        some = [word for word in some if word.x1 > x0 and word.x0 < x1]
        if any(word.x0 < x0 - NEAR or word.x1 > x1 + NEAR for word in some):
            raise Crossed("words that cross the sides of the table")
        return some

    def _ruled(self, first: Word, top: Rule) -> Found:
        end = max(one.x1 for one in self._segments if any(word is first for word in one.words))
        left, right = min(top.x0, first.x0 - 1), max(top.x1, end)
        above = text_lines(self._within(left, right, first.main.top - 0.5, top.y0))
        caption = _caption(above, first)
        if len(caption) < len(above):
            raise Refused("lines between caption and rule")
        level = [
            one for one in self._ruling.level
            if one.y0 > top.y0 - 0.1 and one.x0 >= top.x0 - NEAR and one.x1 <= top.x1 + NEAR
        ]  # fmt: skip
        limit = min(
            (some[0].main.base - some[0].main.size for some in self.captions if some[0].main.base > top.y0 and top.x0 - 20 < some[0].x0 < top.x1),
            default=1e9,
        )  # fmt: skip
        level = [one for one in level if one.y0 < limit]
        inner = [
            one for one in self._ruling.upright
            if top.x0 - NEAR <= one.x0 <= top.x1 + NEAR and one.y0 >= top.y0 - NEAR and one.y1 <= limit
        ]  # fmt: skip
        bottom = _reach(top.y0, inner)
        if any(top.x0 + NEAR < one.x0 < top.x1 - NEAR and one.y0 <= bottom for one in inner):
            level = [one for one in level if one.y0 <= bottom + NEAR]
            if abs(level[-1].y0 - bottom) > NEAR:
                raise Refused("upright rules that end below the last level one")
            words = self._within(top.x0, top.x1, top.y0, bottom)
            grid = RuledGrid(level, [one for one in inner if one.y0 <= bottom], top, bottom)
            heads, body = grid.read(words)
        else:
            heads, body, bottom = self._half_ruled(top, level, limit)
            words = self._within(top.x0, top.x1, top.y0, bottom)
        return self._found(
            first, caption, (heads, body), words, (min(top.x0, first.x0), top.x1, bottom)
        )

    def _half_ruled(
        self, top: Rule, level: Sequence[Rule], limit: float
    ) -> tuple[list[list[Cell]], list[list[Cell]], float]:
        full = [top]
        for one in level:
            whole = abs(one.x0 - top.x0) <= NEAR and abs(one.x1 - top.x1) <= NEAR
            if whole and one.y0 - full[-1].y0 > NEAR:
                full.append(one)
        if not 1 < len(full) <= _RULES:
            raise Refused("no rule below the headings, or too many")
        heads = text_lines(self._within(top.x0, top.x1, top.y0, full[1].y0))
        sections, bottom = list[list[TextLine]](), full[1].y0
        #: of a group between two rules, if rows follow
        names: list[list[TextLine]] = []
        spaces: Spaces | None = None
        for upper, lower in pairwise(full[1:]):
            some = text_lines(self._within(top.x0, top.x1, upper.y0, lower.y0))
            if some and _is_section(some):
                sections += [*names, some]
                names, bottom = [], lower.y0
            elif not some or not _is_name(some) or names:
                break
            else:
                names.append(some)
        if not sections:
            if len(full) > 2:
                raise Refused("no rows below the headings")
            below = text_lines(self._within(top.x0, top.x1, full[1].y0, limit))
            sections = [_until_apart(below)]
            bottom = sections[0][-1].base + 0.4 * sections[0][-1].size
        partial = [
            one for one in level
            if top.y0 + NEAR < one.y0 < bottom - NEAR and one.x1 - one.x0 < top.x1 - top.x0 - 2 * NEAR
        ]  # fmt: skip
        if any(one.y0 > full[1].y0 for one in partial):
            raise Refused("rules within the body")
        every = [line for some in sections for line in some]
        spaces = Spaces.of(line.words for line in (*heads, *every))
        own = columns.columns_of(every, spaces)
        above = columns.heads(heads, own, spaces, partial)
        if _are_rows(above):
            raise Refused("headings that look like a row")
        return above, columns.body(sections, own, spaces), bottom

    def _unruled(self, first: Word) -> Found:
        try:
            return self._unruled_within(first, *self._side(first))
        except Crossed:
            # over all columns of the page
            return self._unruled_within(first, *self._sides())

    def _unruled_within(self, first: Word, x0: float, x1: float) -> Found:
        limit = min(
            (some[0].main.base - some[0].main.size for some in self.captions if some[0].main.base > first.main.base and x0 <= some[0].x0 < x1),
            default=1e9,
        )  # fmt: skip
        lines = text_lines(self._within(x0, x1, first.main.top - 0.5, limit))
        caption = _caption(lines, first)
        for line, following in pairwise(caption):
            # a heading over all columns has the look of a caption's second line
            if abs(following.x0 - caption[0].x0) > 2 or line.x1 - line.x0 < 0.6 * (x1 - x0):
                raise Refused("a line that may be a heading or of the caption")
        rest = _until_apart(lines[len(caption) :])
        spaces = Spaces.of(line.words for line in (*caption, *rest))
        count = columns.first_body(rest, spaces)
        heads, body = rest[:count], rest[count:]
        own = columns.columns_of(body, spaces)
        cells = columns.heads(heads, own, spaces, ())
        table = columns.body([body], own, spaces)
        if not columns.numeric(table):
            raise Refused("no column of numbers")
        if any(_is_prose(table, i) for i in range(len(own))):
            raise Refused("a column of prose")
        bottom = body[-1].base + 0.4 * body[-1].size
        words = [word for line in rest for word in line.words]
        left, right = min(word.x0 for word in words), max(word.x1 for word in words)
        self._check_sides(left, right, rest)
        return self._found(
            first, caption, (cells, table), words, (min(left, first.x0), right, bottom)
        )

    def _side(self, first: Word) -> tuple[float, float]:
        """Return the sides of the column of text that a caption is in."""
        prose = [one for one in self._segments if len(one.words) >= _PROSE]
        left, right = self._sides()
        middle = (left + right) / 2
        crossing = [one for one in prose if one.x0 < middle < one.x1]
        if len(crossing) > 0.3 * len(prose) or not prose:
            return left, right
        if first.x0 < middle:
            return left, max(
                [word.x1 for word in self._words if word.x1 < middle], default=middle
            ) + 1
        return min([word.x0 for word in self._words if word.x0 > middle], default=middle) - 1, right

    def _sides(self) -> tuple[float, float]:
        return min(word.x0 for word in self._words) - 1, max(word.x1 for word in self._words) + 1

    def _check_sides(self, x0: float, x1: float, lines: Sequence[TextLine]) -> None:
        """Check that what is beside a table without rules is prose, and not a part of it.

        Raises:
            Refused: it may be a part.
        """
        beside = [
            one for one in self._segments
            if (one.x1 < x0 or one.x0 > x1) and lines[0].base - 2 <= one.base <= lines[-1].base + 2
        ]  # fmt: skip
        level = [one for one in beside if any(abs(one.base - line.base) < 1 for line in lines)]
        if level and sum(len(one.words) >= _PROSE for one in beside) < 0.6 * len(beside):
            raise Refused("words beside the table")

    def _found(
        self,
        first: Word,
        caption: Sequence[TextLine],
        table: tuple[list[list[Cell]], list[list[Cell]]],
        words: Sequence[Word],
        place: tuple[float, float, float],
    ) -> Found:
        x0, x1, bottom = place
        notes = self._notes(x0, x1, bottom)
        text = " ".join(Chunk(line.words).text for line in caption)
        head = [word for line in caption for word in line.words]
        return Found(
            label=_label(text),
            caption=[line.words for line in caption],
            heads=table[0],
            body=table[1],
            notes=notes,
            words=[*head, *words, *(word for note in notes for word in note)],
            x0=first.x0,
            x1=max(x1, first.x1),
        )

    def _notes(self, x0: float, x1: float, bottom: float) -> list[Sequence[Word]]:
        """Return the lines below a table in smaller type than the page's."""
        notes: list[Sequence[Word]] = []
        last = bottom
        for one in sorted(self._segments, key=lambda one: one.base):
            size = median(word.main.size for word in one.words)
            if one.base <= bottom or not x0 - NEAR <= one.x0 <= min(x1, x0 + 2 * size):
                continue
            if one.base - last > _NOTE_NEAR * size or size > _NOTE_SIZE * self._size:
                break
            notes.append(one.words)
            last = one.base
        return notes


def _is_caption(words: Sequence[Word]) -> bool:
    text = Chunk(words[:6]).text
    label = label_of(text)
    return bool(label) and text[0] == "T" and _TITLE.match(text[len(label) :]) is not None


def _label(text: str) -> str:
    return re.sub(r"\ATABLE", "Table", label_of(text))


def _caption(lines: Sequence[TextLine], first: Word) -> list[TextLine]:
    """Return the lines of a caption: up to the first that has several parts."""
    caption: list[TextLine] = []
    for line in lines:
        if not caption:
            if not any(word is first for word in line.words):
                raise Refused("a line above the caption")
            # the label may stand apart
            if line.parts > 2 or line.words[0] is not first:
                raise Refused("words beside the caption")
        elif line.parts > 1 or line.base - caption[-1].base > 2 * line.size:
            break
        caption.append(line)
    if not 0 < len(caption) <= _CAPTION_LINES:
        raise Refused("a long caption")
    return caption


def _reach(top: float, upright: Sequence[Rule]) -> float:
    """Return where upright rules end that begin at a rule, or at the end of others."""
    bottom = top
    for one in sorted(upright, key=lambda one: one.y0):
        if one.y0 <= bottom + NEAR:
            bottom = max(bottom, one.y1)
    return bottom


def _is_section(lines: Sequence[TextLine]) -> bool:
    """Return whether lines between two rules may be rows: not prose."""
    several = sum(line.parts > 1 for line in lines)
    return several > 0 and 3 * several >= len(lines)


def _is_name(lines: Sequence[TextLine]) -> bool:
    """Return whether what is between two rules may name a group of rows."""
    return len(lines) == 1 and len(lines[0].words) <= 2 * _PROSE


def _until_apart(lines: Sequence[TextLine]) -> list[TextLine]:
    """Return the lines of a table that no rule ends: up to a wide space, or to a line of prose."""
    some: list[TextLine] = []
    for line in lines:
        if some and line.base - some[-1].base > _APART * line.size:
            break
        if line.parts == 1 and len(line.words) > 2 * _PROSE:
            break
        some.append(line)
    last = next((i for i in range(len(some), 0, -1) if some[i - 1].parts > 1), 0)
    if last < 2:
        raise Refused("no rows below the caption")
    most = max(two.base - one.base for one, two in pairwise(some[:last]))
    for line in some[last:]:
        # the end of the last row, or a note
        if (
            line.base - some[last - 1].base <= 1.05 * most
            and line.size > _NOTE_SIZE * some[last - 1].size
        ):
            raise Refused("a line that may be of the last row")
    return some[:last]


def _is_prose(table: Sequence[Sequence[Cell]], column: int) -> bool:
    counts = [sum(map(len, row[column].lines)) for row in table if column < len(row)]
    return bool(counts) and median(counts) > _PROSE


def _are_rows(heads: Sequence[Sequence[Cell]]) -> bool:
    """Return whether most headings of values are numbers, and no years."""
    texts = [cell.text({}) for row in heads for cell in row][1:]
    numbers = [
        one
        for one in texts
        if re.match(r"[<>±−–-]?\d", one) and not re.match(r"(?:19|20)\d\d\b", one)
    ]
    return 2 * len(numbers) > len(texts)
