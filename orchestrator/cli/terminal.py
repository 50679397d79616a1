"""Terminal output of answers, searches and ingests.

All external text (questions, passages, replies) is sanitised: terminals obey control characters, and literature
files may contain any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from orchestrator.cli.output.tables import print_facts
from orchestrator.rendering.sources import (
    Cited,
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
from orchestrator.rendering.text import answer_as_text, search_as_text
from orchestrator.rendering.words import (
    coverage_text,
    footer,
    money,
    place,
    safe,
    search_remarks,
    size,
    usage,
)
from posology.index.search.filters import describe
from posology.published.answers import (
    AskOutput,
    Disagreement,
    Position,
    Ranked,
    Source,
    Status,
)
from posology.published.calls import Spending
from posology.types import Resolution

if TYPE_CHECKING:
    from orchestrator.cli.index.forms import BadItem, IndexOutput, IngestOutput
    from posology.published.literature import SearchOutput

_COLOURS = {Status.ANSWERED: "green", Status.UNSUPPORTED: "yellow", Status.REFUSED: "cyan"}
#: skipped files that are listed
_SKIPPED = 20


def show_answer(console: Console, out: AskOutput, *, title: str | None = None) -> None:
    """Print question, answer or refusal, evidence with marked quotes, tokens and cost.

    A terminal gets a box with colours, anything else plain text.
    """
    if not console.is_terminal:
        console.out(answer_as_text(out, title=title), end="", highlight=False)
        return
    colour = _COLOURS[out.status] if out.judged or out.status is Status.REFUSED else "yellow"
    parts: list[RenderableType] = [Text(safe(out.question), style="bold")]
    body = Text(safe(answer_text(out)))
    if said := verdict(out):
        body = Text.assemble((f"{said}  ", f"bold {'yellow' if out.worded else colour}"), body)
    if body:
        parts += [Text(), body]
    for one in cited(out):
        parts += [Text(), _cited(one)]
    for conflict in out.conflicts:
        parts += [Text(), _conflict(conflict)]
    for remark in notices(out):
        parts += [Text(), Text(f"! {safe(remark)}", style="yellow")]
    if out.coverage is not None:
        style = "yellow" if out.coverage.partial else "dim"
        parts += [Text(), Text(coverage_text(out.coverage), style=style)]
    parts += [Rule(style="dim"), Text(footer(out), style="dim")]
    label = Text.assemble((f"{title}  " if title else "", "dim"), (outcome(out), f"bold {colour}"))
    console.print(Panel(Group(*parts), title=label, title_align="left", border_style=colour))


def show_search(console: Console, out: SearchOutput) -> None:
    """Print the passages in the mode's order: title, the nearest sentence, and their places in each ranking."""
    if not console.is_terminal:
        console.out(search_as_text(out), end="", highlight=False)
        return
    console.print(Text(f"{out.mode}: {safe(out.query)}", style="bold"))
    for number, hit in enumerate(out.hits, 1):
        console.print()
        console.print(Text.assemble((f"{number}. ", "bold"), _reference(hit.passage), _also(hit)))
        if hit.snippet:
            console.print(Padding(Text(safe(hit.snippet)), (0, 0, 0, 4)))
        places = (f"{name} {place(hit, name, out)}" for name in ("fused", "dense", "bm25"))
        known = "  ".join(filter(None, (link(hit.passage), hit.passage.id, *places)))
        console.print(Padding(Text(safe(known), style="dim"), (0, 0, 0, 4)))
    console.print()
    if not out.hits:
        console.print("no passages found")
    for remark in search_remarks(out):
        console.print(Text(f"! {safe(remark)}", style="yellow"))
    if out.bm25_rerank:
        rerank = "  ".join(safe(i) for i in out.bm25_rerank)
        console.print(Text(f"dense results re-ranked by BM25:  {rerank}", style="dim"))
    if out.filters:
        console.print(Text(safe(f"filters: {describe(out.filters)}"), style="dim"))
    console.print(Text(f"index {out.index}   {out.seconds * 1000:.0f} ms", style="dim"))


def show_ingest(console: Console, errors: Console, out: IngestOutput) -> None:
    """Print the counts of records; invalid ones go to ``errors`` with their reasons, and so do remarks."""
    for item in (*out.bad_records, *out.bad_files):
        errors.print(Text(_fault(item), style="yellow"), soft_wrap=True)
    if len(out.bad_records) < out.bad:
        errors.print(Text(f"… and {out.bad - len(out.bad_records)} more", style="yellow"))
    for item in out.remarks:
        errors.print(Text(f"remark: {_fault(item)}", style="dim"), soft_wrap=True)
    if len(out.remarks) < out.remarked:
        rest = out.remarked - len(out.remarks)
        errors.print(Text(f"… and {rest:,} more remarks", style="dim"))
    for one in out.skipped[:_SKIPPED]:
        errors.print(Text(safe(f"skipped {one.path}: {one.reason}"), style="dim"), soft_wrap=True)
    if len(out.skipped) > _SKIPPED:
        rest = len(out.skipped) - _SKIPPED
        errors.print(Text(f"… and {rest:,} more skipped: --json lists all", style="dim"))
    console.print(
        f"{out.good:,} valid records ({out.written:,} written, {out.unchanged:,} unchanged, "
        f"{out.replaced:,} replaced), {out.bad:,} invalid, {out.seconds:.1f} s, "
        f"{out.written_per_second:.1f} written/s",
        soft_wrap=True,
    )
    if out.spent_usd is not None:
        console.print(f"{money(out.spent_usd)} spent on embeddings")


