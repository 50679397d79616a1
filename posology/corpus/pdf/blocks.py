"""Paragraphs of a document: its lines in reading order are put together, over columns and pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise
from statistics import median

from posology.corpus.pdf.layout import Line

#: characters and lines of a heading
LONGEST_HEADING = 120
HEADING_LINES = 3
#: blocks, rows of tables among them, that may stand within a paragraph
BETWEEN = 60
#: lines of a block by which its width is known
_WIDTH_LINES = 3
#: type that differs by more is another's
_OTHER_SIZE = 0.07
#: type of a heading that is not bold, in heights of the text's
_LARGER = 1.1
#: distance of two lines of one paragraph, in usual distances
_LEADING = 1.3
#: the same of lines that are far from each other
_SAME = 1.05
#: the same in heights of type, where no usual distance is known
_HEIGHTS = 1.35

_ENDED = re.compile(r"""[.!?…:;]["'”’»)\]\d,^–-]*\Z""")
_STOPPED = re.compile(r"""[.!?…]["'”’»)\]\d,^–-]*\Z""")
_ITEM = re.compile(r"[•◦‣▪●○■□·]\s?|[–—-]\s|\(?\d{1,3}[.)]\s|\[\d{1,3}\]\s?|\(?[a-zA-Z][.)]\s")
_SIGN = re.compile(r"[•◦‣▪●○■□·]")
#: headings in the type of the text are known by their names
_NAMED = re.compile(
    r"(?:(?:\d+|[IVX]+)(?:\.\d+)*\.?\s+)?(?:abstract|summary|introduction|background|aims?|objectives?|"
    r"(?:patients|materials?|subjects) and methods|methods?|results(?: and discussion)?|findings|discussion|"
    r"conclusions?|limitations|references|bibliography|literature cited|acknowledge?ments?|funding|"
    r"competing interests|conflicts? of interest|appendix)",
    re.IGNORECASE,
)


class Role(Enum):
    """Kind of a block."""

    TEXT = auto()
    #: names what follows
    HEADING = auto()
    #: a row of a table
    ROW = auto()


@dataclass(slots=True)
class Block:
    """Lines that belong together."""

    lines: list[Line]
    role: Role = Role.TEXT

    @property
    def size(self) -> float:
        """Return the height of its type, points."""
        return median(line.size for line in self.lines)

    @property
    def bold(self) -> bool:
        """Return whether all of it is bold."""
        return all(line.bold for line in self.lines)

    @property
    def aside(self) -> bool:
        """Return whether it is beside the text of its page."""
        return self.lines[0].aside

    @property
    def text(self) -> str:
        """Return its lines, each behind a space."""
        return " ".join(line.text for line in self.lines)


def body_size(lines: Iterable[Line]) -> float:
    """Return the height of type of most characters, points; 0: there are none."""
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[round(line.size, 1)] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def is_named(text: str) -> bool:
    """Return whether a text is the usual name of an article's section."""
    return _NAMED.fullmatch(text.rstrip(":. ")) is not None


def blocks(pages: Sequence[Sequence[Line]]) -> list[Block]:
    """Return blocks in reading order; none goes on over a column's end."""
    every = [line for page in pages for line in page]
    leading = _leading(every)
    found: list[Block] = []
    for line in every:
        last = found[-1] if found else None
        if last is None or line.cells > 1 or _apart(last, line, leading):
            role = Role.ROW if line.cells > 1 else Role.TEXT
            found.append(Block(lines=[line], role=role))
        else:
            last.lines.append(line)
    body = body_size(every)
    whole = [part for block in found for part in _by_width(block)]
    for block in whole:
        if block.role is Role.TEXT and not block.aside and _is_heading(block, body):
            block.role = Role.HEADING
    return whole


def paragraphs(blocks: Sequence[Block]) -> Iterator[Block]:
    """Yield blocks, those that go on in the next column or on the next page together.

    What is set between them there, such as a footnote, a caption or a table, comes behind the paragraph.
    """
    taken: set[int] = set()
    for i, block in enumerate(blocks):
        if i in taken:
            continue
        whole, last = block, i
        while (following := _following(whole, blocks, last, taken)) is not None:
            taken.add(following)
            whole = Block(lines=[*whole.lines, *blocks[following].lines])
            last = following
        yield whole


