"""Lines of a table's body become rows: which lines go on with a cell, and which name a group of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from posology.corpus.pdf.process import Word
from posology.corpus.pdf.tables.cells import Cell
from posology.corpus.pdf.tables.shapes import FIGURE, Chunk, Refused

#: distances of lines, in the least: up to the first they are of one row, from the second on of two
_TIGHT, _LOOSE = 1.15, 1.3
#: indentation, in heights of type
_INDENT = 0.35
#: share of the names that begin at one place, where names are set to the left
_LEFT = 0.5


@dataclass(slots=True)
class BodyLine:
    """A line of the body."""

    base: float
    size: float
    #: by column; that of names is 0
    cells: Mapping[int, Chunk] = field(default_factory=dict)
    #: it crosses columns, and is alone
    over: Chunk | None = None

    @property
    def name(self) -> Chunk | None:
        """Return what stands in the column of names."""
        return self.over or self.cells.get(0)

    @property
    def alone(self) -> bool:
        """Return whether it has a name and no values."""
        return self.over is not None or set(self.cells) == {0}

    @property
    def figures(self) -> set[int]:
        """Return the columns with values that are numbers; those in brackets may belong to the line above."""
        return {i for i, one in self.cells.items() if i and _is_figure(one)}

    @property
    def bracketed(self) -> bool:
        """Return whether it has no name, and all its values are in brackets."""
        return 0 not in self.cells and all(one.text[0] in "([" for one in self.cells.values())

    @property
    def lower(self) -> bool:
        """Return whether its name begins with a small letter or within a bracket."""
        return self.name is not None and (
            self.name.text[0].islower() or self.name.text[0] in "(&/–-"
        )


def rows(
    sections: Sequence[Sequence[BodyLine]], width: int, *, banded: bool, merged: bool
) -> list[list[Cell]]:
    """Return the rows of a body.

    Args:
        sections: lines between two rules each.
        width: number of columns.
        banded: whether each section is one row.
        merged: whether cells over all columns are so by rules.

    Raises:
        Refused: it is not certain which lines are one row.
    """
    left = _left(sections)
    alone = [line for some in sections for line in some if line.alone]
    apart = {line.over is not None if merged else _is_centred(line, left) for line in alone}
    if len(apart) > 1:
        raise Refused("groups that may be within others")
    if banded:
        return _kinds([_one_row(some) for some in sections], width, left)
    if len(sections) > 1 and not all(len(some) == 1 or _are_rows(some) for some in sections):
        raise Refused("lines between two rules that may be one row or several")
    near = _tight(sections)
    groups = [list(group) for some in sections for group in _groups(some, near)]
    if any(len(group) > 1 for group in groups):
        if all(map(_is_row, groups)):
            return _kinds(groups, width, left)
        if not all(map(_are_rows, groups)):
            raise Refused("lines that may be one row or several")
    return _kinds(list(_by_words([line for some in sections for line in some], left)), width, left)


def is_banded(sections: Sequence[Sequence[BodyLine]]) -> bool:
    """Return whether what stands between two rules is one row each."""
    single = sum(len(some) == 1 for some in sections)
    return len(sections) > 1 and 2 * single >= len(sections) and all(map(_is_row, sections))


def _is_figure(chunk: Chunk) -> bool:
    text = chunk.text
    return text[0] not in "([" and FIGURE.match(text) is not None


def _is_row(lines: Sequence[BodyLine]) -> bool:
    """Return whether lines may be one row: no column has two numbers, nor have all columns as many lines."""
    if len(lines) == 1:
        return True
    if any(line.over for line in lines):
        return False
    seen: set[int] = set()
    for line in lines:
        if seen & line.figures:
            return False
        seen |= line.figures
    bold = {line.name.bold for line in lines if line.name is not None}
    return len(bold) < 2 and len({frozenset(line.cells) for line in lines}) > 1


def _are_rows(lines: Sequence[BodyLine]) -> bool:
    """Return whether lines are rows for sure: numbers stand below each other, but for names of groups."""
    valued = [line for line in lines if not line.alone]
    return len(valued) > 1 and all(one.figures & two.figures for one, two in pairwise(valued))


def _one_row(lines: Sequence[BodyLine]) -> list[BodyLine]:
    if not _is_row(lines):
        raise Refused("lines between two rules that may be several rows")
    return list(lines)


def _tight(sections: Sequence[Sequence[BodyLine]]) -> float | None:
    """Return the greatest distance of lines of one row; ``None``: all lines are as far from each other."""
    gaps = sorted(two.base - one.base for some in sections for one, two in pairwise(some))
    if not gaps or gaps[-1] < _LOOSE * gaps[0]:
        return None
    near = _TIGHT * gaps[0]
    if any(near < gap < _LOOSE * gaps[0] for gap in gaps):
        return None
    return near


def _groups(lines: Sequence[BodyLine], near: float | None) -> Iterator[list[BodyLine]]:
    group: list[BodyLine] = []
    for line in lines:
        if group and (near is None or line.base - group[-1].base > near):
            yield group
            group = []
        group.append(line)
    if group:
        yield group


def _by_words(lines: Sequence[BodyLine], left: float | None) -> Iterator[list[BodyLine]]:
    """Yield rows of lines that are as far from each other: what they say must tell which go on with a cell."""
    row: list[BodyLine] = []
    off = [_is_off(line, left) for line in lines]
    for i, line in enumerate(lines):
        last = row[-1] if row else None
        if last is None:
            goes_on = False
        elif line.bracketed:
            goes_on = not last.alone and set(line.cells) <= {*last.cells}
        elif 0 not in line.cells and line.over is None:
            raise Refused("values without a name")
        elif line.alone and line.over is None and line.lower:
            # the first line of a row in small letters, or the end of the name above
            if last.over is not None or (last.alone and len(row) == 1):
                raise Refused("names that may be one")
            goes_on = True
        elif (
            line.lower
            and line.over is None
            and last.alone
            and last.over is None
            and not (off[i - 1] < off[i] <= min(off[i : i + 2]))
        ):
            raise Refused("a name that may go on with a group")
        elif (
            line.lower and line.over is None and not last.alone and not last.figures & line.figures
        ) or (
            not line.alone
            and not line.figures
            and set(last.cells) - set(line.cells)
            and not last.alone
        ):
            raise Refused("a row that may go on with the row above")
        else:
            goes_on = False
        if row and not goes_on:
            yield row
            row = []
        row.append(line)
    if row:
        yield row


def _left(sections: Sequence[Sequence[BodyLine]]) -> float | None:
    """Return where names begin that are set to the left; ``None``: they are not."""
    starts = [line.cells[0].x0 for some in sections for line in some if 0 in line.cells]
    if not starts:
        raise Refused("rows without names")
    least = min(starts)
    size = sections[0][0].size if sections[0] else 10.0
    # those that are set off, by one step or two
    steps = {round((start - least) / (0.2 * size)) for start in starts}
    if len(steps) > 3:
        return None
    return least


def _kinds(rows: Sequence[Sequence[BodyLine]], width: int, left: float | None) -> list[list[Cell]]:
    """Return the cells of rows; one without values must be a group of those below for sure."""
    table = []
    off = [_is_off(row[0], left) for row in rows]
    bold = [all(line.name.bold for line in row if line.name is not None) for row in rows]
    for i, row in enumerate(rows):
        alone = all(line.alone for line in row)
        if alone:
            names = [line.name.words for line in row if line.name is not None]
            inner = i + 1 < len(rows) and not all(line.alone for line in rows[i + 1])
            nested = i + 1 < len(rows) and off[i + 1] > off[i]
            set_apart = row[0].over is not None or (bold[i] and not all(bold))
            if not ((inner and (set_apart or nested)) or (nested and set_apart)):
                raise Refused("a name without values")
            blank = [Cell(lines=()) for _ in range(width - 1)]
            table.append([Cell(lines=names, indented=off[i] > 0), *blank])
            continue
        if not any(0 in line.cells for line in row):
            raise Refused("values without a name")
        cells = []
        for column in range(width):
            words: list[Sequence[Word]] = [
                line.cells[column].words for line in row if column in line.cells
            ]
            cells.append(Cell(lines=words, indented=column == 0 and off[i] > 0))
        table.append(cells)
    return table


def _is_centred(line: BodyLine, left: float | None) -> bool:
    return line.over is not None and left is not None and line.over.x0 > left + 2 * line.size


def _is_off(line: BodyLine, left: float | None) -> int:
    """Return by how many steps a row's name is set off."""
    if left is None or line.name is None or line.over is not None:
        return 0
    return int((line.name.x0 - left) > _INDENT * line.size)
