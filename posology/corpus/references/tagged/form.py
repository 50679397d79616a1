"""A format of tagged lines, and its reader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from posology.corpus.items import Item
from posology.corpus.pubmed.record import Parsed
from posology.corpus.references import entries, fields
from posology.corpus.references.entries import Values
from posology.corpus.references.tagged.lines import Syntax, tagged


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """A format of tagged lines whose tags are fields of a reference."""

    #: name of the collection
    source: str
    syntax: Syntax
    #: tags by field, the most telling first
    tags: Mapping[str, Sequence[str]]
    #: stands at the beginning of such a text
    start: re.Pattern[str]
    #: fields of which each line is a value
    lines: frozenset[str] = frozenset()

    def begins(self, start: str) -> bool:
        """Return whether a text is in this format, by its beginning."""
        return self.start.search(start) is not None

    def read(self, path: Path, *, after: int = 0) -> Iterator[Item]:
        """Return the references of one file; see :mod:`posology.corpus.items`. Places are numbers of lines."""
        return entries.items(self.entries, self.build, path, after=after)

    def count(self, path: Path) -> int:
        """Return the number of references, up to where the file can be read."""
        return entries.count(self.entries, path)

    def entries(self, path: Path) -> Iterator[entries.Entry]:
        """Yield the entries of one file."""
        return tagged(path, self.syntax)

    def build(self, values: Values, path: Path) -> Parsed:
        """Return the reference of an entry."""
        return fields.parsed(self.fields(values), path, source=self.source)

    def fields(self, values: Values) -> dict[str, list[str]]:
        """Return an entry's values by field. An abstract is that of one tag, all of its values."""
        found = {
            name: [value for tag in tags for value in values.get(tag, ())]
            for name, tags in self.tags.items()
        }
        found["text"] = fields.first_body(values.get(tag, ()) for tag in self.tags["text"])
        for name in self.lines:
            found[name] = [line for value in found[name] for line in value.split("\n")]
        return found
