"""Sources of an answer: their numbers, links and facts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING
from urllib.parse import quote

from posology.published.answers import (
    AskOutput,
    Evidence,
    SentenceSupportOutput,
    Source,
    Status,
    standing,
)
from posology.text.names import byline
from posology.text.quoting.references import references
from posology.types import Backing
from posology.types.flags import OWN, STOPPED

if TYPE_CHECKING:
    from posology.published.literature import QuoteCheck

#: characters of a DOI that a link keeps
_DOI = "/:;()._-"
#: ids of items in libraries of Zotero
_STUDY = re.compile(r"nct:(NCT[0-9]{8})")
_ZOTERO = re.compile(r"zotero:(groups/[0-9]+/)?([A-Z0-9]{8})")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cited:
    """A passage with its verified quotes."""

    #: from 1, in the order of the first quote
    number: int
    source: Source
    evidence: tuple[Evidence, ...]


def cited(out: AskOutput) -> tuple[Cited, ...]:
    """Return the quoted passages of an answer, each once."""
    order = {name: n for n, name in enumerate(dict.fromkeys(e.passage.id for e in out.evidence), 1)}
    ranked = sorted(out.evidence, key=lambda one: order[one.passage.id])
    return tuple(
        Cited(number=number, source=(quotes := tuple(group))[0].passage, evidence=quotes)
        for number, group in groupby(ranked, key=lambda one: order[one.passage.id])
    )


def answer_text(out: AskOutput) -> str:
    """Return the answer or the reason of the refusal, with the numbers of sources in brackets.

    What rules found wrong with a sentence stands behind its end.
    It is empty if the answer only repeats the quotes, as the offline reader's does.
    """
    if out.answer is None:
        return out.refusal or ""
    if not out.judged and out.evidence:
        # before its quotes it says what they lean to, if anything
        return out.answer.partition("“")[0].strip()
    text, end = "", 0
    for one in out.support.sentences if out.support else ():
        text += out.answer[end : one.end] + mark(one)
        end = one.end
    return numbered(out, text + out.answer[end:])


def verdict(out: AskOutput) -> str | None:
    """Return the verdict, marked where the answer's words give another one; ``None``: there is none."""
    if out.choice is None or out.worded is None:
        return out.choice
    return f"{out.choice} (its words say {out.worded})"


def numbered(out: AskOutput, text: str) -> str:
    """Return a part of an answer with the numbers of sources instead of their ids."""
    numbers = {one.source.id: str(one.number) for one in cited(out)}
    shown, end = "", 0
    for found in references(text, numbers):
        named = ", ".join(numbers.get(item, item) for item in found.items)
        shown += f"{text[end : found.start]}[{named}]"
        end = found.end
    return shown + text[end:]


def mark(one: SentenceSupportOutput) -> str:
    """Return the mark behind a sentence: what rules found, in words; empty: nothing.

    A judge's doubt alone is no mark: it doubts right sentences as often as wrong ones.
    """
    if one.backing is Backing.SUPPORTED or doubted(one):
        return ""
    if found := [each.words for each in one.differences if each.rule.objects]:
        return f" ({'; '.join(found)})"
    # of an answer that was stored without words
    if failed := [rule for rule in one.failed if rule.objects]:
        return f" (differs from its quotes: {', '.join(failed)})"
    return " (no quote behind it)"


def notices(out: AskOutput) -> tuple[str, ...]:
    """Return the remarks of an answer. The first names the sentences that nothing confirms, if there are any.

    Rules alone have passed these, and they do not find every quote that says something else, or the opposite.
    """
    shown = out.support.sentences if out.judged and out.support else ()
    open_ = [
        number
        for number, one in enumerate(shown, 1)
        if one.backing is not Backing.SUPPORTED and not mark(one)
    ]
    if not open_:
        return out.notes
    which = "this"
    if len(open_) < len(shown):
        which = f"sentence{'s' * (len(open_) > 1)} {_listed(open_)} of {len(shown)}"
    return (f"Not confirmed: whether the quotes say {which}. Read them.", *out.notes)


