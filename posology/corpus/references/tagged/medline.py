"""Reader of PubMed's text format (``.nbib``; Save, Format PubMed), which is MEDLINE's.

https://www.nlm.nih.gov/bsd/mms/medlineelements.html. A record becomes the passage that PubMed's XML would give, except that
the sections of its abstract stand on one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from posology.corpus.decoding import undecoded
from posology.corpus.items import Item
from posology.corpus.pubmed.dates import best_known, date_in, written_date
from posology.corpus.pubmed.record import SOURCE, Parsed, english
from posology.corpus.pubmed.relations import related
from posology.corpus.pubmed.trials import registered
from posology.corpus.references import entries, fields, markup
from posology.corpus.references.entries import Entry, Values
from posology.corpus.references.standing import says_retracted
from posology.corpus.references.tagged.lines import Syntax, tagged
from posology.text.names import group, kept, person
from posology.types import Passage

SUFFIXES = (".nbib", ".nbib.gz", ".medline", ".txt", ".txt.gz")

#: NLM's fields, of every age
_TAGS = (
    "AB ACI AD AID AIN AIR AU AUID BTI CDAT CI CIN CN COI COIS CON CP CRDT CRF CRI CTDT CTI CY DA DCOM DDIN DEP DP DRDT DRIN EA "
    "ECF ECI ED EDAT EFR EIN EN ERF ERI FAU FED FIR FPS GN GR GS HIS IP IR IRAD IS ISBN ISN JC JID JT LA LID LR MH MHDA "
    "MID MMID NI NM OAB OABL OCI OID ORI OT OTO OTOV OWN PB PG PHST PL PMC PMCR PMID PRIN PROF PS PST PT PUBM RF RIN RN RO "
    "ROF RPF RPI RRF RRI SB SFM SI SO SPIN STAT STED SY TA TI TT UI UIN UOF VI VTI"
)
_SYNTAX = Syntax(
    # its hyphen is the fifth character, and a space follows: a line may begin "SARS-CoV-2"
    tag=re.compile(r"\ufeff?(?=.{4}-(?:\s|\Z))([A-Z][A-Z0-9]{1,3}) {0,2}-(.*)", re.DOTALL),
    first="PMID",
    loose=re.compile(r"\s{0,2}([A-Z][A-Z0-9]{1,3})[ \t\xa0]{0,3}-(.*)", re.DOTALL),
    known=frozenset(_TAGS.split()),
    texts=frozenset({"AB", "OAB", "TI", "TT", "BTI"}),
    blank_ends=True,
    resumes=re.compile(r"[ \t]{2,}"),
    closing="SO",
)
_BEGINS = re.compile(r"\A\s*PMID ?- ?[0-9]")
_NUMBER = re.compile(r"[1-9][0-9]{0,11}")
_OTHER = re.compile(r"\bPMID:\s*([1-9][0-9]{0,11})")
_DOI = re.compile(r"(10\.[0-9]{4,9}/\S+) \[doi\]", re.IGNORECASE)
_PMCID = re.compile(r"PMC[0-9]+")
_LANGUAGE = re.compile(r"[a-z]{3}")
#: what a further abstract is, before it
_KIND = re.compile(
    r"\A\s*(?:publisher|plain-language-summary|aids|kie|nasa|pip|consumer)\s*:\s*", re.IGNORECASE
)
#: tags of relations, by the names that the XML has for them
_RELATIONS = {
    "RIN": "RetractionIn",
    "ROF": "RetractionOf",
    "ECI": "ExpressionOfConcernIn",
    "ECF": "ExpressionOfConcernFor",
    "RRI": "RetractedandRepublishedIn",
    "RRF": "RetractedandRepublishedFrom",
    "CRI": "CorrectedandRepublishedIn",
    "CRF": "CorrectedandRepublishedFrom",
    "RPI": "RepublishedIn",
    "RPF": "RepublishedFrom",
    "UIN": "UpdateIn",
    "UOF": "UpdateOf",
}


def begins(start: str) -> bool:
    """Return whether a text is in this format, by its beginning."""
    return _BEGINS.match(start) is not None


def read(path: Path, *, after: int = 0) -> Iterator[Item]:
    """Return the records of one file; see :mod:`posology.corpus.items`. Places are numbers of lines."""
    return entries.items(_entries, _build, path, after=after)


def count(path: Path) -> int:
    """Return the number of records, up to where the file can be read."""
    return entries.count(_entries, path)


def _entries(path: Path) -> Iterator[Entry]:
    return tagged(path, _SYNTAX)


def _others(values: Values) -> list[str]:
    """Return the further abstracts in English, each without what kind it is of: "Publisher: …"."""
    codes = _lines(values, "OABL")
    return [
        _KIND.sub("", text)
        for i, text in enumerate(values.get("OAB", ()))
        if i >= len(codes) or codes[i].strip().lower() in ("", "eng")
    ]


def _build(values: Values, path: Path) -> Parsed:  # noqa: ARG001 - a record has an id of its own
    number = fields.line_of(values, "PMID")
    own = f"pmid:{number}"
    if not _NUMBER.fullmatch(number):
        return Parsed(reason=f"its PMID is no number: {number[:40]!r}" if number else "has no PMID")
    for tag, texts in values.items():
        for one in texts:
            if wrong := undecoded(one):
                return Parsed(id=own, reason=f"{tag}: {wrong}")
    types = _lines(values, "PT")
    relations = related(
        ((kind, _other(text)) for tag, kind in _RELATIONS.items() for text in values.get(tag, ())),
        own,
        types,
    )
    warned = relations.of_others + relations.of_itself
    text = fields.bodies(
        text.replace("\n", " ")
        for text in fields.first_body((values.get("AB", ()), _others(values)))
    )
    if not text:
        return Parsed(id=own, reason="has no abstract", warned=warned)
    published = best_known(
        (
            *(date_in(text) for text in _lines(values, "DP")),
            *(written_date(text) for text in _lines(values, "DEP")),
        )
    )
    title = english(*_first(values, "TI", "BTI")) or next(iter(_first(values, "TT")), "")
    passage = Passage(
        id=own,
        text=text,
        title=title,
        pmid=number,
        journal=next(iter(_first(values, "TA", "JT", "BTI")), None),
        year=None if published is None else published.year,
        published=None if published is None else str(published),
        publication_types=types,
        mesh=_headings(values),
        retracted=relations.retracted or says_retracted(title),
        concern=relations.concern,
        source=SOURCE,
        doi=next(
            (m[1].lower() for m in map(_DOI.fullmatch, _lines(values, "LID", "AID")) if m), None
        ),
        pmcid=next((m[0] for m in map(_PMCID.match, _lines(values, "PMC")) if m), None),
        languages=tuple(code for code in _lines(values, "LA") if _LANGUAGE.fullmatch(code)),
        trials=_trials(values),
        same_work=relations.same_work,
        authors=_authors(values),
    )
    return Parsed(
        id=own,
        passage=passage,
        warned=warned,
        remarks=tuple(markup.remarks(f"{title}\n{text}")),
    )


def _lines(values: Values, *tags: str) -> tuple[str, ...]:
    """Return the texts of some tags, each on one line and once."""
    found = (fields.clean(text).replace("\n", " ") for tag in tags for text in values.get(tag, ()))
    return tuple(dict.fromkeys(text for text in found if text))


def _first(values: Values, *tags: str) -> tuple[str, ...]:
    return _lines(values, *tags)[:1]


def _authors(values: Values) -> tuple[str, ...]:
    """Return people, with their full names if all have one, then groups."""
    full, brief = values.get("FAU", ()), values.get("AU", ())
    people = map(person, map(fields.clean, full if len(full) >= len(brief) else brief))
    return kept((*people, *map(group, _lines(values, "CN"))))


def _headings(values: Values) -> tuple[str, ...]:
    """Return the MeSH headings, without qualifiers and the mark of major topics."""
    found = (text.partition("/")[0].lstrip("*").strip() for text in _lines(values, "MH"))
    return tuple(dict.fromkeys(text for text in found if text))


def _trials(values: Values) -> tuple[str, ...]:
    banks = (text.partition("/") for text in _lines(values, "SI"))
    found = (registered(bank, number) for bank, _, number in banks)
    return tuple(dict.fromkeys(number for number in found if number))


def _other(text: str) -> str | None:
    found = _OTHER.search(fields.clean(text))
    return None if found is None else found[1]
