"""One record of PubMed's as a passage: an article, or a chapter of a book.

Which field is taken from which element: ``docs/concepts/pubmed-xml.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from posology.corpus.items import Item, Notice, Record, Remark
from posology.corpus.pubmed.dates import Date, best_known, date_of
from posology.corpus.pubmed.relations import Warned, pmid_of, relations
from posology.corpus.pubmed.trials import trials
from posology.corpus.pubmed.words import plain, words
from posology.corpus.references.markup import remarks, unmarked
from posology.corpus.references.standing import says_retracted
from posology.errors import BadRecord
from posology.text.names import group, joined, kept
from posology.types import Passage

if TYPE_CHECKING:
    from lxml.etree import _Element

SOURCE = "pubmed"

#: labels that say that there is none
_NO_LABEL = frozenset({"", "unlabelled", "unlabeled", "unassigned"})
#: what stands in place of a title
_NO_TITLE = frozenset({"not available", "in process citation"})
#: the dates of a record's history that are of its publication, the most telling first
_PUBLISHED = ("ppublish", "epublish", "ecollection", "aheadofprint")
#: and those on which it came into PubMed: better than none
_ENTERED = ("pubmed", "entrez")
_DOI = re.compile(r"(?:https?://(?:dx\.)?doi\.org/|doi:\s*)?(10\.[0-9]{4,9}/\S+)", re.IGNORECASE)
_PMCID = re.compile(r"PMC[0-9]+")
_LANGUAGE = re.compile(r"[a-z]{3}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Parsed:
    """A parsed record."""

    #: ``pmid:N``; ``None``: it has no number
    id: str | None = None
    #: ``None``: it is none
    passage: Passage | None = None
    #: why it is none
    reason: str = ""
    #: notices of other records, and of itself for its copies
    warned: tuple[Warned, ...] = ()
    #: what of it could not be read, or was not understood, although there is a passage
    remarks: tuple[str, ...] = ()

    def items(self, *, path: Path, line: int, row: int) -> Iterator[Item]:
        """Yield its notices, the remarks on it, and last its passage, or why it has none, all of one place.

        Args:
            path: its file.
            line: its place.
            row: its number among the records of the file, from 0.
        """
        for one in self.warned:
            yield Notice(target=one.target, kind=one.kind, by=one.by, path=path, line=line)
        for remark in self.remarks if self.passage else ():
            yield Remark(reason=remark, path=path, line=line, record=self.id)
        if self.passage is not None:
            yield Record(passage=self.passage, path=path, line=line, row=row)
        else:
            yield BadRecord(self.reason, path=str(path), line=line, record=self.id)


def article(citation: _Element, data: _Element | None) -> Parsed:
    """Return a ``MedlineCitation`` with its ``PubmedData``, which may be missing."""
    number = pmid_of(citation.find("PMID"))
    if number is None:
        return Parsed(reason=_no_number(citation))
    own = f"pmid:{number}"
    article = citation.find("Article")
    types = _texts(article, "PublicationTypeList/PublicationType")
    uis = _attributes(article, "PublicationTypeList/PublicationType", "UI")
    related = relations(citation, own, (*types, *uis))
    if article is None:
        text, reason = "", "has no Article"
    else:
        text, reason = _abstract(article, citation)
    # of itself, too: an earlier copy of the record, a full text or another collection's may be in an index
    warned = related.of_others + related.of_itself
    if not text:
        return Parsed(id=own, reason=reason, warned=warned)
    assert article is not None
    published = _published(
        date_of(article.find("Journal/JournalIssue/PubDate")),
        *(date_of(date) for date in article.iterfind("ArticleDate")),
        data=data,
    )
    mesh = _texts(
        citation, "MeshHeadingList/MeshHeading/DescriptorName", "SupplMeshList/SupplMeshName"
    )
    title = _title(article)
    passage = Passage(
        id=own,
        text=text,
        title=title,
        pmid=number,
        journal=_first(
            citation.find("MedlineJournalInfo/MedlineTA"),
            article.find("Journal/ISOAbbreviation"),
            article.find("Journal/Title"),
        ),
        year=None if published is None else published.year,
        published=None if published is None else str(published),
        publication_types=types,
        mesh=mesh,
        # Cochrane's withdrawn reviews have no other mark
        retracted=related.retracted or says_retracted(title),
        concern=related.concern,
        source=SOURCE,
        doi=_doi(_valid_locations(article), _identifiers(data, "doi")),
        pmcid=_pmcid(_identifiers(data, "pmc", "pmcid"), _texts(citation, "OtherID")),
        languages=_languages(article),
        trials=trials(article),
        same_work=related.same_work,
        authors=_authors(article.iterfind("AuthorList/Author")),
    )
    return Parsed(
        id=own, passage=passage, warned=warned, remarks=tuple(remarks(f"{title}\n{text}"))
    )


def chapter(document: _Element, data: _Element | None) -> Parsed:
    """Return a ``BookDocument`` with its ``PubmedBookData``: a chapter, or a book of one piece."""
    number = pmid_of(document.find("PMID"))
    if number is None:
        return Parsed(reason=_no_number(document))
    own = f"pmid:{number}"
    text, reason = _abstract(document, document)
    if not text:
        return Parsed(id=own, reason=reason)
    book = document.find("Book")
    name = "" if book is None else words(book.find("BookTitle"))
    published = _published(
        date_of(document.find("ContributionDate")),
        date_of(document.find("Book/PubDate")),
        date_of(document.find("Book/BeginningDate")),
        data=data,
    )
    types = _texts(document, "PublicationType")
    passage = Passage(
        id=own,
        text=text,
        title=_title(document) or name,
        pmid=number,
        journal=name or None,
        year=None if published is None else published.year,
        published=None if published is None else str(published),
        publication_types=types,
        source=SOURCE,
        doi=_doi(
            _identifiers(document, "doi"),
            _identifiers(data, "doi"),
        ),
        pmcid=_pmcid(_identifiers(document, "pmc", "pmcid"), _identifiers(data, "pmc", "pmcid")),
        languages=_languages(document),
        authors=(
            _authors(document.iterfind("AuthorList[@Type='authors']/Author"))
            or _authors(document.iterfind("Book/AuthorList[@Type='authors']/Author"))
        ),
    )
    return Parsed(id=own, passage=passage)


def _no_number(element: _Element) -> str:
    found = element.find("PMID")
    if found is None:
        return "has no PMID"
    return f"its PMID is no number: {plain(found.text)[:40]!r}"


def _abstract(article: _Element, citation: _Element) -> tuple[str, str]:
    """Return the text of the abstract, a line a section, or why there is none."""
    text = _sections(article.find("Abstract"))
    if text:
        return text, ""
    # those that NLM or the publisher wrote instead; what is written for patients comes last
    others = sorted(
        citation.iterfind("OtherAbstract"),
        key=lambda other: other.get("Type") == "plain-language-summary",
    )
    for other in others:
        if other.get("Language", "eng") == "eng" and (text := _sections(other)):
            return text, ""
    languages = ", ".join(dict.fromkeys(other.get("Language", "eng") for other in others))
    return "", f"has no abstract in English, one in {languages}" if others else "has no abstract"


def _sections(abstract: _Element | None) -> str:
    lines = []
    for section in () if abstract is None else abstract.iterfind("AbstractText"):
        text = _words(section)
        label = plain(section.get("Label")).rstrip(": ")
        if text:
            lines.append(text if label.lower() in _NO_LABEL else f"{label}: {text}")
    return "\n".join(lines)


def _title(article: _Element) -> str:
    """Return the title in English; else the original one."""
    return english(_words(article.find("ArticleTitle"))) or _words(article.find("VernacularTitle"))


def _words(element: _Element | None) -> str:
    """Return the words of an element, without markup that publishers encoded as text."""
    found = words(element)
    shown = unmarked(found)
    return found if shown == found else plain(shown)


def english(title: str = "") -> str:
    """Return a title without the brackets of a translation; empty where the words say that there is none."""
    if title.startswith("[") and title.rstrip(".").endswith("]"):
        inside = title.rstrip(".")[1:-1]
        if _balanced(inside):
            stop = "" if inside.endswith((".", "?", "!")) or not title.endswith(".") else "."
            title = inside.strip() + stop
    return "" if title.lower().rstrip(".") in _NO_TITLE else title


def _balanced(inside: str) -> bool:
    depth = 0
    for character in inside:
        depth += (character == "[") - (character == "]")
        if depth < 0:
            return False
    return depth == 0


def _texts(element: _Element | None, *paths: str) -> tuple[str, ...]:
    """Return the texts of the elements at some paths, each once."""
    if element is None:
        return ()
    found = (plain(one.text) for path in paths for one in element.iterfind(path))
    return tuple(dict.fromkeys(text for text in found if text))


def _attributes(element: _Element | None, path: str, name: str) -> tuple[str, ...]:
    return () if element is None else tuple(one.get(name, "") for one in element.iterfind(path))


def _first(*elements: _Element | None) -> str | None:
    texts = (plain(element.text) for element in elements if element is not None)
    return next((text for text in texts if text), None)


def _published(*stated: Date | None, data: _Element | None) -> Date | None:
    """Return the first of the stated dates that is one; else one of the record's history."""
    dates: dict[str | None, Date | None] = {}
    if data is not None:
        found = data.iterfind("History/PubMedPubDate")
        dates = {date.get("PubStatus"): date_of(date) for date in found}
    published = best_known((*stated, *map(dates.get, _PUBLISHED)))
    return published or best_known(map(dates.get, _ENTERED))


