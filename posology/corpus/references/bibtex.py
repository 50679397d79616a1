"""Reader of BibTeX, also gzipped, through bibtexparser, an optional dependency."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from posology.corpus import decoding
from posology.corpus.items import Item, sentence
from posology.corpus.pubmed.record import Parsed
from posology.corpus.references import entries, fields
from posology.corpus.references.entries import Entry, Unreadable, Values
from posology.corpus.references.latex import LatexError, plain_of
from posology.errors import ReaderUnavailable
from posology.text import names

if TYPE_CHECKING:
    from bibtexparser.model import Block, Field, String

SUFFIXES = (".bib", ".bib.gz", ".bibtex")
#: characters of a file, which is held whole
MAX_CHARACTERS = 50_000_000

#: BibTeX's and BibLaTeX's fields by ours, the most telling first
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "text": ("abstract",),
    "title": ("title",),
    "pmid": ("pmid",),
    "authors": ("author",),
    "doi": ("doi",),
    "pmcid": ("pmcid", "pmc"),
    "journal": ("shortjournal", "journal", "journaltitle", "booktitle"),
    "date": ("date", "year"),
    # as Scopus calls its documents
    "types": ("type", "document_type"),
    "languages": ("language", "langid"),
    "notes": ("note", "annote", "annotation", "url"),
}
#: a character that LaTeX would read otherwise
_ESCAPED = re.compile(
    r"\{?\\(?P<sign>[_%&#$]|text(?:less|greater|underscore)(?![A-Za-z]))(?:\{\})?\}?|\$(?P<compared>[<>])\$"
)
_COMPARING = {"textless": "<", "textgreater": ">", "textunderscore": "_"}
_BRACES = str.maketrans("", "", "{}")
#: outside of entries
_ENTRY = re.compile(
    r"^[ \t]{0,8}[A-Za-z]{3,20}\s{0,3}[{(]\s{0,3}[^\s,{}=]{1,200},\s{0,99}[\w-]{1,40}\s{0,9}=",
    re.MULTILINE,
)
#: one part of a value that others are joined to by #
_PART = re.compile(r"\s*(?:(?P<name>[^\s#\"{}(),=%]+)|(?P<open>[\"{]))")
_MARK = re.compile(r"(?<!\\)[{}\"]")
_JOIN = re.compile(r"\s*#")
#: fields that name no string of a style's
_TEXTS = frozenset({"abstract", "title"})
#: strings within strings, and characters of a value that they make: a few lines can spell gigabytes
_DEPTH, _LONGEST = 10, 1_000_000
_TYPES = {"article": "journal article"}


def require() -> None:
    """Check that bibtexparser is installed.

    Raises:
        ReaderUnavailable: it is not.
    """
    decoding.require("bibtexparser", package="bibtexparser", extra="bibtex", files="BibTeX files")


def read(path: Path, *, after: int = 0) -> Iterator[Item]:
    """Return the references of one file; see :mod:`posology.corpus.items`. Places are numbers of lines.

    An abstract with a LaTeX command that is not known is a bad record.

    Raises:
        ReaderUnavailable: bibtexparser is not installed.
    """
    require()
    return entries.items(_entries, _build, path, after=after)


def count(path: Path) -> int:
    """Return the number of references; 0 if bibtexparser is not installed."""
    try:
        require()
    except ReaderUnavailable:
        return 0
    return entries.count(_entries, path)


def _build(values: Values, path: Path) -> Parsed:
    shown = dict(values)
    for name in ("text", "title", "journal"):
        try:
            shown[name] = [plain_of(text) for text in values.get(name, ())]
        except LatexError as error:
            known = fields.parsed(values, path, source="bibtex")
            return Parsed(id=known.id, reason=f"{_FIELDS[name][0]}: {error}")
    for name in ("doi", "pmid", "pmcid", "notes"):
        shown[name] = [_unescaped(text) for text in values.get(name, ())]
    shown["authors"] = [name for text in values.get("authors", ()) for name in _authors(text)]
    return fields.parsed(shown, path, source="bibtex")


def _unescaped(text: str) -> str:
    """Return a name or an address without the marks that LaTeX needs, such as a backslash before ``_``, and ``$<$``."""
    return _ESCAPED.sub(
        lambda found: found["compared"] or _COMPARING.get(found["sign"], found["sign"]), text
    )


def _authors(text: str) -> Iterator[str]:
    """Yield the names of a field; one that is not LaTeX as it stands, since no statement rests on it."""
    from bibtexparser.middlewares.names import (
        parse_single_name_into_parts,
        split_multiple_persons_names,
    )

    for name in split_multiple_persons_names(" ".join(text.split())):
        try:
            found = parse_single_name_into_parts(name, strict=True)
            parts = [
                plain_of(" ".join(words))
                for words in (found.von + found.last, found.first, found.jr)
            ]
        except Exception:  # noqa: BLE001 - whatever it raises is of one name
            yield names.group(name.translate(_BRACES))
            continue
        yield names.joined(*parts) if parts[1] else names.group(parts[0])


def _entries(path: Path) -> Iterator[Entry]:
    from bibtexparser.entrypoint import parse_string

    logging.getLogger("bibtexparser").setLevel(logging.CRITICAL)
    text = decoding.whole_text(path, MAX_CHARACTERS)
    if text is None:
        raise Unreadable(f"must have <= {MAX_CHARACTERS:,} characters")
    try:
        library = parse_string(text)
    except Exception as error:  # noqa: BLE001 - of a damaged file it lets anything through
        raise Unreadable(f"not BibTeX: {sentence(str(error)[:200])}") from None
    strings = _Strings({name.lower(): one for name, one in library.strings_dict.items()})
    last = 0
    for block in library.blocks:
        entry = _entry(block, last, strings)
        if entry is not None:
            last = entry.line
            yield entry


def _entry(block: Block, last: int, strings: _Strings) -> Entry | None:
    """Return what a block holds; ``None``: it is not an entry. Of two on one line the second counts as the next line's."""
    from bibtexparser.model import (
        DuplicateBlockKeyBlock,
        DuplicateFieldKeyBlock,
        ImplicitComment,
        ParsingFailedBlock,
    )
    from bibtexparser.model import (
        Entry as Reference,
    )

    line = max((block.start_line or 0) + 1, last + 1)
    key = True
    if isinstance(block, DuplicateBlockKeyBlock) and block.ignore_error_block is not None:
        block, key = block.ignore_error_block, False
    twice = False
    if isinstance(block, DuplicateFieldKeyBlock) and block.ignore_error_block is not None:
        # its values still have their marks
        block, twice = block.ignore_error_block, True
    if isinstance(block, ParsingFailedBlock):
        reason = " ".join(str(block.error).split())[:200] or "a brace or comma is missing"
        return Entry(line=line, reason=f"not a BibTeX entry: {sentence(reason)}")
    if isinstance(block, ImplicitComment) and _ENTRY.search(block.comment):
        return Entry(
            line=line, reason="text outside of entries that looks like one: is its @ missing?"
        )
    if not isinstance(block, Reference):
        return None
    given: dict[str, list[str]] = {}
    try:
        for field in block.fields:
            given.setdefault(field.key.lower(), []).append(_value(field, strings, raw=twice))
    except _NotValue as error:
        return Entry(line=line, reason=f"not a BibTeX entry: {error}")
    values = {
        name: [text for one in known for text in given.get(one, ())]
        for name, known in _FIELDS.items()
    }
    values["key"] = [block.key] if key else []
    values["types"].append(_TYPES.get(block.entry_type.lower(), ""))
    month, year = (given.get(name, [""])[0] for name in ("month", "year"))
    values["date"].insert(0, f"{year} {month.strip('{}')}")
    return Entry(line=line, values=values)


