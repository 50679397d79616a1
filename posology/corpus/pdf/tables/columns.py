"""Tables whose columns are parted by space: those with rules below their headings, and those without any."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from posology.corpus.pdf.process import Rule, Word
from posology.corpus.pdf.tables.cells import Cell
from posology.corpus.pdf.tables.rows import BodyLine, is_banded, rows
from posology.corpus.pdf.tables.shapes import FIGURE, Chunk, Refused, Spaces, TextLine, split

#: lines of headings
_HEADS = 8
#: distance of the lines of one heading, in sizes of type
_LEADING = 1.35
#: points between a heading and the columns beside it
_MARGIN = 3.0


@dataclass(frozen=True, slots=True)
class Column:
    """Where the words of a column stand."""

    x0: float
    x1: float

    def meets(self, chunk: Chunk) -> bool:
        """Return whether words stand in it."""
        return chunk.x0 < self.x1 and chunk.x1 > self.x0


def columns_of(lines: Sequence[TextLine], spaces: Spaces) -> list[Column]:
    """Return the columns of a body.

    Raises:
        Refused: there are not two, or the space between two of them is narrow.
    """
    parts = [one for line in lines if len(some := line.chunks(spaces)) > 1 for one in some]
    columns: list[Column] = []
    for one in sorted(parts, key=lambda one: one.x0):
        if columns and one.x0 <= columns[-1].x1:
            columns[-1] = Column(columns[-1].x0, max(columns[-1].x1, one.x1))
        else:
            columns.append(Column(one.x0, one.x1))
    if len(columns) < 2:
        raise Refused("one column")
    if any(two.x0 - one.x1 < spaces.gutter for one, two in pairwise(columns)):
        raise Refused("columns that are too near")
    return columns


def body_line(line: TextLine, columns: Sequence[Column], spaces: Spaces) -> BodyLine:
    """Return a line of the body with its cells.

    Raises:
        Refused: words cross columns, or are apart within one.
    """
    chunks = line.chunks(spaces)
    if len(chunks) == 1 and sum(one.meets(chunks[0]) for one in columns) > 1:
        return BodyLine(line.base, line.size, over=chunks[0])
    cells: dict[int, list[Chunk]] = {}
    for chunk in chunks:
        cells.setdefault(_only(chunk, columns), []).append(chunk)
    return BodyLine(line.base, line.size, {i: _joined(some, spaces) for i, some in cells.items()})


def body(
    sections: Sequence[Sequence[TextLine]], columns: Sequence[Column], spaces: Spaces
) -> list[list[Cell]]:
    """Return the rows of a body, of which rules part the sections."""
    lines = [[body_line(one, columns, spaces) for one in some] for some in sections]
    lines = [some for some in lines if some]
    return rows(lines, len(columns), banded=is_banded(lines), merged=False)


def heads(
    lines: Sequence[TextLine], columns: Sequence[Column], spaces: Spaces, spans: Sequence[Rule]
) -> list[list[Cell]]:
    """Return the rows of headings.

    Args:
        lines: of the headings, from top to bottom.
        columns: of the body.
        spaces: widths of gaps.
        spans: rules below headings that span columns.

    Raises:
        Refused: it is not certain to which columns a heading belongs.
    """
    if not 0 < len(lines) <= _HEADS:
        raise Refused("no headings, or too many lines of them")
    if not spans:
        own = _stacked(lines, columns, spaces)
        _check_stacks(own, columns)
        return [[Cell(lines=[one.words for _, one in own[i]]) for i in range(len(columns))]]
    at = spans[0].y0
    if any(abs(one.y0 - at) > 2 for one in spans):
        raise Refused("spanning headings of several levels")
    upper = [line for line in lines if line.base < at]
    lower = [line for line in lines if line.base >= at]
    covered = [_covered(rule, columns) for rule in spans]
    if not lower or not upper:
        raise Refused("spanning headings without headings")
    inside: list[list[Chunk]] = [[] for _ in spans]
    outside: list[TextLine] = []
    for line in upper:
        rest: list[Word] = []
        for chunk in line.chunks(spaces):
            over = [i for i, rule in enumerate(spans) if chunk.x0 < rule.x1 and chunk.x1 > rule.x0]
            if not over:
                rest += chunk.words
            elif len(over) > 1 or not _within(chunk, spans[over[0]]):
                raise Refused("a heading that crosses a rule")
            else:
                inside[over[0]].append(chunk)
        if rest:
            outside.append(TextLine(words=rest, base=line.base, size=line.size, parts=1))
    below = _stacked(lower, columns, spaces)
    above = _stacked(outside, columns, spaces)
    under = [[(at + len(upper), chunk) for at, chunk in some] for some in below]
    spanned = frozenset(column for some in covered for column in some)
    _check_stacks([[*one, *two] for one, two in zip(above, under, strict=True)], columns, spanned)
    return _levels(inside, covered, above, below)


def _levels(
    inside: Sequence[Sequence[Chunk]],
    covered: Sequence[range],
    above: Sequence[Sequence[tuple[int, Chunk]]],
    below: Sequence[Sequence[tuple[int, Chunk]]],
) -> list[list[Cell]]:
    first, second = list[Cell](), list[Cell]()
    for i in range(len(above)):
        over = [j for j, some in enumerate(covered) if i in some]
        if not over:
            first.append(Cell(lines=[one.words for _, one in (*above[i], *below[i])], down=2))
            continue
        if above[i] or not below[i] or not inside[over[0]]:
            raise Refused("a spanning heading without headings")
        if i == covered[over[0]].start:
            first.append(
                Cell(lines=[one.words for one in inside[over[0]]], across=len(covered[over[0]]))
            )
        second.append(Cell(lines=[one.words for _, one in below[i]]))
    return [first, second]


def _covered(rule: Rule, columns: Sequence[Column]) -> range:
    """Return the columns above which a rule is."""
    some = [i for i, one in enumerate(columns) if one.x0 < rule.x1 and one.x1 > rule.x0]
    slack = 4.0
    if not some or 0 in some:
        raise Refused("a rule below no heading of values")
    if any(columns[i].x0 < rule.x0 - slack or columns[i].x1 > rule.x1 + slack for i in some):
        raise Refused("a rule that ends within a column")
    return range(some[0], some[-1] + 1)


def _within(chunk: Chunk, rule: Rule) -> bool:
    return chunk.x0 >= rule.x0 - 4 and chunk.x1 <= rule.x1 + 4


def _stacked(
    lines: Sequence[TextLine], columns: Sequence[Column], spaces: Spaces
) -> list[list[tuple[int, Chunk]]]:
    """Return the parts of each column's heading, with the numbers of their lines."""
    own: list[list[tuple[int, Chunk]]] = [[] for _ in columns]
    for number, line in enumerate(lines):
        chunks = line.chunks(spaces)
        places = _by_count(chunks, columns)
        cells: dict[int, list[Chunk]] = {}
        for i, chunk in enumerate(chunks):
            cells.setdefault(places[i] if places else _only(chunk, columns), []).append(chunk)
        for column, some in cells.items():
            own[column].append((number, _joined(some, spaces)))
    return own


