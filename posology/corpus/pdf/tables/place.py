"""Puts the rows of tables where their captions stand in the text of a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from posology.corpus.pdf.blocks import Block, Role
from posology.corpus.pdf.layout import Line, lines
from posology.corpus.pdf.process import Rule, Word
from posology.corpus.pdf.tables.cells import Found
from posology.corpus.pdf.tables.find import tables

#: tables that stay text which a remark names
_NAMED = 10
#: begins what stands for a table; no word of a file has it, since characters of private use are unreadable
_SIGN = "\ue000"


class Tables:
    """The tables of a document. A line of a sign stands for each until the text is put together."""

    def __init__(self) -> None:
        self._found: dict[str, Found] = {}
        #: label of each caption whose table stays text, and its first page
        self._refused: dict[str, int] = {}

    def lines(
        self, words: Sequence[Word], page: int, rules: Mapping[float, Sequence[Rule]]
    ) -> list[Line]:
        """Return the lines of a page, see :func:`~posology.corpus.pdf.layout.lines`.

        Args:
            words: of the page.
            page: counted from 1.
            rules: of a page that may have tables, by direction of writing.
        """
        every = list(tables(words, rules)) if rules else []
        certain = {
            self._sign(i): one
            for i, one in enumerate(one for one in every if isinstance(one, Found))
        }
        read = _with_signs(words, certain, page) if certain else None
        if read is None:
            certain = {}
        for one in every:
            if one not in certain.values():
                self._refused.setdefault(one if isinstance(one, str) else one.label, page)
        self._found |= certain
        return lines(words, page) if read is None else read

    @property
    def refused(self) -> str:
        """Return which tables stay text, as a sentence; empty: none that has a caption."""
        read = {one.label for one in self._found.values()}
        # a line of prose may look like the caption of a table that is read
        left = [
            f"{label} (page {page})" for label, page in self._refused.items() if label not in read
        ]
        if not left:
            return ""
        if len(left) == 1:
            return f"{left[0]} stays text: its rows and columns are not certain"
        more = f" and {len(left) - _NAMED:,} more" if len(left) > _NAMED else ""
        return (
            f"{len(left):,} of {len(left) + len(read):,} tables stay text, since their rows and columns are not certain: "
            f"{', '.join(left[:_NAMED])}{more}"
        )

    def inserted(self, blocks: Iterable[Block], known: Mapping[str, int]) -> list[Block]:
        """Return blocks with the caption, rows and notes of a table where its sign was.

        Args:
            blocks: of the document.
            known: words of the document, see :func:`~posology.corpus.pdf.lines.joined`.
        """
        read: list[Block] = []
        for block in blocks:
            line = block.lines[0]
            if (found := self._found.get(line.text)) is None:
                read.append(block)
            else:
                texts = found.lines(known)
                read += (Block(lines=[replace(line, text=text)], role=Role.ROW) for text in texts)
        return read

    def _sign(self, number: int) -> str:
        # letters: lines that differ in digits alone count as running heads
        digits = str(len(self._found) + number)
        return _SIGN + "".join(chr(ord("a") + int(one)) for one in digits)


def _with_signs(
    words: Sequence[Word], certain: Mapping[str, Found], page: int
) -> list[Line] | None:
    """Return the lines of a page with a sign for each table; ``None``: the tables are not certain."""
    taken = {id(word) for one in certain.values() for word in one.words}
    if len(taken) < sum(len(one.words) for one in certain.values()):
        # two tables have a word: neither is certain
        return None
    rest = [word for word in words if id(word) not in taken]
    read = lines([*rest, *(_stands(one, sign) for sign, one in certain.items())], page)
    return read if {line.text for line in read if _SIGN in line.text} == set(certain) else None


def _stands(found: Found, sign: str) -> Word:
    """Return a word as wide as a table."""
    like = found.caption[0][0]
    run = replace(like.main, text=sign, x0=found.x0, x1=max(found.x1, found.x0 + 1))
    return Word(runs=(run,), main=run, bold=False, turn=like.turn)