class _NotValue(ValueError):
    """The value of a field that is none, with the reason."""


class _Strings:
    """The strings that a file defines."""

    def __init__(self, given: Mapping[str, String]) -> None:
        """Begin with strings by their names in small letters."""
        self._given = given
        self._values: dict[tuple[str, int], str] = {}

    def value(self, name: str, depth: int) -> str | None:
        """Return what a string stands for within ``depth`` others; ``None``: it is not defined, or in too many.

        Raises:
            _NotValue: its value is none.
        """
        known = self._given.get(name)
        if known is None or depth == _DEPTH:
            return None
        # each once, although each may name another many times
        if (name, depth) not in self._values:
            self._values[name, depth] = _value(known, self, depth + 1)
        return self._values[name, depth]


def _value(field: Field | String, strings: _Strings, depth: int = 0, *, raw: bool = False) -> str:
    """Return a field's text: in braces or quotes, a number, a string's name, or several of them joined by ``#``.

    Args:
        field: what has the value.
        strings: of the file.
        depth: strings that it is in.
        raw: whether it still has its marks.
    """
    value = str(field.value)
    if field.enclosing != "no-enclosing" and not raw:
        return value
    parts: list[str] = []
    at = size = 0
    while True:
        match = _PART.match(value, at)
        if match is None:
            raise _NotValue(f"{field.key}: a comma, brace or quote is missing")
        at = match.end()
        if name := match["name"]:
            known = strings.value(name.lower(), depth)
            if known is None:
                # months, and journals that a style knows
                if field.key.lower() in _TEXTS and not name.isdigit():
                    raise _NotValue(f"{field.key}: the string {name[:40]!r} is not defined")
                parts.append(name)
            else:
                parts.append(known)
        else:
            end = _end(value, at, quoted=match["open"] == '"')
            parts.append(value[at : end - 1])
            at = end
        size += len(parts[-1])
        if size > _LONGEST:
            raise _NotValue(f"{field.key}: must have <= {_LONGEST:,} characters with its strings")
        if not value[at:].strip():
            return "".join(parts)
        joined = _JOIN.match(value, at)
        if joined is None:
            raise _NotValue(
                f"{field.key}: a comma or # is missing behind {value[:at].strip()[:40]!r}"
            )
        at = joined.end()


def _end(value: str, start: int, *, quoted: bool) -> int:
    """Return where a part in quotes or braces ends, its mark included.

    Raises:
        _NotValue: it does not.
    """
    depth = 0
    for found in _MARK.finditer(value, start):
        mark = found[0]
        if mark == '"':
            if quoted and not depth:
                return found.end()
        elif mark == "{":
            depth += 1
        elif depth:
            depth -= 1
        elif not quoted:
            return found.end()
    raise _NotValue("a brace or quote is missing")
