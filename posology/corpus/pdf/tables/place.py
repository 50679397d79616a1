"""Puts the rows of tables where their captions stand in the text of a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from posology.corpus.pdf.blocks import Block, Role
from posology.corpus.pdf.layout import Line, lines
from posology.corpus.pdf.process import Rule, Word
from posology.corpus.pdf.tables.cells import Found
from posology.corpus.pdf.tables.find import tables

#: begins what stands for a table; no word of a file has it, since characters of private use are unreadable
_SIGN = "\ue000"


class Tables:
    """The tables of a document. A line of a sign stands for each until the text is put together."""

    def __init__(self) -> None:
        self._found: dict[str, Found] = {}

    def lines(
        self, words: Sequence[Word], page: int, rules: Mapping[float, Sequence[Rule]]
    ) -> list[Line]:
        """Return the lines of a page, see :func:`~posology.corpus.pdf.layout.lines`.

        Args:
            words: of the page.
            page: counted from 1.
            rules: of a page that may have tables, by direction of writing.
        """
        certain = (
            {self._sign(i): one for i, one in enumerate(tables(words, rules))} if rules else {}
        )
        if not certain:
            return lines(words, page)
        taken = {id(word) for one in certain.values() for word in one.words}
        if len(taken) < sum(len(one.words) for one in certain.values()):
            # two tables have a word: neither is certain
            return lines(words, page)
        rest = [word for word in words if id(word) not in taken]
        read = lines([*rest, *(_stands(one, sign) for sign, one in certain.items())], page)
        if {line.text for line in read if _SIGN in line.text} != set(certain):
            return lines(words, page)
        self._found |= certain
        return read

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


def _stands(found: Found, sign: str) -> Word:
    """Return a word as wide as a table."""
    like = found.caption[0][0]
    run = replace(like.main, text=sign, x0=found.x0, x1=max(found.x1, found.x0 + 1))
    return Word(runs=(run,), main=run, bold=False, turn=like.turn)
