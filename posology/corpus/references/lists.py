"""Texts that are lists of references or of identifiers in forms that are not read, and what to do instead.

As prose they would be one document: papers without titles, years and marks of retraction, and one paper's sentence under
another's name.
"""

from __future__ import annotations

import re
from pathlib import Path

from posology.corpus.decoding import beginning_text

#: bytes by which a list is known
_START = 65_536

_PUBMED = "in PubMed choose Save, Format PubMed, and ingest that file"
_RIS = "export RIS, and ingest that file"
_PMID = re.compile(r"^PMID: ?[0-9]{1,9}\b", re.MULTILINE)
_CITED = re.compile(r"\bPMID: ?[0-9]{1,9}\b")
#: patterns at the beginning of a text, and what such a text is
_FORMS = (
    (
        r"1[:.] (?:[^\n]+\n){0,20}?[^\n]*\bPMID: ?[0-9]{1,9}\b",
        "PubMed's Summary form, which has no abstracts", _PUBMED,
    ),
    (
        r"1[:.] (?:In: [^\n]{2,200}|[^\n]{2,120}?\. (?:18|19|20)[0-9]{2}\b[^\n]*)\n(?:[^\n]*\n){2,300}?PMID: ?[0-9]",
        "PubMed's Abstract form", _PUBMED,
    ),
    (r"Scopus\s*\nEXPORT DATE:", "Scopus' plain text", f"in Scopus {_RIS}"),
    (r"(?:[^\n]*\n){0,5}?(?:Record: 1\s*\n|Title:[^\n]*\n(?:[^\n]*\n){0,30}?(?:Database|Persistent link):)", "EBSCOhost's text", f"in EBSCOhost {_RIS}"),
    (r"(?:[^\n]*\n){0,20}?(?:Report Information from ProQuest|Document 1 of [0-9,]+)\b", "ProQuest's text", f"in ProQuest {_RIS}"),
    (r"(?:[^\n]*\n){0,5}?RECORD 1\s*\n\s*\n?TITLE\b", "Embase's text", f"in Embase {_RIS}"),
)  # fmt: skip
_LISTS = tuple((re.compile(rf"\s*+{form}"), what, instead) for form, what, instead in _FORMS)
#: what other files begin with, and how they are named
_OTHER = (
    (re.compile(r"\s*(?:<\?xml\b|<(?:PubmedArticleSet|pmc-articleset|article|xml)[\s>])"), "XML", ".xml"),
    (re.compile(r"\s*(?:<!doctype html|<html\b)", re.IGNORECASE), "a web page", ".html"),
    (re.compile(r"\s*@[A-Za-z]{3,20}\s*\{[^\n,]{1,200},\s*\n?\s*[A-Za-z_-]{3,30}\s*="), "BibTeX", ".bib"),
    (re.compile(r"\s*(?:\[\s*)?\{\s*\"[^\"\n]{1,40}\"\s*:"), "JSON", ".jsonl, and write one record per line"),
)  # fmt: skip
_RTF = "{\\rtf"

#: of a list of identifiers: the rest of a line that is a comment
_COMMENT = re.compile(r"(?:^|(?<=[ \t]))(?:#|//)[^\n]*", re.MULTILINE)
_ADDRESS = r"(?:https?://[a-z.]{1,40}/(?:pubmed/|(?:pmc/)?articles/)?)?"
#: forms of identifiers, in small letters, with what they are called
_LISTED = {
    "PMIDs": re.compile(_ADDRESS + r"(?:pmid:?)?[0-9]{1,9}/?", re.ASCII),
    "PMCIDs": re.compile(_ADDRESS + r"(?:pmcid:?)?pmc[0-9]{1,9}/?", re.ASCII),
    "DOIs": re.compile(_ADDRESS + r"(?:doi:?)?10\.[0-9]{4,9}/[!-~]+", re.ASCII),
}
#: digits from which a number may be a PMID; a file with "12" is a text
_LONG = re.compile(r"[0-9]{4}")
_HEADS = frozenset(
    {"pmid", "pmids", "pmid:", "pmids:", "pmcid", "pmcids", "pmcid:", "doi", "dois", "doi:", "id", "ids"}
)  # fmt: skip


def no_prose(path: Path) -> str | None:
    """Return why a text is not read as prose, and what to do; ``None``: it is prose."""
    start = beginning_text(path, _START)
    return _list(start) or _other(start) or _identifiers(start)


def _list(start: str) -> str | None:
    for form, what, instead in _LISTS:
        if form.match(start):
            found = len(_PMID.findall(start)) or len(_CITED.findall(start))
            some = (
                f", of {'more than ' if len(start) >= _START else ''}{found:,} {'record' if found == 1 else 'records'}"
                if found
                else ""
            )
            return f"a list of references in {what}{some}: {instead}"
    return None


def _other(start: str) -> str | None:
    if start.startswith(_RTF):
        return "RTF, not plain text: save it as PDF or .docx"
    for form, what, suffix in _OTHER:
        if form.match(start):
            return f"{what}, not plain text: rename the file to {suffix}"
    return None


def _identifiers(start: str) -> str | None:
    whole = len(start) < _START
    if not whole:
        start = start.rpartition("\n")[0]  # its last one may be cut off
    words = _COMMENT.sub("", start).lower().replace(",", " ").replace(";", " ").split()
    listed = [word for word in words if word not in _HEADS]
    for name, form in _LISTED.items():
        if all(map(form.fullmatch, listed)) and any(map(_LONG.search, listed)):
            some = "" if whole else "more than "
            return (
                f"a list of {some}{len(listed):,} {name}, without abstracts: search PubMed for them, choose Save, Format "
                "PubMed, and ingest that file"
            )
    return None
