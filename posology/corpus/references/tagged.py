"""Entries of tagged lines: MEDLINE's format and RIS."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from posology.corpus.decoding import TooLong, text_lines
from posology.corpus.references.entries import Entry

#: characters of one entry
MAX_ENTRY = 5_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Syntax:
    """How a format writes its tags."""

    #: groups: tag and value
    tag: re.Pattern[str]
    #: tag that begins an entry
    first: str
    #: tag that ends an entry; ``None``: a blank line does
    last: str | None
    #: a tag that every entry ends with, as far as it was saved whole; ``None``: the same as :attr:`last`
    closing: str


@dataclass(slots=True)
class _Open:
    """An entry that is being read."""

    line: int
    values: dict[str, list[str]] = field(default_factory=dict)
    #: lines of the last value
    parts: list[str] = field(default_factory=list)
    _last: list[str] = field(default_factory=list)

    def add(self, tag: str, value: str) -> None:
        """Begin a value."""
        self._join()
        self.parts = [value]
        self.values.setdefault(tag, []).append(value)
        self._last = self.values[tag]

    def closed(self) -> Entry:
        """Return the entry as it is now."""
        self._join()
        return Entry(line=self.line, values=self.values)

    def _join(self) -> None:
        if len(self.parts) > 1:
            self._last[-1] = "\n".join(self.parts)


def tagged(path: Path, syntax: Syntax) -> Iterator[Entry]:
    """Yield the entries of a file. Lines without a tag continue the value before; others outside of entries are skipped.

    An entry that a file ends within is reported, not read: half an abstract may say the contrary of the whole.
    """
    entry: _Open | None = None
    line = ""
    with text_lines(path) as lines:
        while True:
            if entry is None:
                lines.room = MAX_ENTRY
            try:
                line = next(lines)
            except StopIteration:
                break
            except TooLong:
                yield Entry(
                    line=entry.line if entry else lines.number,
                    reason=f"longer than {MAX_ENTRY:,} characters, or one of its lines is too long",
                )
                entry = None
                continue
            found = syntax.tag.match(line)
            if found is None:
                if not line.strip():
                    if entry is not None and syntax.last is None:
                        yield entry.closed()
                        entry = None
                elif entry is not None:
                    entry.parts.append(line.strip())
                continue
            tag, value = found[1], found[2].strip()
            if tag == syntax.last:
                if entry is not None:
                    yield entry.closed()
                entry = None
                continue
            if entry is not None and tag == syntax.first:
                yield entry.closed()
                entry = None
            if entry is None:
                lines.room = MAX_ENTRY - len(line)
                entry = _Open(line=lines.number)
            entry.add(tag, value)
    if entry is None:
        return
    if syntax.last is not None:
        whole = False
    else:
        whole = syntax.closing in entry.values or line.endswith(("\n", "\r"))
    if whole:
        yield entry.closed()
    else:
        yield Entry(
            line=entry.line,
            reason=f"the file ends before the record's last field, {syntax.closing}: fetch it again",
        )
