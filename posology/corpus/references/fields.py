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
from posology.corpus.jats.kinds import LANGUAGES, SUBJECTS
from posology.corpus.pubmed.dates import best_known, written_date
from posology.corpus.pubmed.record import Parsed
from posology.corpus.pubmed.relations import RETRACTED_TYPE
from posology.corpus.pubmed.words import plain
from posology.corpus.record import MAX_ID, says_retracted
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
    r"(?:there is )?no abstracts? (?:is |was )?(?:available|provided)", re.IGNORECASE
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_PMID = re.compile(r"(?:pmid:?\s*)?0*([1-9][0-9]{0,11})(?:\.0)?", re.IGNORECASE)
#: in notes only a line that begins so: they may speak of other papers
_PMID_NOTE = re.compile(
    r"^\W{0,3}(?:(?:PMID|PUBMED(?:[ -]ID)?)\b[\s:]{0,3}"
    r"|https?://(?:www\.)?(?:pubmed\.ncbi\.nlm\.nih\.gov|ncbi\.nlm\.nih\.gov/pubmed)/)([1-9][0-9]{0,11})\b",
    re.IGNORECASE | re.MULTILINE,
)
_DOI_NOTE = re.compile(
    r"^\W{0,3}(?:https?://(?:dx\.)?doi\.org/|doi\b[\s:]{0,3})(10\.[0-9]{4,9}/[^\s\"<>]+)",
    re.IGNORECASE | re.MULTILINE,
)
_PMCID_NOTE = re.compile(
    r"^\W{0,3}(?:PMCID\b[\s:]{0,3}|https?://[\w.]{1,60}/(?:pmc/)?articles/)PMC\s?([1-9][0-9]{0,11})\b",
    re.IGNORECASE | re.MULTILINE,
)
_MEDLINE = re.compile(r"medline|pubmed|\bNLM\b", re.IGNORECASE)
_DOI_IN = re.compile(r"(10\.[0-9]{4,9}/[^\s\"<>]+)")
_PMCID_IN = re.compile(r"\bPMC\s?([1-9][0-9]{0,11})\b", re.IGNORECASE)
_SEVERAL = re.compile(r"\s*[;|\n]\s*")
_CODE = re.compile(r"[a-z]{3}")
_YES = frozenset({"1", "yes", "true", "y", "retracted"})

#: publication types in the words of Scopus, Embase, Web of Science and Zotero
_TYPES = SUBJECTS | {
    "article": "Journal Article",
    "journal article": "Journal Article",
    "journalarticle": "Journal Article",
    "original article": "Journal Article",
    "retracted": RETRACTED_TYPE,
}
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
    for name in FIELDS:
        for value in values.get(name, ()):
            if wrong := undecoded(value):
                return Parsed(id=_identifier(values), reason=f"{name}: {wrong}")
    given = line_of(values, "pmid")
    pmid, doi, pmcid = _pmid(values), doi_of(values), _pmcid(values)
    text = next((text for text in map(body, values.get("text", ())) if text), "")
    title = line_of(values, "title")
    known = _identifier(values)
    own = known or _own(values, path, title, text)
    if given and pmid is None:
        return Parsed(id=known, reason=f"pmid: must be a PubMed identifier (got {given[:40]!r})")
    if not text:
        named = f' ("{title[:_SHOWN]}")' if title and known is None else ""
        return Parsed(id=known, reason=f"has no abstract{named}")
    published = best_known(written_date(plain(date)) for date in values.get("date", ()))
    types = _types(values)
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
                or says_retracted(title)
                or line_of(values, "retracted").lower() in _YES
            ),
            source=source,
            doi=doi,
            pmcid=pmcid,
            languages=_languages(values),
            authors=kept(person(clean(name)) for name in values.get("authors", ())),
        ),
    )


def line_of(values: Values, name: str) -> str:
    """Return the first text of a field that is one, on one line; empty: there is none."""
    lines = (clean(value).replace("\n", " ") for value in values.get(name, ()))
    return next((line for line in lines if line.lower() not in _NONE), "")


def clean(text: str) -> str:
    """Return text without control characters, blank lines and superfluous white space."""
    lines = map(plain, _CONTROL.sub(" ", text).splitlines())
    return "\n".join(line for line in lines if line)


def body(text: str) -> str:
    """Return an abstract; empty where the text only says that there is none."""
    shown = clean(text)
    bare = shown.strip("[]().").lower()
    return "" if bare in _NONE or _NO_ABSTRACT.fullmatch(bare) else shown


def several(values: Iterable[str]) -> list[str]:
    """Return the texts of a field, those of one value parted by semicolons, bars or line ends."""
    return [part for value in values for part in _SEVERAL.split(clean(value)) if part]


def doi_of(values: Values) -> str | None:
    """Return the DOI of a reference; ``None``: it has none."""
    found = _found(values, doi=_DOI_IN, notes=_DOI_NOTE)
    if found is None:
        return None
    # what closes a sentence or a bracket around it
    doi = found.rstrip(".,;:")
    return (doi if "(" in doi else doi.rstrip(")")).lower()


def _found(values: Values, **patterns: re.Pattern[str]) -> str | None:
    for name, pattern in patterns.items():
        for value in values.get(name, ()):
            if found := pattern.search(value):
                return found[1]
    return None


def _identifier(values: Values) -> str | None:
    if pmid := _pmid(values):
        return f"pmid:{pmid}"
    if pmcid := _pmcid(values):
        return f"pmcid:{pmcid}"
    doi = doi_of(values)
    return None if doi is None or len(doi) > MAX_ID - 10 or undecoded(doi) else f"doi:{doi}"


def _own(values: Values, path: Path, title: str, text: str) -> str:
    # a key of another file's is another's
    key = line_of(values, "key") or line_of(values, "accession")
    if not key or len(key) > MAX_ID // 4:
        # no title may be two papers', such as "Reply": the text tells them apart
        key = hashlib.blake2b(f"{title}\n{text}".encode(), digest_size=8).hexdigest()
    return f"{file_id(path)}:{key}"


def _pmid(values: Values) -> str | None:
    if given := line_of(values, "pmid"):
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


def _types(values: Values) -> tuple[str, ...]:
    known = (_TYPES.get(text.casefold()) for text in several(values.get("types", ())))
    return tuple(dict.fromkeys(name for name in known if name))


def _languages(values: Values) -> tuple[str, ...]:
    codes: Sequence[str | None] = [
        _NAMES.get(text) or LANGUAGES.get(text[:2] if text[2:3] in "-_" else text) or _code(text)
        for text in map(str.lower, several(values.get("languages", ())))
    ]
    return tuple(dict.fromkeys(code for code in codes if code))


def _code(text: str) -> str | None:
    return text if _CODE.fullmatch(text) else None
