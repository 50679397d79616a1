"""Answers and searches as plain text: no boxes, no colours, no wrapping, so that a pipe can search and paste it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from orchestrator.rendering.sources import (
    answer_text,
    cited,
    facts,
    link,
    notices,
    outcome,
    pages,
    verdict,
    warning,
)
from orchestrator.rendering.words import coverage_text, footer, place, safe, search_remarks
from posology.index.search.filters import describe
from posology.published.answers import (
    AskOutput,
    Disagreement,
    PassageOutput,
    Position,
    Source,
)
from posology.types import Resolution

if TYPE_CHECKING:
    from posology.published.literature import QuoteCheck, QuoteSearch, SearchOutput

_INDENT = "    "


def answer_as_text(out: AskOutput, *, title: str | None = None) -> str:
    """Return an answer or a refusal with its sources."""
    return _joined(_answer(out, title))


def search_as_text(out: SearchOutput) -> str:
    """Return the passages of a search, best first: title, the nearest sentence, link and places."""
    return _joined(_search(out))


def passage_as_text(out: PassageOutput) -> str:
    """Return a passage in full, with the known facts of its article."""
    return _joined(_passage(out))


def quote_as_text(out: QuoteSearch) -> str:
    """Return the places of a quote, with the words that differ."""
    return _joined(_quote(out))


def heading(source: Source, *, paged: bool = True) -> str:
    """Return title, facts and warning of a source in one line; see :func:`facts`."""
    known = facts(source, paged=paged)
    return "  ".join(
        filter(None, (source.title or "(no title)", f"({known})" if known else "", warning(source)))
    )


def _joined(lines: Iterator[str]) -> str:
    return "".join(f"{safe(line).rstrip()}\n" for line in lines)


def _answer(out: AskOutput, title: str | None) -> Iterator[str]:
    yield out.question
    yield f"{title}: {outcome(out)}" if title else outcome(out)
    body = "  ".join(filter(None, (verdict(out), answer_text(out))))
    if body:
        yield ""
        yield body
    for one in cited(out):
        yield ""
        yield f"[{one.number}] {heading(one.source, paged=False)}"
        for item in one.evidence:
            where = f" ({pages(item)})" if pages(item) else ""
            yield f"{_INDENT}“{_line(item.quote)}”{where}"
        where = ", ".join(f"{item.start}–{item.end}" for item in one.evidence)
        yield f"{_INDENT}{'  '.join(filter(None, (link(one.source), one.source.id)))}  characters {where}"
    for conflict in out.conflicts:
        yield ""
        yield from _conflict(conflict)
    for remark in notices(out):
        yield ""
        yield f"! {remark}"
    if out.coverage is not None:
        yield ""
        yield coverage_text(out.coverage)
    yield ""
    yield footer(out)


def _passage(out: PassageOutput) -> Iterator[str]:
    source = out.passage
    yield heading(source)
    yield ""
    yield out.text
    yield ""
    known = {
        "id": source.id,
        "link": link(source),
        "DOI": source.doi,
        "PMCID": source.pmcid,
        "published": source.published,
        "part of": source.parent,
        "pages": pages(source),
        "trials": ", ".join(source.trials),
        "MeSH": "; ".join(out.mesh),
        "languages": ", ".join(out.languages),
        "collection": source.source,
        "index": out.index,
    }
    yield from (f"{name:<12}{value}" for name, value in known.items() if value)


def _conflict(conflict: Disagreement) -> Iterator[str]:
    yield f"Sources disagree: {conflict.claim}"
    for word, side in (("for", conflict.supporting), ("against", conflict.opposing)):
        for one in side:
            yield from _position(word, one)
    if conflict.resolution is Resolution.UNRESOLVED:
        yield f"{_INDENT}unresolved: {conflict.how}"
    else:
        yield f"{_INDENT}resolved in favour of the {conflict.resolution} side: {conflict.how}"


def _position(word: str, position: Position) -> Iterator[str]:
    yield f"{_INDENT}{word} {position.level}: {heading(position.passage)}"
    for quote in position.quotes:
        yield f"{_INDENT * 2}“{_line(quote)}”"


def _search(out: SearchOutput) -> Iterator[str]:
    for number, hit in enumerate(out.hits, 1):
        yield f"{number}. {hit.passage.id}  {heading(hit.passage)}"
        if hit.snippet:
            yield f"{_INDENT}{_line(hit.snippet)}"
        places = (f"{name} {place(hit, name, out)}" for name in ("fused", "dense", "bm25"))
        yield f"{_INDENT}{'  '.join(filter(None, (link(hit.passage), *places)))}"
        for also in hit.also:
            yield f"{_INDENT}= {also.id} ({also.why})"
    if not out.hits:
        yield "no passages found"
    for remark in search_remarks(out):
        yield f"! {remark}"
    if out.filters:
        yield f"filters: {describe(out.filters)}"
    yield f"{out.mode}: {out.query} · index {out.index} · {out.seconds * 1000:.0f} ms"


#: why a quote that stands in a passage may not be cited
_OBJECTIONS = {
    "too_short": "it is too short to be evidence",
    "cuts_token": "it begins or ends within a word or a number",
    "drops_comparison": "it leaves out a sign or a comparison",
    "drops_negation": "it leaves out a negation",
    "unreadable": "its sentence was not read whole from the file",
}


def _quote(out: QuoteSearch) -> Iterator[str]:
    for check in out.places:
        yield f"{_found(check)}: {check.passage.id}  {heading(check.passage, paged=False)}"
        if check.wording is not None:
            where = f" ({pages(check)})" if pages(check) else ""
            yield f"{_INDENT}“{_line(check.wording)}”{where}"
        for one in check.differences:
            yield f"{_INDENT}quote: {one.quote or 'nothing'} · passage: {one.passage or 'nothing'}"
        if check.reason == "differs" and not check.differences:
            yield f"{_INDENT}only case, spaces or punctuation differ"
        if known := link(check.passage):
            yield f"{_INDENT}{known}"
    if not out.places:
        yield f"Not found: none of the {out.compared:,} passages of {out.index} that share most words with it has it, or nearly."


def _found(check: QuoteCheck) -> str:
    if check.verified:
        return "Word for word"
    if check.reason == "differs":
        return "Nearly"
    return f"Word for word, but {_OBJECTIONS[check.reason or '']}"


def _line(text: str) -> str:
    return " ".join(text.split())
