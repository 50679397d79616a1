"""Reader of Ovid's exports of any database, also gzipped: records ``<1>``, with tags or with names of fields.

With tags (formats *Citavi*, *EndNote*, *BRS/Tagged*) a field is ``AB  - Salt helped.``; with names (*Citation*) it is a
line ``Abstract`` above indented lines. What is sent to reference managers (``.cgi``) has tags and begins with ``VN``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from posology.corpus.decoding import beginning_text
from posology.corpus.items import Item
from posology.corpus.pubmed.record import Parsed
from posology.corpus.references import entries, fields
from posology.corpus.references.entries import Entry, Values
from posology.corpus.references.tagged.form import Form
from posology.corpus.references.tagged.lines import Syntax, tagged

SUFFIXES = (".ovd", ".ovd.gz", ".cgi", ".txt", ".txt.gz")

#: characters in which the database is named before the records, and the first record begins
_START = 8_192
_RECORD = r"<[0-9]{1,9}(?:\. ?)?>\s*"
_TAGGED = Syntax(
    tag=re.compile(r"\ufeff?(<(?=[0-9]{1,9}(?:\. ?)?>)|[A-Z][A-Z0-9](?=  -(?:\s|\Z)))(?:  -)?(.*)", re.DOTALL),
    first="<",
    preface=True,
    texts=frozenset({"AB"}),
)  # fmt: skip
_SENT = replace(_TAGGED, first="VN")
_NAMED = Syntax(
    # the words of fields are indented
    tag=re.compile(r"\ufeff?(<(?=[0-9]{1,9}(?:\. ?)?>)|[A-Z][A-Za-z/,'&() -]{1,60}(?=\s*\Z))(.*)", re.DOTALL),
    first="<",
    preface=True,
    texts=frozenset({"Abstract"}),
)  # fmt: skip
_DATABASE = re.compile(r"^Database:?\s+(\S[^\n]{0,200})", re.MULTILINE)
#: the year at the end of a source: "Notes on Salt. 4(2):11-19, 2019 Mar."
_DATE = re.compile(r",\s*([0-9]{4}\b[^,:]{0,20})\Z")
#: a number of MEDLINE's; Embase's have nine digits and more
_PMID = re.compile(r"[1-9][0-9]{7}")

_FORM = Form(
    source="ovid",
    syntax=_TAGGED,
    tags={
        "key": ("UI", "AN", "Unique Identifier", "Accession Number"),
        "text": ("AB", "Abstract"),
        "title": ("TI", "Title"),
        "authors": ("FA", "AU", "Authors Full Name", "Authors", "Author"),
        "doi": ("DO", "DI", "Digital Object Identifier", "DOI"),
        "pmid": ("PMID", "PubMed ID", "MEDLINE PMID"),
        "journal": ("AS", "JA", "JN", "JT", "Abbreviated Source", "Journal Name", "NLM Journal Name", "Journal"),
        "date": ("DP", "YR", "PY", "Date of Publication", "Publication Date", "Year of Publication"),
        "types": ("PT", "Publication Type", "Document Type"),
        "languages": ("LG", "LA", "Language"),
        "database": ("DB", "Database"),
        "accession": ("UI", "AN", "Unique Identifier", "Accession Number"),
        "notes": ("CM", "Comments"),
    },
    start=re.compile(
        rf"\A\s*(?:VN  - Ovid\b|(?:Database:[^\n]*\n(?:[^\n]*\n)*?)?{_RECORD}\n"
        r"(?:[A-Z][A-Z0-9]  - |[A-Z][A-Za-z/,'&() -]{1,60}\s*\n[ \t]+\S))"
    ),
    lines=frozenset({"authors", "types"}),
)  # fmt: skip

begins = _FORM.begins


def read(path: Path, *, after: int = 0) -> Iterator[Item]:
    """Return the references of one file; see :mod:`posology.corpus.items`. Places are numbers of lines.

    A number is a PMID if the database is MEDLINE, or if none is named and a *Unique Identifier* has eight digits, since
    Embase calls its own *Accession Number*.
    """
    named = _DATABASE.search(beginning_text(path, _START))

    def build(values: Values, path: Path) -> Parsed:
        return _build(values, path, database=named[1] if named else "")

    return entries.items(_entries, build, path, after=after)


def count(path: Path) -> int:
    """Return the number of references, up to where the file can be read."""
    return entries.count(_entries, path)


def _entries(path: Path) -> Iterator[Entry]:
    start = beginning_text(path, _START)
    if start.lstrip().startswith("VN"):
        return tagged(path, _SENT)
    first = re.search(rf"^{_RECORD}\n(.*)", start, re.MULTILINE)
    by_tags = first is not None and re.match(r"[A-Z][A-Z0-9]  - ", first[1])
    return tagged(path, _TAGGED if by_tags else _NAMED)


def _build(values: Values, path: Path, *, database: str) -> Parsed:
    texts = _FORM.fields(values)
    texts["date"] += [
        date[1].rstrip(".")
        for tag in ("SO", "Source")
        for source in values.get(tag, ())
        if (date := _DATE.search(source.strip()))
    ]
    if not any(texts["database"]):
        texts["database"] = [database] if database else []
    number = fields.line_of(texts, "accession")
    if not texts["database"] and "Unique Identifier" in values and _PMID.fullmatch(number):
        texts["pmid"].append(number)
    return fields.parsed(texts, path, source=_FORM.source)