def _following(block: Block, blocks: Sequence[Block], last: int, taken: set[int]) -> int | None:
    """Return the number of the block that goes on with a paragraph; ``None``: it ends."""
    if block.role is not Role.TEXT or block.aside or _STOPPED.search(block.lines[-1].text):
        return None
    if not any(map(str.isalnum, block.text)):
        return None
    for i in range(last + 1, min(len(blocks), last + 1 + BETWEEN)):
        other = blocks[i]
        if other.role is Role.HEADING:
            return None
        if i not in taken and _alike(block, other) and any(map(str.isalnum, other.text)):
            return i if _goes_on(block, other, parted=i > last + 1) else None
    return None


def _alike(one: Block, other: Block) -> bool:
    return (
        other.role is Role.TEXT
        and not other.aside
        and one.bold == other.bold
        and abs(one.size - other.size) <= _OTHER_SIZE * one.size
        and one.lines[-1].turn == other.lines[0].turn
    )


def _goes_on(begun: Block, block: Block, *, parted: bool) -> bool:
    last, first = begun.lines[-1], block.lines[0]
    if _ITEM.match(first.text):
        return False
    elsewhere = (last.page, last.column) != (first.page, first.column)
    if last.text[-1:] in "-\u2010" or first.text[:1].islower():
        return elsewhere or parted
    return elsewhere and _fills(last, begun)


def _fills(line: Line, block: Block) -> bool:
    """Return whether a line is as long as the others of its column."""
    others = [one for one in block.lines if (one.page, one.column) == (line.page, line.column)]
    right, left = max(one.x1 for one in others), min(one.x0 for one in others)
    return len(others) > 1 and right - line.x1 < 0.15 * (right - left)


def _leading(lines: Sequence[Line]) -> dict[float, float]:
    """Return the usual distance of lines by their type, points."""
    found: dict[float, Counter[float]] = {}
    for one, other in pairwise(lines):
        if (one.page, one.column) == (other.page, other.column) and round(one.size) == round(
            other.size
        ):
            distance = round(other.base - one.base, 1)
            if 0.5 * one.size < distance < 3 * one.size:
                found.setdefault(round(one.size), Counter())[distance] += 1
    return {size: times.most_common(1)[0][0] for size, times in found.items() if times.total() > 9}


def _apart(block: Block, line: Line, leading: dict[float, float]) -> bool:
    """Return whether a line begins a new block, whatever the width of the lines."""
    last = block.lines[-1]
    if block.role is Role.ROW or (last.page, last.column) != (line.page, line.column):
        return True
    if last.bold != line.bold or abs(last.size - line.size) > _OTHER_SIZE * last.size:
        return True
    distance = line.base - last.base
    usual = leading.get(round(last.size))
    most = _HEIGHTS * last.size
    if usual is not None:
        # lines of a manuscript are far from each other
        most = max(min(_LEADING * usual, 2 * last.size), _SAME * usual)
    if not 0 < distance <= most:
        return True
    if _SIGN.match(line.text):
        return True
    if not _ENDED.search(last.text):
        return False
    if _ITEM.match(line.text):
        return True
    # a first line that is indented, or the next entry of a list whose lines are
    return abs(line.x0 - last.x0) > 0.5 * last.size


def _by_width(block: Block) -> Iterator[Block]:
    """Yield a block's parts: a line ends a part if the next line's first word would have fitted behind it."""
    if block.role is Role.ROW or len(block.lines) < 2:
        yield block
        return
    right = max(line.x1 for line in block.lines)
    part: list[Line] = []
    for line in block.lines:
        if part and _ends_early(part[-1], line, right, known=len(block.lines) >= _WIDTH_LINES):
            yield Block(lines=part)
            part = []
        part.append(line)
    yield Block(lines=part)


def _ends_early(last: Line, line: Line, right: float, *, known: bool) -> bool:
    room = right - last.x1 - 0.5 * last.size
    if room <= line.first:
        return False
    stopped = _ENDED.search(last.text) is not None
    begins = line.text[:1].isupper() or line.text[:1].isdigit()
    # where lines are centred or ragged, a capital is no sign
    centred = abs((last.x0 + last.x1) - (line.x0 + line.x1)) < last.size
    return stopped or (known and begins and not centred and room > line.first + 2 * last.size)


def _is_heading(block: Block, body: float) -> bool:
    text = block.text
    if len(block.lines) > HEADING_LINES or len(text) > LONGEST_HEADING:
        return False
    if not any(char.isalpha() for char in text) or _SIGN.match(text):
        return False
    if is_named(text):
        return True
    if _ENDED.search(text.rstrip("0123456789")) and not text.endswith("?"):
        return False
    if block.size < body * (1 - _OTHER_SIZE):
        return False
    return block.bold or block.size > _LARGER * body
