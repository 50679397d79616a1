"""Tables whose columns upright rules part: cells are what rules enclose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from posology.corpus.pdf.process import Rule, Word
from posology.corpus.pdf.tables.cells import Cell
from posology.corpus.pdf.tables.rows import BodyLine, is_banded, rows
from posology.corpus.pdf.tables.shapes import NEAR, Chunk, Refused, TextLine, text_lines

#: rows, columns and rules of a table, and rows of headings
_ROWS, _COLUMNS, _RULES, _HEADS = 150, 40, 600, 4
#: points by which a word may reach over a rule
_OVER = 1.5


class RuledGrid:
    """The grid of a table's rules."""

    def __init__(
        self, level: Sequence[Rule], upright: Sequence[Rule], frame: Rule, bottom: float
    ) -> None:
        self._level = level
        self._upright = upright
        self.xs = _places([frame.x0, frame.x1, *(one.x0 for one in upright)])
        self.ys = _places([frame.y0, bottom, *(one.y0 for one in level)])
        if len(self.xs) > _COLUMNS or len(self.ys) > _ROWS or len(level) + len(upright) > _RULES:
            raise Refused("too many rules")
        self.width, self.height = len(self.xs) - 1, len(self.ys) - 1
        if self.width < 2 or self.height < 2:
            raise Refused("one column or row")
        #: the first row and column of the cell of each row and column, and the cells' ends
        self._first: dict[tuple[int, int], tuple[int, int]] = {}
        self._ends: dict[tuple[int, int], tuple[int, int]] = {}
        self._find()

    def _find(self) -> None:
        for i in range(self.height):
            for j in range(self.width):
                if (i, j) in self._first:
                    continue
                right = j + 1
                while right < self.width and not self._parted(i, right):
                    right += 1
                down = i + 1
                while down < self.height and not self._closed(down, j, right):
                    down += 1
                for row in range(i, down):
                    for column in range(j, right):
                        if (row, column) in self._first or (
                            column > j and self._parted(row, column)
                        ):
                            raise Refused("cells that are no rectangles")
                        if row > i and self._closed(row, column, column + 1):
                            raise Refused("cells that are no rectangles")
                        self._first[row, column] = i, j
                self._ends[i, j] = down, right

    def _parted(self, row: int, column: int) -> bool:
        """Return whether a rule is at the left of a cell."""
        x, y0, y1 = self.xs[column], self.ys[row], self.ys[row + 1]
        return any(
            abs(one.x0 - x) <= NEAR and one.y0 <= y0 + NEAR and one.y1 >= y1 - NEAR
            for one in self._upright
        )

    def _closed(self, row: int, column: int, end: int) -> bool:
        """Return whether a rule is above cells."""
        y, x0, x1 = self.ys[row], self.xs[column], self.xs[end]
        return any(
            abs(one.y0 - y) <= NEAR and one.x0 <= x0 + NEAR and one.x1 >= x1 - NEAR
            for one in self._level
        )

    def read(self, words: Sequence[Word]) -> tuple[list[list[Cell]], list[list[Cell]]]:
        """Return the rows of headings and of the body.

        Args:
            words: within the grid.

        Raises:
            Refused: words cross rules, or it is not certain which lines are a row.
        """
        held: dict[tuple[int, int], list[Word]] = {}
        for word in words:
            held.setdefault(self._cell_of(word), []).append(word)
        lines = {place: text_lines(some) for place, some in held.items()}
        heads = self._head_rows()
        if heads >= self.height:
            raise Refused("no rows below the headings")
        above = [self._row(i, lines) for i in range(heads)]
        return above, self._body(heads, words)

    def _cell_of(self, word: Word) -> tuple[int, int]:
        middle = word.main.base - 0.3 * word.main.size
        column = sum(x <= (word.x0 + word.x1) / 2 for x in self.xs) - 1
        row = sum(y <= middle for y in self.ys) - 1
        if (place := self._first.get((row, column))) is None:
            raise Refused("words outside of the grid")
        down, right = self._ends[place]
        if word.x0 < self.xs[place[1]] - _OVER or word.x1 > self.xs[right] + _OVER:
            raise Refused("words across a rule")
        if word.main.base > self.ys[down] + _OVER or middle < self.ys[place[0]]:
            raise Refused("words across a rule")
        return place

    def _head_rows(self) -> int:
        """Return the number of rows of headings: those down to which a spanning heading has headings below it."""
        count, grown = 1, True
        while grown and count <= _HEADS:
            grown = False
            for (i, _), (down, _) in self._ends.items():
                if i < count < down:
                    count, grown = down, True
            for (i, j), (down, right) in self._ends.items():
                if i < count == down and right - j > 1:
                    count, grown = count + 1, True
                    break
        if count > _HEADS:
            raise Refused("too many rows of headings")
        return count

    def _row(self, i: int, lines: dict[tuple[int, int], list[TextLine]]) -> list[Cell]:
        return [
            Cell(
                lines=[line.words for line in lines.get((i, j), ())],
                across=right - j,
                down=down - i,
            )
            for (row, j), (down, right) in self._ends.items()
            if row == i
        ]

    def _body(self, heads: int, words: Iterable[Word]) -> list[list[Cell]]:
        spanning = any(
            (down - i > 1 or 1 < right - j < self.width)
            for (i, j), (down, right) in self._ends.items()
            if i >= heads
        )
        if spanning:
            raise Refused("cells of the body that span others")
        inside = [word for word in words if word.main.base > self.ys[heads]]
        sections: list[list[BodyLine]] = [[] for _ in range(heads, self.height)]
        for line in text_lines(inside):
            places = [(self._cell_of(word), word) for word in line.words]
            row = places[0][0][0]
            if any(place[0] != row for place, _ in places):
                raise Refused("a line across a rule")
            if self._ends[row, 0][1] == self.width:
                sections[row - heads].append(BodyLine(line.base, line.size, over=Chunk(line.words)))
                continue
            parts = {
                j: Chunk([word for _, word in some])
                for (_, j), some in groupby(places, key=lambda one: one[0])
            }
            sections[row - heads].append(BodyLine(line.base, line.size, parts))
        sections = [some for some in sections if some]
        if len(sections) < self.height - heads:
            raise Refused("an empty row")
        return rows(sections, self.width, banded=is_banded(sections), merged=True)


def _places(values: Iterable[float]) -> list[float]:
    """Return places, those that are near each other as one."""
    places: list[float] = []
    for value in sorted(values):
        if not places or value - places[-1] > NEAR:
            places.append(value)
    return places