def _authors(found: Iterable[_Element]) -> tuple[str, ...]:
    return kept(_author(one) for one in found if one.get("ValidYN") != "N")


def _author(author: _Element) -> str:
    family, given, initials, suffix, collective = (
        words(author.find(name))
        for name in ("LastName", "ForeName", "Initials", "Suffix", "CollectiveName")
    )
    return joined(family, given or initials, suffix) if family else group(collective)


def _languages(article: _Element) -> tuple[str, ...]:
    codes = (code.lower() for code in _texts(article, "Language"))
    return tuple(dict.fromkeys(code for code in codes if _LANGUAGE.fullmatch(code)))


def _valid_locations(article: _Element) -> tuple[str, ...]:
    return tuple(
        plain(one.text)
        for one in article.iterfind("ELocationID")
        if one.get("EIdType") == "doi" and one.get("ValidYN", "Y") != "N"
    )


def _identifiers(data: _Element | None, *kinds: str) -> tuple[str, ...]:
    """Return the record's own: those of its references stand elsewhere."""
    if data is None:
        return ()
    found = data.iterfind("ArticleIdList/ArticleId")
    return tuple(plain(one.text) for one in found if one.get("IdType") in kinds)


def _doi(*candidates: Iterable[str]) -> str | None:
    for text in (text for texts in candidates for text in texts):
        if found := _DOI.fullmatch(text):
            return found[1].lower()
    return None


def _pmcid(*candidates: Iterable[str]) -> str | None:
    for text in (text for texts in candidates for text in texts):
        if found := _PMCID.search(text.upper()):
            return found[0]
    return None