def _by_count(chunks: Sequence[Chunk], columns: Sequence[Column]) -> Sequence[int]:
    """Return the column of each heading of a line that has one for each; empty: it has not.

    A heading may stand beside the values of its column, but not beyond those of the next.
    """
    width = len(columns)
    for first in (0, 1):
        if len(chunks) != width - first:
            continue
        places = range(first, width)
        if all(
            (i == 0 or chunk.x0 > columns[i - 1].x1)
            and (i + 1 == width or chunk.x1 < columns[i + 1].x0)
            for i, chunk in zip(places, chunks, strict=True)
        ):
            return places
    return ()


def _check_stacks(
    own: Sequence[Sequence[tuple[int, Chunk]]],
    columns: Sequence[Column],
    spanned: frozenset[int] = frozenset(),
) -> None:
    """Check that no heading spans columns unseen: one whose next line would have fitted behind it, while the column beside it has none.

    Raises:
        Refused: one may.
    """
    if not all(own[1:]):
        raise Refused("a column without heading")
    free = [i for i in range(1, len(own)) if i not in spanned]
    deep = max(number for parts in own for number, _ in parts)
    first = [i for i in free if deep and any(at == 0 for at, _ in own[i])]
    if len(first) > 1 and all(i + 1 in free and _is_short(0, own[i + 1]) for i in first):
        raise Refused("headings in turn, as over two columns each")
    for i in free:
        parts, beside = own[i], [own[j] for j in (i - 1, i + 1) if j in free]
        if not any(_is_short(line, some) for line, _ in parts[:-1] for some in beside):
            continue
        left = max([columns[i - 1].x1, *(chunk.x1 for _, chunk in own[i - 1])]) + _MARGIN
        right = max(chunk.x1 for _, chunk in parts) + _MARGIN
        if i + 1 < len(columns):
            right = min([columns[i + 1].x0, *(chunk.x0 for _, chunk in own[i + 1])]) - _MARGIN
        widest = max([right - left, *(chunk.x1 - chunk.x0 for _, chunk in parts)])
        for (_, one), (_, two) in pairwise(parts):
            ends = one.x0 - two.x0, one.x1 - two.x1, (one.x0 + one.x1 - two.x0 - two.x1) / 2
            fits = one.x1 - one.x0 + two.words[0].x1 - two.words[0].x0 < widest
            size, apart = two.words[0].main.size, two.words[0].main.base - one.words[0].main.base
            crosses = (
                apart > _LEADING * size
                or one.x0 < left
                or one.x1 > right
                or min(map(abs, ends)) > 1
            )
            if two.text[0] not in "([" and (fits or crosses):
                raise Refused("a heading that may span columns")