def _listed(numbers: list[int]) -> str:
    *first, last = map(str, numbers)
    return f"{', '.join(first)} and {last}" if first else last


def doubted(one: SentenceSupportOutput) -> bool:
    """Return whether nothing but the judge's word speaks against a sentence, whatever an older version made of it."""
    if one.backing is Backing.SUPPORTED or any(rule.objects for rule in one.failed):
        return False
    return bool(one.evidence) or one.backing is Backing.UNCLEAR


def outcome(out: AskOutput) -> str:
    """Return the outcome in words."""
    match out.status:
        case Status.REFUSED:
            return "refused"
        case Status.UNSUPPORTED:
            return "UNSUPPORTED: none of its quotes was found in the passages"
        case Status.ANSWERED:
            return "answered" if out.judged else "Passages found (no language model read them)"


def link(source: Source) -> str | None:
    """Return the address of an article at PubMed, PubMed Central, its publisher or in Zotero, or of a registry's record.

    ``None``: unknown.
    """
    if source.pmid:
        return f"https://pubmed.ncbi.nlm.nih.gov/{quote(source.pmid, safe='')}/"
    if source.pmcid:
        return f"https://pmc.ncbi.nlm.nih.gov/articles/{quote(source.pmcid, safe='')}/"
    if source.doi:
        return f"https://doi.org/{quote(source.doi, safe=_DOI)}"
    if found := _STUDY.fullmatch(source.parent or source.id):
        return f"https://clinicaltrials.gov/study/{found[1]}"
    return item_link(source.parent or source.id)


def item_link(document: str) -> str | None:
    """Return the address that shows a document's item in Zotero; ``None``: it is none of a library."""
    if found := _ZOTERO.fullmatch(document):
        return f"zotero://select/{found[1] or 'library/'}items/{found[2]}"
    return None


def pages(of: Source | Evidence | QuoteCheck) -> str:
    """Return the pages of a passage or a quote, ``p. 3`` or ``pp. 3–4, read by OCR``; empty: unknown."""
    if of.page is None:
        return ""
    one = of.last_page in (None, of.page)
    where = f"p. {of.page}" if one else f"pp. {of.page}–{of.last_page}"
    return f"{where}, read by OCR" if of.ocr else where


def unread(count: int | None) -> str:
    """Return the number of a file's pages that were not read, ``2 of its pages not read``; empty: none, or unknown."""
    return f"{count:,} of its pages not read" if count else ""


def facts(source: Source, *, paged: bool = True) -> str:
    """Return authors, journal, year, identifier, publication types, section, pages and unread pages, as far as known.

    Args:
        source: the passage.
        paged: whether to include the pages; not where each quote names its own.
    """
    known: list[str] = [
        byline(source.authors),
        " ".join(filter(None, (source.journal, str(source.year) if source.year else ""))),
        f"PMID {source.pmid}" if source.pmid else "",
        *source.publication_types,
        source.section or "",
        pages(source) if paged else "",
        unread(source.unread_pages),
    ]
    return ", ".join(filter(None, known))


def warning(source: Source) -> str:
    """Return the standing that a reader must see, with the sources that state it; empty: nothing is stated.

    Who states it is left out where the article's own record alone does.
    """
    if any(flag.source != OWN or flag.kind in STOPPED.values() for flag in source.flags):
        return standing(source.flags)
    if source.retracted:
        return "RETRACTED"
    return "EXPRESSION OF CONCERN" if source.concern else ""


def articles(sources: Iterable[Source]) -> Sequence[Source]:
    """Return each article once, whichever of its parts were found."""
    found: dict[str, Source] = {}
    for one in sources:
        found.setdefault(one.parent or one.id, one)
    return list(found.values())
