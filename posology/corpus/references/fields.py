"""Fields of a reference as a passage, whatever the export calls them.

Only what MEDLINE's vocabulary knows is taken as publication type or language, since filters compare with it. Identifiers
are also looked for in notes and addresses, where many tools put them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from posology.corpus.decoding import undecoded
from posology.corpus.drafts import file_id
from posology.corpus.items import NoticeKind
from posology.corpus.jats.kinds import LANGUAGES, SUBJECTS
from posology.corpus.pubmed.dates import best_known, written_date
from posology.corpus.pubmed.record import Parsed
from posology.corpus.pubmed.relations import RETRACTED_TYPE, Warned
from posology.corpus.pubmed.words import plain
from posology.corpus.record import MAX_ID
from posology.corpus.references import markup, standing
from posology.corpus.references.entries import Values
from posology.text.names import kept, person
from posology.types import Passage

#: names of the fields that :func:`parsed` reads
FIELDS = (
    "key", "text", "title", "pmid", "doi", "pmcid", "journal", "authors", "date", "types", "mesh", "languages",
    "retracted", "database", "accession", "notes",
)  # fmt: skip

#: characters of a title in a message
_SHOWN = 60
#: texts in place of an abstract, in lower case, without brackets and full stops
_NONE = frozenset({"", "-", "n/a", "na", "nan", "none", "null"})
_NO_ABSTRACT = re.compile(
    r"(?:there is )?no abstracts? (?:is |was )?(?:available|provided)|abstract available from the publisher",
    re.IGNORECASE,
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_PMID = re.compile(r"(?:pmid:?\s*)?0*([1-9][0-9]{0,11})(?:\.0)?", re.IGNORECASE)
#: in notes only a line that begins so: they may speak of other papers
_PMID_NOTE = re.compile(
    r"^\W{0,3}(?:(?:PMID|PUBMED(?:[ -]ID)?)\b[\s:]{0,3}"
    r"|https?://(?:www\.)?(?:pubmed\.ncbi\.nlm\.nih\.gov|ncbi\.nlm\.nih\.gov/pubmed)/)([1-9][0-9]{0,11})\b",
    re.IGNORECASE | re.MULTILINE,
)
#: Wiley's of the nineties hold pages in angle brackets: 17:15/16<1661::AID-SIM968>3.0.CO;2-2
_DOI = r"10\.[0-9]{4,9}/[^\s\"<>]+(?:<[^\s\"<>/]*:[^\s\"<>/]*>[^\s\"<>]*)?"
_DOI_NOTE = re.compile(
    rf"^\W{{0,3}}(?:https?://(?:dx\.)?doi\.org/|doi\b[\s:]{{0,3}})({_DOI})",
    re.IGNORECASE | re.MULTILINE,
)
_PMCID_NOTE = re.compile(
    r"^\W{0,3}(?:PMCID\b[\s:]{0,3}|https?://[\w.]{1,60}/(?:pmc/)?articles/)PMC\s?([1-9][0-9]{0,11})\b",
    re.IGNORECASE | re.MULTILINE,
)
_MEDLINE = re.compile(r"medline|pubmed|\bNLM\b|\AMED\Z", re.IGNORECASE)
_DOI_IN = re.compile(f"({_DOI})")
_PMCID_IN = re.compile(r"\bPMC\s?([1-9][0-9]{0,11})\b", re.IGNORECASE)
_SEVERAL = re.compile(r"\s*[;|\n]\s*")
_CODE = re.compile(r"[a-z]{3}")
_YES = frozenset({"1", "1.0", "yes", "true", "t", "y", "retracted", "withdrawn"})

#: publication types in the words of Scopus, Embase, Web of Science and Zotero
_TYPES = (
    SUBJECTS
    | standing.TYPES
    | {
        "article": "Journal Article",
        "journal article": "Journal Article",
        "journalarticle": "Journal Article",
        "original article": "Journal Article",
    }
)
_NAMES = {
    "arabic": "ara", "bulgarian": "bul", "chinese": "chi", "croatian": "hrv", "czech": "cze", "danish": "dan",
    "dutch": "dut", "english": "eng", "finnish": "fin", "french": "fre", "german": "ger", "greek": "gre",
    "hebrew": "heb", "hungarian": "hun", "italian": "ita", "japanese": "jpn", "korean": "kor", "norwegian": "nor",
    "persian": "per", "polish": "pol", "portuguese": "por", "romanian": "rum", "russian": "rus", "serbian": "srp",
    "slovak": "slo", "slovenian": "slv", "spanish": "spa", "swedish": "swe", "turkish": "tur", "ukrainian": "ukr",
}  # fmt: skip


def parsed(values: Values, path: Path, *, source: str) -> Parsed:
    """Return the passage of a reference.

    Its id is ``pmid:…``, else ``pmcid:…``, else ``doi:…``, else the file's id with the reference's own key, else with a
    digest of title and abstract: these stay the same when lines are added to the file.

    Args:
        values: texts by the names of :data:`FIELDS`; of authors one name each.
        path: the file.
        source: name of the collection.
    """
    pmid, doi, pmcid = _pmid(values), doi_of(values), _pmcid(values)
    known = _identifier(pmid, pmcid, doi)
    for name in FIELDS:
        for value in values.get(name, ()):
            if wrong := undecoded(value):
                return Parsed(id=known, reason=f"{name}: {wrong}")
    given = _given_pmid(values)
    text = bodies(values.get("text", ()))
    title = line_of(values, "title")
    own = known or _own(values, path, title, text)
    warned = _warned(title, text, own, doi)
    if given and pmid is None:
        return Parsed(id=known, reason=f"pmid: must be a PubMed identifier (got {given[:40]!r})")
    if not text:
        named = f' ("{title[:_SHOWN]}")' if title and known is None else ""
        return Parsed(id=known, reason=f"has no abstract{named}", warned=warned if known else ())
    published = best_known(written_date(plain(date)) for date in values.get("date", ()))
    types = _types(values, title)
    notes = values.get("notes", ())
    return Parsed(
        id=own,
        passage=Passage(
            id=own,
            text=text,
            title=title,
            pmid=pmid,
            journal=line_of(values, "journal") or None,
            year=None if published is None else published.year,
            published=None if published is None else str(published),
            publication_types=types,
            mesh=tuple(dict.fromkeys(several(values.get("mesh", ())))),
            retracted=(
                RETRACTED_TYPE in types
                or standing.says_retracted(title)
                or line_of(values, "retracted").lower() in _YES
                or standing.noted(notes, NoticeKind.RETRACTION)
            ),
            concern=(
                standing.OF_CONCERN in map(str.casefold, several(values.get("types", ())))
                or standing.noted(notes, NoticeKind.CONCERN)
            ),
            source=source,
            doi=doi,
            pmcid=pmcid,
            languages=_languages(values),
            authors=kept(person(clean(name)) for name in values.get("authors", ())),
        ),
        warned=warned,
        remarks=tuple(markup.remarks(f"{title}\n{text}")),
    )


def line_of(values: Values, name: str) -> str:
    """Return the first text of a field that is one, on one line; empty: there is none."""
    lines = (clean(value).replace("\n", " ") for value in values.get(name, ()))
    return next((line for line in lines if line.lower() not in _NONE), "")


def clean(text: str) -> str:
    """Return text without markup, control characters, blank lines and superfluous white space."""
    lines = map(plain, markup.unmarked(_CONTROL.sub(" ", text)).splitlines())
    return "\n".join(line for line in lines if line)


def body(text: str) -> str:
    """Return an abstract; empty where the text only says that there is none."""
    shown = clean(text)
    bare = shown.strip("[]().").lower()
    return "" if bare in _NONE or _NO_ABSTRACT.fullmatch(bare) else shown


def bodies(texts: Iterable[str]) -> str:
    """Return an abstract that may stand in several fields: those that differ, joined by line ends."""
    found: list[str] = []
    for text in dict.fromkeys(filter(None, map(body, texts))):
        # of one that another holds, the longer
        if not any(text in other for other in found):
            found = [other for other in found if other not in text]
            found.append(text)
    return "\n".join(found)


def first_body(given: Iterable[Sequence[str]]) -> list[str]:
    """Return the values of the first of several fields that holds an abstract, or of one that goes on where it ends."""
    some = [texts for texts in given if any(texts)]
    if len(some) == 1:
        # as most have it: none is chosen, and each is cleaned later
        return list(some[0])
    found: list[str] = []
    for texts in filter(lambda texts: any(map(body, texts)), some):
        if not found or any(body(text).startswith(bodies(found)) for text in texts):
            found = list(texts)
    return found


def several(values: Iterable[str]) -> list[str]:
    """Return the texts of a field, those of one value parted by semicolons, bars or line ends."""
    return [part for value in values for part in _SEVERAL.split(clean(value)) if part]


def doi_of(values: Values) -> str | None:
    """Return the DOI of a reference; ``None``: it has none."""
    found = _found(values, doi=_DOI_IN, notes=_DOI_NOTE)
    if found is None:
        return None
    return standing.bare_doi(found)


def _found(values: Values, **patterns: re.Pattern[str]) -> str | None:
    for name, pattern in patterns.items():
        for value in values.get(name, ()):
            if found := pattern.search(markup.decoded(value)):
                return found[1]
    return None


def _identifier(pmid: str | None, pmcid: str | None, doi: str | None) -> str | None:
    if pmid:
        return f"pmid:{pmid}"
    if pmcid:
        return f"pmcid:{pmcid}"
    return None if doi is None or len(doi) > MAX_ID - 10 or undecoded(doi) else f"doi:{doi}"


def _own(values: Values, path: Path, title: str, text: str) -> str:
    # a key of another file's is another's
    key = line_of(values, "key") or line_of(values, "accession")
    if not key or len(key) > MAX_ID // 4:
        # no title may be two papers', such as "Reply": the text tells them apart
        key = hashlib.blake2b(f"{title}\n{text}".encode(), digest_size=8).hexdigest()
    return f"{file_id(path)}:{key}"


def _given_pmid(values: Values) -> str:
    given = line_of(values, "pmid")
    # how some tools write that there is none
    return given if given.strip("0.") else ""


def _pmid(values: Values) -> str | None:
    if given := _given_pmid(values):
        found = _PMID.fullmatch(given) or _PMID_NOTE.search(given)
        return found[1] if found else None
    if noted := _found(values, notes=_PMID_NOTE):
        return noted
    if _MEDLINE.search(line_of(values, "database")):
        found = _PMID.fullmatch(line_of(values, "accession"))
        return found[1] if found else None
    return None


def _pmcid(values: Values) -> str | None:
    found = _found(values, pmcid=_PMCID_IN, notes=_PMCID_NOTE)
    return found and f"PMC{found}"


def _types(values: Values, title: str) -> tuple[str, ...]:
    known = [_TYPES.get(text.casefold()) for text in several(values.get("types", ()))]
    if notice := standing.notice_of(title):
        known.append(standing.NOTICE_TYPES[notice])
    return tuple(dict.fromkeys(name for name in known if name))


def _warned(title: str, text: str, own: str, doi: str | None) -> tuple[Warned, ...]:
    """Return the notices that a reference gives of others, as far as it names them."""
    return tuple(
        Warned(kind=kind, target=f"doi:{other}", by=own)
        for other, kind in dict.fromkeys(standing.named(title, text))
        if other != doi
    )


def _languages(values: Values) -> tuple[str, ...]:
    codes: Sequence[str | None] = [
        _NAMES.get(text) or LANGUAGES.get(text[:2] if text[2:3] in "-_" else text) or _code(text)
        for text in map(str.lower, several(values.get("languages", ())))
    ]
    return tuple(dict.fromkeys(code for code in codes if code))


def _code(text: str) -> str | None:
    return text if _CODE.fullmatch(text) else None
