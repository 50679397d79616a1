"""Front of an article: identifiers, journal, date, kind, and relations to other articles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from posology.corpus.items import NoticeKind
from posology.corpus.jats.dates import published
from posology.corpus.jats.kinds import LANGUAGES, PUBLICATION_TYPES, SUBJECTS
from posology.corpus.jats.text import flat, line
from posology.corpus.references.markup import unmarked
from posology.corpus.references.standing import says_retracted
from posology.text.names import group, joined, kept, person
from posology.types import Passage

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_HREF = "{http://www.w3.org/1999/xlink}href"
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"

_PMID = re.compile(r"(?:pmid:\s*)?([1-9][0-9]{0,11})", re.IGNORECASE)
_PMCID = re.compile(r"(?:PMC)?([0-9]{1,12})(?:\.[0-9]+)?", re.IGNORECASE)
_DOI = re.compile(
    r"(?:https?://(?:dx\.)?doi\.org/|doi:\s*)?(10\.[0-9]{4,9}/[!-~]{1,200})", re.IGNORECASE
)
_TRIAL = re.compile(r"\b(?:NCT[0-9]{8}|ISRCTN[0-9]{6,8}|ACTRN[0-9]{14}|DRKS[0-9]{8})\b")

#: relations by which this article is a notice of the named one
_ABOUT_OTHER = {
    "retracted-article": NoticeKind.RETRACTION,
    "partial-retraction": NoticeKind.CONCERN,
    "object-of-concern": NoticeKind.CONCERN,
}
#: relations by which the named article is a notice of this one
_ABOUT_SELF = {
    "retraction-forward": NoticeKind.RETRACTION,
    "concern-forward": NoticeKind.CONCERN,
}
#: relations in either direction; the article of this type is the notice
_EITHER = {
    "retraction": NoticeKind.RETRACTION,
    "expression-of-concern": NoticeKind.CONCERN,
}
_SAME_WORK = ("preprint", "peer-reviewed-article", "republished-article", "republication")


@dataclass(frozen=True, kw_only=True, slots=True)
class Front:
    """The front of an article."""

    #: the article without a text; the fields that its parts share
    article: Passage
    #: of other records of the same work, ``pmid:…``, ``pmcid:…`` or ``doi:…``: said of the abstract, since PubMed's
    #: record holds the abstract and no part of the body
    same_work: tuple[str, ...]
    #: notices that it gives of other articles, and of its own copies
    notices: tuple[tuple[str, NoticeKind], ...]


def front(article: Element, *, fallback: str | None) -> Front | None:
    """Read an article's front; ``None``: it has no identifier.

    Args:
        article: ``<article>``, its namespaces gone.
        fallback: its id if it has neither a PMC identifier nor a PMID nor a DOI.
    """
    meta = article.find("front/article-meta")
    if meta is None:
        meta = article.makeelement("article-meta")
    pmcid, pmid, doi = _identifiers(meta)
    name = _name(pmcid=pmcid, pmid=pmid, doi=doi) or fallback
    if name is None:
        return None
    kind = (article.get("article-type") or "").lower()
    title = _title(meta)
    stated = published(meta)
    own, others, same = _related(article, meta, kind)
    if says_retracted(title) or kind == "retracted-article":
        own.add(NoticeKind.RETRACTION)
    passage = Passage(
        id=name,
        text="",
        title=title,
        pmid=pmid,
        journal=_journal(article),
        year=int(stated[:4]) if stated else None,
        publication_types=_publication_types(meta, kind),
        mesh=_mesh(meta),
        retracted=NoticeKind.RETRACTION in own,
        concern=NoticeKind.CONCERN in own,
        source="pmc" if pmcid else "jats",
        doi=doi,
        pmcid=pmcid,
        published=stated,
        languages=_languages(article),
        trials=_trials(meta),
        authors=_authors(meta),
    )
    # of copies of it elsewhere, as PubMed's record
    copies = [f"pmid:{pmid}"] * bool(pmid) + [f"doi:{doi}"] * bool(doi)
    others += [(copy, what) for copy in copies for what in sorted(own)]
    if pmid and name != f"pmid:{pmid}":
        same.insert(0, f"pmid:{pmid}")
    return Front(
        article=passage,
        same_work=tuple(dict.fromkeys(other for other in same if other != name)),
        notices=tuple(dict.fromkeys((target, what) for target, what in others if target != name)),
    )


def _identifiers(meta: Element) -> tuple[str | None, str | None, str | None]:
    stated: dict[str, str] = {}
    for element in meta.findall("article-id"):
        stated.setdefault((element.get("pub-id-type") or "").lower(), flat(element))
    pmcid = _PMCID.fullmatch(stated.get("pmcid") or stated.get("pmc") or "")
    pmid = _PMID.fullmatch(stated.get("pmid", ""))
    doi = _DOI.fullmatch(stated.get("doi", ""))
    return (
        f"PMC{pmcid[1]}" if pmcid else None,
        pmid[1] if pmid else None,
        doi[1].lower() if doi else None,
    )


def _name(*, pmcid: str | None, pmid: str | None, doi: str | None) -> str | None:
    if pmcid:
        return f"pmcid:{pmcid}"
    if pmid:
        return f"pmid:{pmid}"
    return f"doi:{doi}" if doi else None


def _title(meta: Element) -> str:
    group = meta.find("title-group")
    if group is None:
        return ""
    title = line(group.find("article-title"))
    for subtitle in filter(None, map(line, group.findall("subtitle"))):
        title += f"{'' if not title or title[-1] in ':.?!' else ':'} {subtitle}"
    return unmarked(title).strip()


def _journal(article: Element) -> str | None:
    meta = article.find("front/journal-meta")
    if meta is None:
        return None
    # NLM's abbreviation first, so that a journal has one name here and in PubMed's records: filters compare it
    for kind in ("nlm-ta", "iso-abbrev"):
        for element in meta.findall("journal-id"):
            if element.get("journal-id-type") == kind and (name := line(element)):
                return name
    for path in ("journal-title-group/journal-title", "journal-title"):
        if name := line(meta.find(path)):
            return name
    return None


def _authors(meta: Element) -> tuple[str, ...]:
    """Return the authors; contributors of another kind, such as editors, are left out."""
    contributors = (
        one
        for one in meta.iterfind("contrib-group/contrib")
        if (one.get("contrib-type") or "author") == "author"
    )
    return kept(_author(one) for one in contributors)


def _author(contributor: Element) -> str:
    # the first of several spellings
    name = next(contributor.iter("name", "string-name", "collab"), None)
    if name is None:
        return ""
    if name.tag == "collab":
        # its members may be listed in it
        return group(line(name) if name.find("contrib-group") is None else name.text or "")
    family, given, suffix = (line(name.find(part)) for part in ("surname", "given-names", "suffix"))
    return joined(family or given, given if family else "", suffix) or person(
        line(name), natural=True
    )


def _publication_types(meta: Element, kind: str) -> tuple[str, ...]:
    subjects = map(line, meta.iterfind("article-categories//subject"))
    values = (SUBJECTS.get(subject.casefold()) for subject in subjects)
    return tuple(dict.fromkeys([*PUBLICATION_TYPES.get(kind, ()), *filter(None, values)]))


def _mesh(meta: Element) -> tuple[str, ...]:
    return tuple(
        dict.fromkeys(
            word
            for group in meta.findall("kwd-group")
            if (group.get("kwd-group-type") or "").lower() == "mesh"
            for word in map(line, group.findall("kwd"))
            if word
        )
    )


def _languages(article: Element) -> tuple[str, ...]:
    code = (article.get(_LANG) or "").lower().partition("-")[0]
    code = LANGUAGES.get(code, code)
    return (code,) if code in LANGUAGES.values() else ()


def _trials(meta: Element) -> tuple[str, ...]:
    """Registrations of its own: of links to a registry, and of what stands under ``Trial registration``."""
    values: list[str] = []
    for element in meta.iter("related-object", "ext-link", "sec"):
        what = f"{element.get('ext-link-type', '')} {element.get('source-type', '')}".lower()
        if element.tag == "sec":
            what = line(element.find("title")).lower()
        if "trial" in what or "registr" in what or "clintrial" in what:
            values += (element.get(_HREF, ""), element.get("document-id", ""), flat(element))
    return tuple(dict.fromkeys(_TRIAL.findall(" ".join(values))))


def _related(
    article: Element, meta: Element, kind: str
) -> tuple[set[NoticeKind], list[tuple[str, NoticeKind]], list[str]]:
    """Return the notices of this article, those of others, and the other records of the same work."""
    own: set[NoticeKind] = set()
    others: list[tuple[str, NoticeKind]] = []
    same: list[str] = []
    for element in _links(article, meta):
        how = (element.get("related-article-type") or "").lower()
        target = _target(element)
        what = _EITHER.get(how)
        about_other = _ABOUT_OTHER.get(how) or (what if kind == how else None)
        about_self = _ABOUT_SELF.get(how) or (what if kind != how else None)
        if about_self is not None:
            own.add(about_self)
        elif about_other is not None and target is not None:
            others.append((target, about_other))
        elif how in _SAME_WORK and target is not None:
            same.append(target)
    return own, others, same


def _links(article: Element, meta: Element) -> Iterator[Element]:
    yield from meta.findall("related-article")
    # a notice often names its article in its text
    body = article.find("body")
    if body is not None:
        yield from body.iter("related-article")


def _target(element: Element) -> str | None:
    stated = (element.get(_HREF) or "").strip()
    match (element.get("ext-link-type") or "").lower():
        case "pmid" | "pubmed":
            found = _PMID.fullmatch(stated)
            return f"pmid:{found[1]}" if found else None
        case "pmc" | "pmcid":
            found = _PMCID.fullmatch(stated)
            return f"pmcid:PMC{found[1]}" if found else None
    found = _DOI.fullmatch(stated)
    return f"doi:{found[1].lower()}" if found else None
