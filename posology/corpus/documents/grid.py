"""Tables of XHTML's model, which JATS and HTML share, as lines: each row names its table, itself and its columns.

Cells that span rows or columns stand in each of them. A row with one cell alone names the group of the rows below. A blank cell
is left out, and a dash stays: unknown is never 0. What exceeds the bounds is counted, in a line with a sign of
:class:`~posology.corpus.gaps.Gaps`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from posology.text.quoting.rows import Row, Value, write

if TYPE_CHECKING:
    from lxml.etree import _Element

#: of one table: rows, columns, and characters of all lines
MAX_ROWS, MAX_COLUMNS, MAX_CHARACTERS = 2_000, 100, 1_000_000
#: words of a row's line, beyond which it goes on in another; characters of a name or a heading, and of a label
LINE_WORDS, NAME_CHARACTERS, LABEL_CHARACTERS = 100, 200, 80
#: label of a table that has none
UNLABELLED = "Table"
#: kind of gap
TOO_LARGE = "part of a table that is too large"

_STEP = " / "
_LABEL = re.compile(
    r"(?:(?:supplementa\w+|appendix|extended data|additional|web|online)\s+)?tables?\s+(?:[A-Z]{0,2}[.-]?\d[\d.]*(?:[-–]\d+)*[a-z]?|[IVX]+)\b",
    re.IGNORECASE,
)
_INDENT = re.compile(r"[ \t\r\n]*[\u00a0\u2000-\u200a\u3000]")
_INDENTED = re.compile(r"(?:padding-left|margin-left|text-indent)\s*:\s*(?!0)[\d.]", re.IGNORECASE)
#: of a cell that is no heading
_FIGURE = re.compile(r"[-−–+<>=≤≥±]?\s?[\d.]")


@dataclass(frozen=True, slots=True, eq=False)
class _Cell:
    text: str = ""
    across: int = 1
    down: int = 1
    indented: bool = False

    def holds(self, other: _Cell) -> bool:
        """Return whether a group is within this one, by how they are set."""
        return other.indented > self.indented or other.across < self.across


_BLANK = _Cell()


@dataclass(frozen=True, slots=True)
class _Line:
    """The cells of a row by their columns."""

    cells: Sequence[_Cell]
    #: whether its cells are those of headings
    head: bool
    #: columns whose cell began in a row above
    carried: frozenset[int]

    @property
    def own(self) -> list[_Cell]:
        """Cells with text that begin here, each once."""
        own = (one for i, one in enumerate(self.cells) if one.text and i not in self.carried)
        return list(dict.fromkeys(own))

    @property
    def group(self) -> _Cell | None:
        """The cell that names the group of the rows below; ``None``: the row has values."""
        own = self.own
        if len(own) != 1 or len(self.cells) == 1 or any(self.cells[i].text for i in self.carried):
            return None
        return own[0] if own[0].across > 1 or self.cells[0] is own[0] else None

    @property
    def heads(self) -> bool:
        """Whether it has the headings of a table that marks none, if it is the first."""
        values = [one.text for one in self.cells[1:]]
        return bool(values) and all(one and not _FIGURE.match(one) for one in values)


@dataclass(slots=True)
class _Block:
    """Rows below the same headings."""

    heads: list[_Line] = field(default_factory=list)
    body: list[_Line] = field(default_factory=list)

    @property
    def width(self) -> int:
        """Number of columns."""
        return max((len(line.cells) for line in (*self.heads, *self.body)), default=0)

    def title(self, line: _Line) -> str:
        """Return the only heading of a row, over all columns; empty: it has others."""
        own = line.own
        over = len(own) == 1 and 1 < self.width == sum(cell is own[0] for cell in line.cells)
        return own[0].text if over else ""


@dataclass(slots=True)
class Grid:
    """A table that was read."""

    _blocks: list[_Block] = field(default_factory=lambda: [_Block()])
    #: rows and cells beyond the bounds
    _rows: int = 0
    _cells: int = 0

    @classmethod
    def read(
        cls,
        table: _Element,
        words: Callable[[_Element], str],
        shown: Callable[[_Element], bool] = lambda _: True,
    ) -> Grid:
        """Read a table.

        Args:
            table: an element ``table``.
            words: returns the text of a cell; line breaks count as spaces.
            shown: whether a row, a group of rows or a cell is shown.
        """
        grid = cls()
        for line in grid._lines(table, words, shown):
            last = grid._blocks[-1]
            if not line.head or (last.body and line.group):
                last.body.append(line)
            elif last.body:
                grid._blocks.append(_Block(heads=[line]))
            else:
                last.heads.append(line)
        last = grid._blocks[-1]
        if len(grid._blocks) > 1 and not last.body:
            # a row of sums
            grid._blocks[-2].body += grid._blocks.pop().heads
        return grid

    @property
    def headed(self) -> bool:
        """Whether its columns have headings, and rows below them."""
        return any(
            block.body and block.width > 1 and not all(map(block.title, block.heads))
            for block in self._blocks
        )

    def lines(self, label: str, sign: str) -> Iterator[str]:
        """Yield the rows as sentences, a note for each text of theirs that is none, and what was left out.

        Args:
            label: of the table; empty: it has none.
            sign: stands for what is left out, of the kind :data:`TOO_LARGE`.
        """
        label = label.strip(" .:")[:LABEL_CHARACTERS] or UNLABELLED
        characters = 0
        for block in self._blocks:
            if not block.body:
                block.heads, block.body = block.heads[:1], block.heads[1:]
            if not block.heads and block.body and block.body[0].heads:
                block.heads = [block.body.pop(0)]
            if not block.body:
                block.heads, block.body = [], block.heads
            rows = _Rows(block, label, sign)
            for lines in rows.lines():
                characters += sum(map(len, lines))
                if characters > MAX_CHARACTERS:
                    self._rows += len(block.body) - rows.done
                    break
                yield from lines
        if self._rows or self._cells:
            yield f"{label}: {self._rows:,} rows and {self._cells:,} cells are left out {sign}."

    def _lines(
        self, table: _Element, words: Callable[[_Element], str], shown: Callable[[_Element], bool]
    ) -> Iterator[_Line]:
        rows = [(row, row.getparent()) for row in table.iter("tr")]
        rows = [
            (row, part)
            for row, part in rows
            if part is not None
            and next(row.iterancestors("table"), None) is table
            and shown(row)
            and shown(part)
        ]
        # a foot may stand above the body
        rows.sort(key=lambda pair: pair[1] is not None and pair[1].tag == "tfoot")
        self._rows = max(0, len(rows) - MAX_ROWS)
        for part, some in groupby(rows[:MAX_ROWS], key=lambda pair: pair[1]):
            waiting: dict[int, tuple[_Cell, int]] = {}
            for row, _ in some:
                cells = [one for one in row.iterchildren("td", "th") if shown(one)]
                head = part is not None and part.tag == "thead"
                head = head or (bool(cells) and all(one.tag == "th" for one in cells))
                line = self._placed([_cell(one, words(one)) for one in cells], waiting, head=head)
                if line.own:
                    yield line

    def _placed(
        self, cells: Sequence[_Cell], waiting: dict[int, tuple[_Cell, int]], *, head: bool
    ) -> _Line:
        """Return cells at their columns, among those that span rows from above."""
        line = {column: cell for column, (cell, _) in waiting.items()}
        carried = frozenset(line)
        for column, (cell, left) in list(waiting.items()):
            if left > 1:
                waiting[column] = cell, left - 1
            else:
                del waiting[column]
        at = 0
        for cell in cells:
            while at in carried:
                at += 1
            end = min(at + cell.across, MAX_COLUMNS)
            self._cells += at >= MAX_COLUMNS and bool(cell.text)
            for column in range(at, end):
                line[column] = cell
                if cell.down > 1:
                    waiting[column] = cell, cell.down - 1
            at = max(at, end)
        width = max(line, default=-1) + 1
        return _Line([line.get(column, _BLANK) for column in range(width)], head, carried)


class _Rows:
    """The lines of a block."""

    def __init__(self, block: _Block, label: str, sign: str) -> None:
        self._label = label
        self._body = block.body
        self._width = block.width
        #: rows before the one whose lines come next
        self.done = 0
        #: headings over all columns, which name all rows
        self._titles = list(filter(None, map(block.title, block.heads)))
        columns = [line.cells for line in block.heads if not block.title(line)]
        named = [
            _path(cells[i].text for cells in columns if i < len(cells)) for i in range(self._width)
        ]
        self._stub = _clipped(named[0], sign) if self._width > 1 else ""
        self._headings = [_clipped(one, sign) or f"column {i}" for i, one in enumerate(named, 1)]

    def lines(self) -> Iterator[list[str]]:
        """Yield the lines of each row."""
        long = [one for one in self._titles if len(one) > NAME_CHARACTERS]
        self._titles = [one for one in self._titles if one not in long]
        yield [self._note(one) for one in long]
        #: groups of rows, the widest first; whether rows of the last are set off, and whether it has any
        groups: list[_Cell] = []
        within, used, named = None, True, _BLANK
        for number, line in enumerate(self._body, 1):
            self.done = number - 1
            new = line.group if self._width > 1 else None
            if new is None:
                # a name stands for the rows below it that have none
                first = named = line.cells[0] if line.cells[0].text else named
                within = first.indented if within is None else within
                if within and groups and not first.indented:
                    groups.pop()
                    within = None
                used = True
                yield self._row(line, [*groups, first], number)
                continue
            before, named = groups.copy(), _BLANK
            while groups and not groups[-1].holds(new):
                groups.pop()
            yield [] if used or groups == before else [self._note(_names(before))]
            if used := len(new.text) > NAME_CHARACTERS:
                yield [self._note(new.text)]
            else:
                groups.append(new)
            within = None
        yield [] if used else [self._note(_names(groups))]

    def _note(self, text: str) -> str:
        return f"{self._label}, note: {text}"

    def _row(self, line: _Line, path: Sequence[_Cell], number: int) -> list[str]:
        own = path[-1].text if self._width > 1 else ""
        named = 0 < len(own) <= NAME_CHARACTERS
        columns: dict[_Cell, list[int]] = {}
        for i, cell in enumerate(line.cells):
            if cell.text and (i or not named):
                columns.setdefault(cell, []).append(i)
        values = [Value(heading=self._over(some), text=cell.text) for cell, some in columns.items()]
        # a long name is a value below the heading of names
        stub = "" if len(own) > NAME_CHARACTERS else self._stub
        name = _path((*self._titles, stub, _names(path[:-1]), own if named else str(number)))
        return list(self._written(name, values)) if values else [self._note(name)]

    def _over(self, columns: Sequence[int]) -> str:
        """Return the headings of one value; of more than two columns the first and the last."""
        link = " and " if len(columns) == 2 else " to "
        ends = dict.fromkeys((self._headings[columns[0]], self._headings[columns[-1]]))
        return link.join(ends)

    def _written(self, name: str, values: Sequence[Value]) -> Iterator[str]:
        """Yield a row in lines of bounded length, each with its name."""
        held: list[Value] = []
        length = around = len(f"{self._label} {name}".split())
        for value in values:
            words = value.text.split()
            heading = len(value.heading.split())
            size = max(LINE_WORDS // 4, LINE_WORDS - around - heading)
            for start in range(0, len(words), size):
                part = words[start : start + size]
                if held and length + heading + len(part) > LINE_WORDS:
                    yield write(Row(label=self._label, name=name, values=held))
                    held, length = [], around
                held.append(Value(heading=value.heading, text=" ".join(part)))
                length += heading + len(part)
        yield write(Row(label=self._label, name=name, values=held))


def label_of(text: str) -> str:
    """Return the label of a table that a caption begins with; empty: it has none."""
    found = _LABEL.match(text)
    return found[0] if found else ""


def _cell(element: _Element, text: str) -> _Cell:
    return _Cell(
        text=text.strip(),
        across=_span(element.get("colspan"), MAX_COLUMNS) or 1,
        # 0: all that follow
        down=_span(element.get("rowspan"), MAX_ROWS) or MAX_ROWS,
        indented=_INDENTED.search(element.get("style") or "") is not None
        or _INDENT.match("".join(map(str, element.itertext()))) is not None,
    )


def _span(said: str | None, most: int) -> int:
    if not said or not re.fullmatch(r"\s*\d{1,9}\s*", said, re.ASCII):
        return 1
    return min(int(said), most)


def _path(texts: Iterator[str] | Sequence[str]) -> str:
    bare = (one.rstrip(" :") for one in texts)
    return _STEP.join(one for one, _ in groupby(filter(None, bare)))


def _names(groups: Sequence[_Cell]) -> str:
    return _path(one.text for one in groups)


def _clipped(text: str, sign: str) -> str:
    return text if len(text) <= NAME_CHARACTERS else text[:NAME_CHARACTERS] + sign
