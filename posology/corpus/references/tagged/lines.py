"""Entries of tagged lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from posology.corpus.decoding import Lines, TooLong, text_lines
from posology.corpus.references.entries import Entry
from posology.types import UNREADABLE

#: characters of one entry
MAX_ENTRY = 5_000_000
#: characters of a line in a message
_SHOWN = 40
#: ends of a text that is whole
_STOPS = (".", "!", "?", ")", "]", "\n", "\r")


@dataclass(frozen=True, kw_only=True, slots=True)
class Syntax:
    """How a format writes its tags."""

    #: groups: tag and value
    tag: re.Pattern[str]
    #: tag that begins an entry
    first: str
    #: tag that ends an entry; ``None``: the next one that begins does
    last: str | None = None
    #: the same as :attr:`tag` in files whose spaces were changed, which is seen at the tags that begin and end an entry
    loose: re.Pattern[str] | None = None
    #: the format's tags, if others are reported; of a loose file only these are tags. Empty: any
    known: frozenset[str] = frozenset()
    #: tags of texts that a line might have been torn from
    texts: frozenset[str] = frozenset()
    #: tags outside of entries
    outside: frozenset[str] = frozenset()
    #: whether databases and searches are named before the first entry, which is passed over
    preface: bool = False
    #: whether a tag behind a blank line begins an entry
    blank_ends: bool = False
    #: begins a line behind a blank one that still belongs to the entry
    resumes: re.Pattern[str] = re.compile("")
    #: a tag that every entry ends with, as far as it was saved whole; ``None``: none is known
    closing: str | None = None


@dataclass(slots=True)
class _Open:
    """An entry that is being read."""

    line: int
    values: dict[str, list[str]] = field(default_factory=dict)
    #: lines of the last value
    parts: list[str] = field(default_factory=list)
    #: its tag
    tag: str = ""
    #: the line before is blank
    blank: bool = False
    remarks: list[str] = field(default_factory=list)

    def add(self, tag: str, value: str) -> None:
        """Begin a value."""
        self._join()
        self.tag, self.blank = tag, False
        self.parts = [value]
        self.values.setdefault(tag, []).append(value)

    def go_on(self, line: str) -> None:
        """Go on with the last value."""
        self.parts.append(line)
        self.blank = False

    def closed(self) -> Entry:
        """Return the entry as it is now."""
        self._join()
        return Entry(line=self.line, values=self.values, remarks=tuple(self.remarks))

    def _join(self) -> None:
        if len(self.parts) > 1:
            self.values[self.tag][-1] = "\n".join(self.parts)


def tagged(path: Path, syntax: Syntax) -> Iterator[Entry]:
    """Yield the entries of a file. Lines without a tag continue the value before.

    Lines outside of entries are skipped if a tag ends an entry, and before the first one of a database, since databases
    write numbers, links and searches there; others are reported: a continuation may have been torn off. An entry that a file ends within is
    reported, not read: half an abstract may say the contrary of the whole.
    """
    with text_lines(path) as lines:
        yield from _Reader(lines, syntax).entries()


class _Reader:
    def __init__(self, lines: Lines, syntax: Syntax) -> None:
        self._lines = lines
        self._syntax = syntax
        self._loose = False
        self._entry: _Open | None = None
        #: lines outside of entries, since the last one: the first, how many, and how it begins
        self._lost: tuple[int, int, str] | None = None
        self._some = False

    def entries(self) -> Iterator[Entry]:
        lines, line = self._lines, ""
        while True:
            if self._entry is None:
                lines.room = MAX_ENTRY
            try:
                line = next(lines)
            except StopIteration:
                break
            except TooLong:
                yield Entry(
                    line=self._entry.line if self._entry else lines.number,
                    reason=f"longer than {MAX_ENTRY:,} characters, or one of its lines is too long",
                )
                self._entry = None
                continue
            found = self._tag(line)
            if found is None:
                yield from self._without(line)
            else:
                yield from self._with(*found)
        yield from self._end(line)

    def _tag(self, line: str) -> tuple[str, str] | None:
        """Return a line's tag and value; ``None``: it has none."""
        syntax = self._syntax
        if found := syntax.tag.match(line):
            tag, value = found[1], (found[2] or "").strip()
            if tag == syntax.first:
                self._loose = False
            return tag, value
        if syntax.loose is None or not (found := syntax.loose.match(line)):
            return None
        tag, value = found[1], found[2].strip()
        if tag == syntax.first:
            self._loose = True
        ends = tag == syntax.last and not value
        known = not syntax.known or tag in syntax.known
        return (tag, value) if ends or (self._loose and known) else None

    def _with(self, tag: str, value: str) -> Iterator[Entry]:
        syntax, entry = self._syntax, self._entry
        if tag == syntax.last:
            yield from self._close()
            return
        if entry is not None and (tag == syntax.first or (entry.blank and syntax.blank_ends)):
            yield from self._close()
            entry = None
        if tag in syntax.outside:
            return
        if entry is None:
            self._some = True
            yield from self._found_lost()
            self._lines.room = MAX_ENTRY - len(value)
            entry = self._entry = _Open(line=self._lines.number)
        if syntax.known and tag not in syntax.known and entry.tag in syntax.texts:
            # it may be a line of the text before
            entry.remarks.append(
                f"a line that begins {tag!r} behind a text is no known field: not read"
            )
            entry.go_on(UNREADABLE)
        entry.add(tag, value)

    def _without(self, line: str) -> Iterator[Entry]:
        syntax, entry = self._syntax, self._entry
        shown = line.strip()
        if entry is None:
            if shown and syntax.last is None and (self._some or not syntax.preface):
                first, count, text = self._lost or (self._lines.number, 0, shown)
                self._lost = first, count + 1, text
        elif not shown:
            entry.blank = True
        elif not entry.blank or syntax.last is not None or syntax.resumes.match(line):
            entry.go_on(shown)
        else:
            yield from self._close()
            yield from self._without(line)

    def _close(self) -> Iterator[Entry]:
        if self._entry is not None:
            yield self._entry.closed()
        self._entry = None

    def _found_lost(self) -> Iterator[Entry]:
        if self._lost is not None and self._some:
            first, count, text = self._lost
            lines = "a line stands" if count == 1 else f"{count:,} lines stand"
            yield Entry(
                line=first, reason=f"{lines} outside of a record: not read ({text[:_SHOWN]!r})"
            )
            self._lost = None

    def _end(self, line: str) -> Iterator[Entry]:
        syntax, entry = self._syntax, self._entry
        if entry is None:
            yield from self._found_lost()
            return
        if syntax.last is not None:
            whole = False
        elif syntax.closing is not None:
            whole = syntax.closing in entry.values or line.endswith(("\n", "\r"))
        else:
            whole = line.endswith(_STOPS) or entry.tag not in syntax.texts
        if whole:
            yield from self._close()
            return
        last = syntax.last or syntax.closing
        ends = f"before the record's last field, {last}" if last else "within a sentence"
        yield Entry(line=entry.line, reason=f"the file ends {ends}: fetch it again")
