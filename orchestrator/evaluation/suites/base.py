"""Questions with known answers, and the files that they are read from."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from posology.corpus.decoding import FAULTS, opened
from posology.described import published
from posology.errors import BadFile

_PMID = re.compile(r"\d{1,9}")


@published("GoldOutput")
@dataclass(frozen=True, kw_only=True, slots=True)
class Gold:
    """Known answer of a question."""

    verdict: str | None = None
    """Verdict of a yes-no question, or label of an option; null: there is none."""
    answers: tuple[str, ...] = ()
    """Accepted answers, any of which is right."""
    passages: tuple[str, ...] = ()
    """Ids of the passages that hold the evidence; empty: unknown."""
    answerable: bool = True
    """Whether the literature answers it; if not, a refusal is right."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A question with its known answer."""

    #: unique within the suite
    id: str
    #: fields of a request: the question, its form, and more
    fields: Mapping[str, Any]
    gold: Gold
    #: line of the file, from 1; ``None``: the file is one JSON document
    line: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnPassage:
    """A passage that a suite's file holds."""

    #: id, as gold passages name it
    id: str
    title: str
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Cases:
    """Content of a file."""

    cases: tuple[Case, ...]
    #: the literature, where the file holds it
    passages: tuple[OwnPassage, ...] = ()
    #: number of records left out, by reason
    skipped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Suite(Cases):
    """The questions of a file, under the name that tables and rows show."""

    name: str


#: reads the questions of a file
Read = Callable[[Path], Cases]


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One object of a file, with its place for errors."""

    path: Path
    data: Mapping[str, Any]
    #: line of the file, from 1; ``None``: the file is one JSON document
    line: int | None = None
    #: what names it in a document, e.g. ``question 3``
    place: str = ""

    def text(self, *names: str) -> str:
        """Return the first of these fields, as text.

        Raises:
            BadFile: none of them is there, or it is neither text nor a number.
        """
        for name in names:
            value = self.data.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip():
                return str(value).strip()
        raise self.error(f"the field {' or '.join(map(repr, names))} is missing or has no text")

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a field that is a list of texts; empty if it is not there.

        Raises:
            BadFile: it is something else.
        """
        found = self.data.get(name) or []
        if not isinstance(found, list) or not all(isinstance(one, str | int) for one in found):
            raise self.error(f"the field {name!r} must be a list of texts")
        return tuple(str(one) for one in found)

    def choice(self, name: str, *allowed: str) -> str:
        """Return a field that is one of a few words, in lower case.

        Raises:
            BadFile: it is not.
        """
        value = self.data.get(name)
        said = value.strip().casefold() if isinstance(value, str) else value
        if said not in allowed:
            raise self.error(
                f"the field {name!r} must be one of {', '.join(allowed)} (got {value!r})"
            )
        return str(said)

    def error(self, reason: str) -> BadFile:
        """Return the error of this record."""
        said = f"{self.place}: {reason}" if self.place else reason
        return bad_file(self.path, said, self.line)


def bad_file(path: Path, reason: str, line: int | None = None) -> BadFile:
    """Return the error of a file that is not of the named format."""
    return BadFile(reason, path=str(path), line=line)


def content(path: Path) -> str:
    """Return a file's text, unpacked if it is gzipped.

    Raises:
        BadFile: it cannot be read, or is not UTF-8.
    """
    try:
        with opened(path) as stream:
            raw = stream.read()
    except FAULTS as error:
        raise bad_file(path, getattr(error, "strerror", None) or str(error)) from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise bad_file(path, "it is not UTF-8", line) from None


def records(path: Path, unwrap: Callable[[Any], Iterable[tuple[str, Any]] | None]) -> list[Record]:
    """Return the objects of a file: one in each line, or those of one JSON document.

    Args:
        path: JSON or JSON Lines, gzipped or not.
        unwrap: returns the objects of a document with their names; ``None``: the document is one such object.

    Raises:
        BadFile: it is not JSON, or an item is no JSON object; the error has the line, or the item's name.
    """
    text = content(path)
    if _one_a_line(text):
        lines = enumerate(text.split("\n"), 1)
        return [_record(path, line, number) for number, line in lines if line.strip()]
    found = _parsed(path, text, 0)
    named = unwrap(found)
    if named is None:
        return [Record(path=path, data=_object(path, found, "the file", 1), line=1)]
    return [Record(path=path, data=_object(path, data, name), place=name) for name, data in named]


def listed(found: Any, what: str) -> Iterable[tuple[str, Any]]:
    """Return the items of a list in a document with their names, from 1; none if it is no list."""
    if not isinstance(found, list):
        return ()
    return ((f"{what} {number}", data) for number, data in enumerate(found, 1))


def _one_a_line(text: str) -> bool:
    """Return whether the first line is an object of its own, and more follows."""
    first, _, rest = text.lstrip().partition("\n")
    if not rest.strip():
        return False
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def _record(path: Path, line: str, number: int) -> Record:
    return Record(
        path=path, data=_object(path, _parsed(path, line, number - 1), "", number), line=number
    )


def _parsed(path: Path, text: str, before: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise bad_file(path, f"not JSON: {error.msg}", before + error.lineno) from None
    except RecursionError:
        raise bad_file(path, "it is nested too deeply", before + 1) from None


def _object(path: Path, data: Any, name: str, line: int | None = None) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise bad_file(path, f"{name or 'the row'} must be a JSON object", line)
    return data


def pmid_of(text: str) -> str | None:
    """Return the passage id of a PubMed id or of a PubMed address; ``None``: it is neither."""
    last = text.rstrip("/").rpartition("/")[2]
    return f"pmid:{last}" if _PMID.fullmatch(last) else None
