"""Columns of tables: the fields that they are of, guessed by their names or named by the user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from posology.errors import InputError

#: names of columns by field, in small letters and digits alone; the first of them that a file has is taken, and all
#: dates. Those of two letters are Web of Science's
COLUMNS: Mapping[str, Sequence[str]] = {
    "key": ("id", "key", "recordid", "recordnumber", "uid", "eid", "refid", "citekey"),
    "text": ("abstract", "abstracttext", "abstractnote", "ab", "text", "content", "summary"),
    "title": ("title", "articletitle", "documenttitle", "primarytitle", "papertitle", "ti"),
    "pmid": ("pmid", "pubmedid", "pubmed", "medlinepmid", "pubmedpmid", "pm"),
    "doi": ("doi", "articledoi", "doilink", "doiurl", "di"),
    "pmcid": ("pmcid", "pmc", "pmcids", "pubmedcentralid"),
    "journal": (
        "journal", "journalbook", "journaltitle", "journalname", "publicationtitle", "sourcetitle", "containertitle",
        "publicationname", "so",
    ),
    "authors": (
        "authors", "author", "authorfullnames", "authorstring", "authornames", "authorlist", "primaryauthors", "au",
    ),
    "date": (
        "publicationdate", "datepublished", "published", "date", "year", "publicationyear", "pubyear", "yearpublished",
        "py",
    ),
    "types": (
        "publicationtypes", "publicationtype", "documenttype", "articletype", "typeofpublication", "dt",
    ),
    "mesh": ("mesh", "meshterms", "meshheadings", "meshheading"),
    "languages": ("languages", "language", "languageoforiginaldocument", "la"),
    "retracted": ("retracted", "isretracted"),
    "notes": ("extra", "notes", "url", "link"),
}  # fmt: skip
#: fields that take all of their columns
_ALL = frozenset({"date", "notes"})
#: other words for fields
_ALIASES = {"abstract": "text", "year": "date", "id": "key", "author": "authors", "language": "languages"}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Columns:
    """Names of columns that a user gives, by field; other fields are guessed."""

    named: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Iterable[str]) -> Columns:
        """Return the columns that texts such as ``title=Article`` name.

        Raises:
            InputError: a text has no ``=``, its field is unknown, or a field is named twice.
        """
        named: dict[str, str] = {}
        for one in given:
            name, equals, column = (part.strip() for part in one.partition("="))
            known = _ALIASES.get(name.lower(), name.lower())
            if not equals or not column:
                raise InputError(
                    f"a column is named FIELD=NAME, e.g. text=Summary (got {one!r})", column=one
                )
            if known not in COLUMNS:
                fields = ", ".join(COLUMNS)
                raise InputError(f"unknown field {name!r}: fields are {fields}", column=one)
            if known in named:
                raise InputError(f"the field {known} is named twice: name one column", column=one)
            named[known] = column
        return cls(named=named)

    @property
    def identity(self) -> str:
        """Return what tells these columns from others; empty: all are guessed."""
        return "\n".join(f"{name}={column}" for name, column in sorted(self.named.items()))


#: every field is guessed
GUESSED = Columns()


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    """The names of a table's columns, and the fields that they are of."""

    names: tuple[str, ...]
    #: places of the columns of each field
    columns: Mapping[str, tuple[int, ...]]
    #: columns that the user named and that the table lacks
    missing: tuple[str, ...] = ()

    @property
    def known(self) -> int:
        """Return the number of columns that are read."""
        return sum(map(len, self.columns.values()))

    def values(self, row: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the fields of a row, which may be shorter than the header."""
        return {
            name: [row[place] for place in places if place < len(row)]
            for name, places in self.columns.items()
        }


def header_of(names: Sequence[str], given: Columns = GUESSED) -> Header:
    """Return the fields that columns are of: as the user names them, else by their own names.

    Case, spaces and punctuation of a name count only where several columns differ in nothing else.
    """
    plain = [_plain(name) for name in names]
    columns: dict[str, tuple[int, ...]] = {}
    missing = []
    for one, known in COLUMNS.items():
        if (asked := given.named.get(one)) is not None:
            place = _place(asked, names, plain)
            if place is None:
                missing.append(asked)
            else:
                columns[one] = (place,)
            continue
        found = [place for name in known for place, own in enumerate(plain) if own == name]
        if one == "text" and not found:
            # such as Abstract (English)
            found = [place for place, own in enumerate(plain) if own.startswith("abstract")]
        if found:
            columns[one] = tuple(found if one in _ALL else found[:1])
    return Header(names=tuple(names), columns=columns, missing=tuple(missing))


def _place(asked: str, names: Sequence[str], plain: Sequence[str]) -> int | None:
    exact = [place for place, name in enumerate(names) if name.strip() == asked]
    alike = [place for place, name in enumerate(plain) if name and name == _plain(asked)]
    return next(iter((*exact, *alike)), None)


def _plain(name: str) -> str:
    bare = name.strip().lower()
    letters = "".join(char for char in bare if char.isalnum())
    # of two letters they are tags: "a,b" is not AB
    return letters if len(letters) > 2 else bare