def _fault(item: BadItem) -> str:
    where = item.path if item.line is None else f"{item.path}:{item.line}"
    where += f" ({item.record})" if item.record else ""
    return safe(f"{where}: {item.reason}")


def show_index(console: Console, out: IndexOutput, *, everything: bool = True) -> None:
    """Print the contents of an index.

    Args:
        console: where.
        out: its facts.
        everything: whether to print versions, models and the vectors' index, too.
    """
    changed = (out.published or out.created)[:16].replace("T", " ")
    years = "" if out.first_year is None else f"{out.first_year} to {out.last_year}"
    retracted = f", {out.retracted:,} of them retracted" if out.retracted else ""
    each = f", {size(out.bytes // out.passages)} a passage" if out.bytes and out.passages else ""
    rows: dict[str, object] = {
        "changed": f"{changed} UTC",
        "articles": f"{out.articles:,}",
        "passages": f"{out.passages:,}{retracted}",
        "years": years,
        "collections": ", ".join(f"{name} {count:,}" for name, count in out.sources.items()),
        "size": "" if out.bytes is None else f"{size(out.bytes)}{each}",
        "version": out.version,
        "place": out.uri,
        "first ingest": out.growth,
        "incomplete": f"{out.incomplete:,} passages" if out.incomplete else "",
        "without roles": f"{out.without_roles:,} passages: posology index upgrade"
        if out.without_roles
        else "",
        "unfinished": ", ".join(out.unfinished),
    }
    if everything:
        told = {
            "passages", "retracted", "published", "articles", "first_year", "last_year", "sources", "bytes", "version",
            "uri", "growth", "unfinished", "incomplete", "without_roles",
        }  # fmt: skip
        rows |= {
            name.replace("_", " "): value
            for name, value in out.model_dump().items()
            if name not in told
        }
    print_facts(
        console, [(name, str(value)) for name, value in rows.items() if value not in (None, "")]
    )
    if not everything:
        console.print(Text("--all shows versions, models and the vectors' index", style="dim"))


def show_attempts(console: Console, spent: Spending) -> None:
    """Print every attempt of a failed run."""
    for a in spent.attempts:
        used = "tokens unknown" if a.usage is None else usage(a.usage)
        ended = f"{a.outcome} {a.error}" if a.error else str(a.outcome)
        line = f"  call {a.call} attempt {a.attempt}: {ended}, {a.latency:.2f} s, {used}"
        if (a.tier, a.served or a.tier) != ("standard", "standard"):
            line += f", {a.served or a.tier}"
        if a.effort is not None:
            line += f", effort {a.effort}"
        console.print(Text(line, style="dim"))


def _cited(reference: Cited) -> RenderableType:
    parts: list[RenderableType] = [
        Text.assemble((f"[{reference.number}] ", "bold"), _reference(reference.source, paged=False))
    ]
    for item in reference.evidence:
        start = item.start - item.context_start
        end = start + item.end - item.start
        words = Text.assemble(
            safe(item.context[:start]),
            (safe(item.context[start:end]), "bold black on bright_yellow"),
            safe(item.context[end:]),
            (f"  {pages(item)}" if pages(item) else "", "dim"),
        )
        parts.append(Padding(words, (0, 0, 0, 4)))
    where = ", ".join(f"{item.start}–{item.end}" for item in reference.evidence)
    known = "  ".join(
        filter(None, (link(reference.source), reference.source.id, f"characters {where}"))
    )
    parts.append(Padding(Text(safe(known), style="dim"), (0, 0, 0, 4)))
    return Group(*parts)


def _conflict(conflict: Disagreement) -> RenderableType:
    open_ = conflict.resolution is Resolution.UNRESOLVED
    parts: list[RenderableType] = [
        Text.assemble(("Sources disagree: ", "bold yellow"), safe(conflict.claim))
    ]
    for word, side in (("for", conflict.supporting), ("against", conflict.opposing)):
        parts += [Padding(_position(word, position), (0, 0, 0, 4)) for position in side]
    outcome = "unresolved" if open_ else f"resolved in favour of the {conflict.resolution} side"
    parts.append(
        Padding(
            Text.assemble((outcome, "bold red" if open_ else "bold"), f": {safe(conflict.how)}"),
            (0, 0, 0, 4),
        )
    )
    return Group(*parts)


def _position(word: str, position: Position) -> RenderableType:
    head = Text.assemble(
        (f"{word:<8}", "bold"), f"{position.level}: ", _reference(position.passage)
    )
    quotes = [Padding(Text(f"“{safe(quote)}”"), (0, 0, 0, 8)) for quote in position.quotes]
    return Group(head, *quotes)


def _reference(source: Source, *, paged: bool = True) -> Text:
    text = Text(safe(source.title) or "(no title)", style="italic")
    if known := facts(source, paged=paged):
        text.append(f"  ({safe(known)})", style="not italic dim")
    if marked := warning(source):
        text.append(f"  {marked}", style="bold red" if source.retracted else "bold yellow")
    return text


def _also(hit: Ranked) -> Text:
    named = ", ".join(f"{one.id} ({one.why})" for one in hit.also)
    return Text(safe(f"  = {named}") if named else "", style="dim")
