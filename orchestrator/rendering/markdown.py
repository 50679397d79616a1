"""Answers and searches as Markdown, to paste into notes, tickets and pull requests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from orchestrator.rendering.sources import (
    answer_text,
    cited,
    facts,
    item_link,
    link,
    notices,
    outcome,
    pages,
    verdict,
    warning,
)
from orchestrator.rendering.words import coverage_text, footer, safe
from posology.published.answers import AskOutput, PassageOutput, Source

if TYPE_CHECKING:
    from posology.published.literature import SearchOutput

#: and what GitHub's Markdown makes a link of
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!@]|:(?=//)|(?<=www)\.)", re.IGNORECASE)
#: the id of a passage of an item in a library of Zotero, as it is rendered
_ZOTERO_CODE = re.compile(r"<code>((zotero:[A-Za-z0-9/]+)(?:#[0-9]+)?)</code>")
#: what begins a list, a heading or a rule
_START = re.compile(r"^(\d*)([-+=.)])")


def answer_as_markdown(out: AskOutput) -> str:
    """Return an answer or a refusal with its sources."""
    return "\n".join(_answer(out)) + "\n"


def answer_as_note(out: AskOutput) -> str:
    """Return an answer or a refusal with its sources as HTML, for a note; ids of Zotero's items are links to them."""
    from markdown_it import MarkdownIt

    # escaped text has no tags
    text = answer_as_markdown(out).replace("<sub>", "").replace("</sub>", "")
    html = MarkdownIt("commonmark", {"html": False}).render(text)
    return _ZOTERO_CODE.sub(lambda each: f'<a href="{item_link(each[2])}">{each[1]}</a>', html)


def search_as_markdown(out: SearchOutput) -> str:
    """Return the passages of a search, best first."""
    return "\n".join(_search(out)) + "\n"


def passage_as_markdown(out: PassageOutput) -> str:
    """Return a passage in full under the title of its article."""
    text = "\n\n".join(escaped(line) for line in out.text.splitlines() if line.strip())
    return f"## {_heading(out.passage)}\n\n{text}\n\n<sub>{escaped(out.index)}</sub>\n"


def escaped(text: str) -> str:
    """Return text that Markdown shows as it is, in one line."""
    return inert(" ".join(safe(text).split()))


def inert(text: str) -> str:
    """Return a line, or a piece of one with the spaces around it, that Markdown shows as it is."""
    return _START.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", text))


def _answer(out: AskOutput) -> Iterator[str]:
    yield f"## {escaped(out.question)}"
    yield ""
    yield f"**{escaped(outcome(out))}**"
    body = "  ".join(filter(None, (verdict(out), answer_text(out))))
    if body:
        yield ""
        # the numbers of sources read better without backslashes, where they cannot begin a link
        yield re.sub(r"\\\[(\d[^\\\[\]]*)\\\](?![(:\\])", r"[\1]", escaped(body))
    yield from sources(out)
    yield from remarks(out)
    yield ""
    yield f"<sub>{escaped(footer(out))}</sub>"


def sources(out: AskOutput) -> Iterator[str]:
    """Yield the lines of the quoted passages of an answer, numbered, with their quotes."""
    for one in cited(out):
        yield ""
        yield f"{one.number}. {_heading(one.source, paged=False)}"
        for item in one.evidence:
            yield ""
            where = f" ({pages(item)})" if pages(item) else ""
            yield f"   > {escaped(item.quote)}{where}"


def remarks(out: AskOutput) -> Iterator[str]:
    """Yield the lines of what contradicts an answer, and of what its reader must know."""
    for conflict in out.conflicts:
        yield ""
        yield f"**Sources disagree:** {escaped(conflict.claim)} ({escaped(conflict.how)})"
        yield ""
        for word, side in (("for", conflict.supporting), ("against", conflict.opposing)):
            for position in side:
                yield f"- {word}, {position.level}: {_heading(position.passage)}"
                for quote in position.quotes:
                    yield f"  “{escaped(quote)}”"
    for remark in notices(out):
        yield ""
        yield f"*{escaped(remark)}*"
    if out.coverage is not None:
        yield ""
        yield escaped(coverage_text(out.coverage))


def _search(out: SearchOutput) -> Iterator[str]:
    yield f"## {escaped(out.query)}"
    yield ""
    for number, hit in enumerate(out.hits, 1):
        yield f"{number}. {_heading(hit.passage)}"
        if hit.snippet:
            yield ""
            yield f"   > {escaped(hit.snippet)}"
            yield ""
    if not out.hits:
        yield "No passages found."
    if out.growth:
        yield f"*{escaped(out.growth)}*"
    yield ""
    yield f"<sub>{escaped(f'{out.mode}, index {out.index}')}</sub>"


def _heading(source: Source, *, paged: bool = True) -> str:
    title = escaped(source.title or "(no title)")
    address = link(source)
    named = f"[{title}](<{address}>)" if address else f"*{title}*"
    marked = f" **{warning(source)}**" if warning(source) else ""
    known = escaped(facts(source, paged=paged))
    return f"{named}{f' ({known})' if known else ''} {_code(source.id)}{marked}"


def _code(text: str) -> str:
    line = " ".join(safe(text).split())
    return escaped(line) if "`" in line else f"`{line}`"
