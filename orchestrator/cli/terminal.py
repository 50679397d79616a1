"""Terminal output of answers, searches and ingests.

All external text (questions, passages, replies) is sanitised: terminals obey control characters, and literature
files may contain any.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from posology.index.search.filters import describe
from posology.published.answers import (
    AskOutput,
    CoverageOutput,
    Disagreement,
    Evidence,
    Position,
    Ranked,
    Source,
    Status,
)
from posology.published.calls import Spending, UsageOutput
from posology.types import Filters, Resolution

if TYPE_CHECKING:
    from orchestrator.cli.index.forms import IndexOutput, IngestOutput, SearchOutput

_STYLES = {
    Status.ANSWERED: ("green", "answered"),
    Status.UNSUPPORTED: ("yellow", "UNSUPPORTED: none of its quotes was found in the passages"),
    Status.REFUSED: ("cyan", "refused"),
}
#: characters that reorder the text around them
_REORDERING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def safe(text: str) -> str:
    """Return the text without control characters and overrides of the reading direction."""
    return "".join(
        c
        for c in text
        if c in "\n\t" or (unicodedata.category(c) not in ("Cc", "Cs") and c not in _REORDERING)
    )


def plain_table(*columns: str, left: Collection[str] = (), title: str | None = None) -> Table:
    """Return a table without borders; columns are right-aligned, except those in ``left``."""
    text = None if title is None else Text(safe(title))
    table = Table(box=None, pad_edge=False, header_style="bold", title=text, title_justify="left")
    for name in columns:
        table.add_column(name, no_wrap=True, justify="left" if name in left else "right")
    return table


def show_answer(console: Console, out: AskOutput, *, title: str | None = None) -> None:
    """Print question, answer or refusal, evidence with marked quotes, tokens and cost."""
    colour, word = _STYLES[out.status]
    head = Text(safe(out.question), style="bold")
    body = Text(safe(out.answer if out.answer is not None else out.refusal or ""))
    if out.choice is not None:
        body = Text.assemble((f"{out.choice}  ", f"bold {colour}"), body)
    parts: list[RenderableType] = [head, Text(), body]
    for number, item in enumerate(out.evidence, 1):
        parts += [Text(), _evidence(number, item)]
    for conflict in out.conflicts:
        parts += [Text(), _conflict(conflict)]
    for remark in out.notes:
        parts += [Text(), Text(f"! {safe(remark)}", style="yellow")]
    if out.coverage is not None:
        parts += [Text(), _coverage(out.coverage)]
    parts += [Rule(style="dim"), _footer(out)]
    label = Text.assemble((f"{title}  " if title else "", "dim"), (word, f"bold {colour}"))
    console.print(Panel(Group(*parts), title=label, title_align="left", border_style=colour))


def show_search(console: Console, out: SearchOutput) -> None:
    """Print the passages in the mode's order, with their places in each ranking."""
    table = Table(title=Text(f"{out.mode}: {safe(out.query)}"), title_justify="left", expand=True)
    for name in ("#", "passage", "fused", "dense", "bm25"):
        table.add_column(name, justify="left" if name == "passage" else "right")
    for number, hit in enumerate(out.hits, 1):
        table.add_row(
            str(number),
            Text.assemble(
                (safe(hit.passage.id), "bold"), "  ", _reference(hit.passage), _also(hit)
            ),
            *(_place(hit, method) for method in ("fused", "dense", "bm25")),
        )
    console.print(table)
    if not out.hits:
        console.print("no passages found")
    if out.bm25_rerank:
        rerank = "  ".join(safe(i) for i in out.bm25_rerank)
        console.print(Text(f"dense results re-ranked by BM25:  {rerank}", style="dim"))
    if out.filters:
        console.print(Text(safe(f"filters: {describe(out.filters.to(Filters))}"), style="dim"))
    console.print(Text(f"index {out.index}   {out.seconds * 1000:.0f} ms", style="dim"))


def show_ingest(console: Console, errors: Console, out: IngestOutput) -> None:
    """Print the counts of records; invalid ones go to ``errors`` with their reasons."""
    for item in (*out.bad_records, *out.bad_files):
        where = item.path if item.line is None else f"{item.path}:{item.line}"
        where += f" ({item.record})" if item.record else ""
        errors.print(Text(safe(f"{where}: {item.reason}"), style="yellow"), soft_wrap=True)
    if len(out.bad_records) < out.bad:
        errors.print(Text(f"… and {out.bad - len(out.bad_records)} more", style="yellow"))
    console.print(
        f"{out.good:,} valid records ({out.written:,} written, {out.unchanged:,} unchanged, "
        f"{out.replaced:,} replaced), {out.bad:,} invalid, {out.seconds:.1f} s, "
        f"{out.written_per_second:.1f} written/s"
    )
    if out.spent_usd is not None:
        console.print(f"{money(out.spent_usd)} spent on embeddings")


