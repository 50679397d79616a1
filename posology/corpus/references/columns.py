"""Columns of tables: the fields that they are of, guessed by their names or named by the user."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from posology.errors import InputError

#: names of columns by field, in small letters and digits alone; the first of them that a file has is taken, of
#: abstracts each that has this name, and all dates. Those of two letters are Web of Science's
COLUMNS: Mapping[str, Sequence[str]] = {
    "key": ("id", "key", "recordid", "recordnumber", "uid", "eid", "refid", "citekey"),
    "text": (
        "abstract", "abstracttext", "abstractnote", "ab", "text", "content", "summary", "description",
        "dcdescription", "résumé", "resumen", "resumo", "riassunto", "zusammenfassung",
    ),
    "title": ("title", "articletitle", "documenttitle", "primarytitle", "papertitle", "ti", "titel", "titre", "título", "titulo", "titolo"),
    "pmid": ("pmid", "pubmedid", "pubmed", "medlinepmid", "pubmedpmid", "pm"),
    "doi": ("doi", "articledoi", "doilink", "doiurl", "di"),
    "pmcid": ("pmcid", "pmc", "pmcids", "pubmedcentralid"),
    "journal": (
        "journal", "journalbook", "journaltitle", "journalname", "publicationtitle", "sourcetitle", "containertitle",
        "publicationname", "publication", "secondarytitle", "parenttitle", "so",
    ),
    "authors": (
        "authors", "author", "authorfullnames", "authorstring", "authornames", "authorlist", "primaryauthors", "au",
    ),
    "date": (
        "publicationdate", "datepublished", "published", "date", "year", "publicationyear", "pubyear", "yearpublished",
        "py", "yr", "pubdate", "jahr", "erscheinungsjahr", "année", "año", "ano", "anno",
    ),
    "types": (
        "publicationtypes", "publicationtype", "documenttype", "articletype", "typeofpublication", "doctype", "dt",
    ),
    "mesh": ("mesh", "meshterms", "meshheadings", "meshheading"),
    "languages": ("languages", "language", "languageoforiginaldocument", "la"),
    "retracted": ("retracted", "isretracted", "retractionstatus"),
    "database": ("database", "databasename", "databaseprovider", "sourcedatabase", "source", "db"),
    "accession": ("accessionnumber", "accession", "extid", "an"),
    "notes": ("extra", "notes", "url", "link"),
}  # fmt: skip
#: fields that take all of their columns
_ALL = frozenset({"date", "notes"})
#: where none of these names is there: words of which a name must have one, and words that it must not have
_WORDS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    name: (frozenset(one.split()), frozenset(none.split()))
    for name, (one, none) in {
        "text": (
            "abstract abstracts",
            (
                "available count doi graphical has id language length link non number original source status type url video "
                "words"
            ),
        ),
        "title": (
            "title",
            (
                "abbreviated abstract alternative book collection conference container id journal length original parent proceedings "
                "publication running secondary series short source translated url"
            ),
        ),
        "pmid": ("pmid", "citing notice related retraction"),
        "doi": ("doi", "book citing data id notice parent preprint related retraction series"),
        "journal": (
            "journal periodical",
            "code country eissn factor id impact issn issue quartile rank ranking type url volume",
        ),
        "authors": (
            "author authors",
            (
                "address addresses affiliation affiliations book contact corresponding correspondence count countries email "
                "emails first group id ids institution institutions keyword keywords last number orcid orcids position "
                "positions researcher with"
            ),
        ),
        "date": (
            "date year yr",
            (
                "accepted access accessed added birth citation citations cited citing completed completion created data "
                "deposited download downloaded due end entry export exported first follow import imported included indexed "
                "last modified per percentile received retracted retraction retrieved review reviewed revised screened "
                "search searched start submitted update updated"
            ),
        ),
    }.items()
}
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W_]")
_ENGLISH = re.compile(r"\bengl?(?:ish)?\b|\ben\b", re.IGNORECASE)
#: what programs add to a name that is there twice
_AGAIN = re.compile(r"\.[0-9]{1,2}\Z")
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
        for text in given:
            name, equals, column = (part.strip() for part in text.partition("="))
            known = _ALIASES.get(name.lower(), name.lower())
            if not equals or not column:
                raise InputError(
                    f"a column is named FIELD=NAME, e.g. text=Summary (got {text!r})", column=text
                )
            if known not in COLUMNS:
                fields = ", ".join(COLUMNS)
                raise InputError(f"unknown field {name!r}: fields are {fields}", column=text)
            if known in named:
                raise InputError(f"the field {known} is named twice: name one column", column=text)
            named[known] = column
        return cls(named=named)

    @property
    def identity(self) -> str:
        """Return what tells these columns from others; empty: all are guessed."""
        return "\n".join(f"{name}={column}" for name, column in sorted(self.named.items()))


#: every field is guessed
GUESSED = Columns()
#: name of the values that are in no field, although they may be abstracts
IGNORED = "ignored"


@dataclass(frozen=True, kw_only=True, slots=True)
class Header:
    """The names of a table's columns, and the fields that they are of."""

    names: tuple[str, ...]
    #: places of the columns of each field
    columns: Mapping[str, tuple[int, ...]]
    #: columns that the user named and that the table lacks
    missing: tuple[str, ...] = ()
    #: places of the columns that may hold abstracts and are not read
    ignored: tuple[int, ...] = ()
    #: number of fields that are known by the whole names of their columns
    sure: int = 0

    @property
    def known(self) -> int:
        """Return the number of columns that are read."""
        return sum(map(len, self.columns.values()))

    def values(self, row: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the fields of a row, which may be shorter than the header."""
        return {
            name: [row[place] for place in places if place < len(row)]
            for name, places in (*self.columns.items(), (IGNORED, self.ignored))
        }


def header_of(names: Sequence[str], given: Columns = GUESSED) -> Header:
    """Return the fields that columns are of: as the user names them, else by their own names.

    Case, spaces and punctuation of a name count only where several columns differ in nothing else. A name that is not
    known is a field's if it has its word, such as *Published Year*; an *Accession Number* may be any database's.
    """
    plain = [_plain(name) for name in names]
    columns: dict[str, tuple[int, ...]] = {}
    missing = []
    sure = 0
    for field_name, known in COLUMNS.items():
        if (asked := given.named.get(field_name)) is not None:
            place = _place(asked, names, plain)
            if place is None:
                missing.append(asked)
            else:
                columns[field_name] = (place,)
            continue
        places = [place for name in known for place, own in enumerate(plain) if own == name]
        sure += bool(places)
        if not places and field_name in _WORDS:
            places = [place for place, name in enumerate(names) if _holds(name, field_name)]
            if field_name == "text":
                places.sort(key=lambda place: not _ENGLISH.search(names[place]))
            elif field_name != "date":
                places = places[:1]
        if field_name == "text":
            # those of one name are one abstract
            places = [place for place in places if _same(names[place], names[places[0]])]
        elif field_name not in _ALL:
            places = places[:1]
        if places:
            columns[field_name] = tuple(places)
    read = columns.get("text", ())
    return Header(
        names=tuple(names),
        columns=columns,
        missing=tuple(missing),
        ignored=tuple(
            place
            for place, name in enumerate(names)
            if read and place not in read and (_holds(name, "text") or plain[place] == "ab")
        ),
        sure=sure,
    )


def _holds(name: str, field: str) -> bool:
    """Return whether a name has the word of a field, and none that makes it another's."""
    words = {word.lower() for word in _WORD.findall(name)}
    wanted, unwanted = _WORDS[field]
    return bool(words & wanted) and not words & unwanted


def _same(name: str, other: str) -> bool:
    return _AGAIN.sub("", name.strip()) == _AGAIN.sub("", other.strip())


def _place(asked: str, names: Sequence[str], plain: Sequence[str]) -> int | None:
    exact = [place for place, name in enumerate(names) if name.strip() == asked]
    alike = [place for place, name in enumerate(plain) if name and name == _plain(asked)]
    return next(iter((*exact, *alike)), None)


def _plain(name: str) -> str:
    bare = _AGAIN.sub("", name.strip().lower())
    letters = "".join(char for char in bare if char.isalnum())
    # of two letters they are tags: "a,b" is not AB
    return letters if len(letters) > 2 else bare