def _is_short(line: int, parts: Sequence[tuple[int, Chunk]]) -> bool:
    """Return whether a heading has nothing in a line, and something below."""
    return all(at != line for at, _ in parts) and any(at > line for at, _ in parts)


def _only(chunk: Chunk, columns: Sequence[Column]) -> int:
    some = [i for i, one in enumerate(columns) if one.meets(chunk)]
    if len(some) != 1:
        raise Refused("words across columns" if some else "words between columns")
    return some[0]


def _joined(chunks: Sequence[Chunk], spaces: Spaces) -> Chunk:
    if any(two.x0 - one.x1 > spaces.gutter for one, two in pairwise(chunks)):
        raise Refused("words that are apart within a column")
    return Chunk([word for one in chunks for word in one.words])


def first_body(lines: Sequence[TextLine], spaces: Spaces) -> int:
    """Return the number of the first line below headings that no rule parts from the body.

    Raises:
        Refused: nothing tells headings from the first row.
    """
    bold = [all(word.bold for word in line.words) for line in lines]
    if bold[0]:
        count = next((i for i, one in enumerate(bold) if not one), len(lines))
        values = [split(line.words, spaces.space)[1:] for line in lines[count : count + 1]]
        if count < len(lines) and not any(bold[count:]) and values[0]:
            return count
        raise Refused("bold lines that may be headings or groups")
    for i, line in enumerate(lines):
        values_of = line.chunks(spaces)[1:]
        if any(FIGURE.match(one.text) and one.text[0] not in "([" for one in values_of):
            if i == 0 or any(len(one.chunks(spaces)) < 2 for one in lines[:i]):
                break
            return i
    raise Refused("no headings that differ from rows")


def numeric(cells: Sequence[Sequence[Cell]]) -> bool:
    """Return whether a column of values has numbers alone."""
    return any(_numbers(cells, column) for column in range(1, max(map(len, cells), default=0)))


def _numbers(cells: Sequence[Sequence[Cell]], column: int) -> bool:
    texts = list(_texts(cells, column))
    return len(texts) > 1 and all(map(FIGURE.match, texts))


def _texts(cells: Sequence[Sequence[Cell]], column: int) -> Iterator[str]:
    for row in cells:
        if column < len(row) and row[column].lines:
            yield Chunk(row[column].lines[0]).text