def show_index(console: Console, out: IndexOutput) -> None:
    """Print the contents of an index."""
    table = Table(show_header=False)
    for name, value in out.model_dump().items():
        shown = ", ".join(value) if isinstance(value, tuple) else value
        text = "–" if shown in (None, "") else str(shown)
        table.add_row(name.replace("_", " "), Text(safe(text)))
    console.print(table)


def show_attempts(console: Console, spent: Spending) -> None:
    """Print every attempt of a failed run."""
    for a in spent.attempts:
        used = "tokens unknown" if a.usage is None else _tokens(a.usage)
        ended = f"{a.outcome} {a.error}" if a.error else str(a.outcome)
        line = f"  call {a.call} attempt {a.attempt}: {ended}, {a.latency:.2f} s, {used}"
        console.print(Text(line, style="dim"))


def money(cost: Decimal | None) -> str:
    """Format dollars with 4 or, below one cent, 6 decimals."""
    if cost is None:
        return "unknown"
    if cost == 0:
        return "$0"
    return f"${cost:.6f}" if cost < Decimal("0.01") else f"${cost:.4f}"


def cost(spent: Spending) -> str:
    """Format the cost; if it is unknown, its upper bound."""
    if spent.cost_usd is not None:
        return money(spent.cost_usd)
    return f"unknown, at most {money(spent.charged_usd)}"


def tokens(spent: Spending) -> str:
    """Format input and output tokens; marks unknown attempts."""
    known = _tokens(spent.usage)
    return known if spent.usage_complete else f"{known} + unknown"


def _tokens(usage: UsageOutput) -> str:
    return f"{usage.total_input:,} in + {usage.total_output:,} out"


def _evidence(number: int, item: Evidence) -> RenderableType:
    context, start = item.context, item.start - item.context_start
    end = start + item.end - item.start
    words = Text.assemble(
        safe(context[:start]),
        (safe(context[start:end]), "bold black on bright_yellow"),
        safe(context[end:]),
    )
    head = Text.assemble((f"[{number}] ", "bold"), _reference(item.passage))
    where = Text(f"{safe(item.passage.id)}  characters {item.start}–{item.end}", style="dim")
    return Group(head, Padding(words, (0, 0, 0, 4)), Padding(where, (0, 0, 0, 4)))


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


def _coverage(coverage: CoverageOutput) -> Text:
    text = (
        f"{coverage.partitions} partitions: {coverage.found} with findings, {coverage.empty} without "
        f"relevant passages, {coverage.failed} failed; {coverage.calls} calls"
    )
    return Text(text, style="yellow" if coverage.partial else "dim")


def _reference(source: Source) -> Text:
    facts: list[str] = []
    if source.pmid:
        facts.append(f"PMID {source.pmid}")
    if source.year is not None:
        facts.append(str(source.year))
    facts += source.publication_types
    if source.section:
        facts.append(source.section)
    text = Text(safe(source.title) or "(no title)", style="italic")
    if facts:
        text.append(f"  ({safe(', '.join(facts))})", style="not italic dim")
    if source.retracted:
        text.append("  RETRACTED", style="bold red")
    elif source.concern:
        text.append("  EXPRESSION OF CONCERN", style="bold yellow")
    return text


def _also(hit: Ranked) -> Text:
    named = ", ".join(f"{one.id} ({one.why})" for one in hit.also)
    return Text(safe(f"  = {named}") if named else "", style="dim")


def _footer(out: AskOutput) -> Text:
    spent = out.spending
    attempts = len(spent.attempts)
    facts: Sequence[str] = (
        out.model,
        out.strategy,
        f"{len(out.retrieved)} passages",
        f"{tokens(spent)} tokens",
        f"cost {cost(spent)}",
        f"{attempts} call{'' if attempts == 1 else 's'}",
        f"{out.seconds:.2f} s",
    )
    return Text(" · ".join(facts), style="dim")


def _place(hit: Ranked, method: str) -> str:
    place, score = getattr(hit, method), getattr(hit, f"{method}_score")
    return "–" if place is None else f"{place} ({score:.3f})"
