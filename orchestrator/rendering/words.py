"""External text made safe, figures in words, and facts of answers in words.

All external text (questions, passages, replies) is sanitised: terminals obey control characters, and literature
files may contain any.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from posology.published.answers import AskOutput, Ranked
from posology.published.calls import Spending
from posology.types import Coverage, Usage

if TYPE_CHECKING:
    from posology.published.literature import SearchOutput

#: categories of what is not seen: controls, surrogates, and formats such as zero-width characters, tags and overrides of
#: the reading direction
_UNSEEN = ("Cc", "Cs", "Cf")
#: all that :meth:`str.splitlines` ends a line at, but for the newline
_BREAKS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
#: text where there is no value
UNKNOWN = "–"
#: forms of times
MINUTES, SECONDS = "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"
#: seconds in which a time is shown in the next smaller unit
_MINUTE, _HOUR = 60, 3_600


def safe(text: str) -> str:
    """Return the text without characters that are not seen; what separates lines becomes a space, but for the newline."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        " " if c in _BREAKS else c
        for c in text.replace("\r\n", "\n")
        if c in "\n\t" or c in _BREAKS or unicodedata.category(c) not in _UNSEEN
    )


def money(cost: Decimal | None) -> str:
    """Format dollars with 4 or, below one cent, 6 decimals."""
    if cost is None:
        return "unknown"
    if cost == 0:
        return "$0"
    sign, amount = "−" if cost < 0 else "", abs(cost)
    return f"{sign}${amount:.6f}" if amount < Decimal("0.01") else f"{sign}${amount:,.4f}"


def percent(share: float | Decimal | None) -> str:
    """Format a share in whole percent."""
    return UNKNOWN if share is None else f"{share:.0%}"


def plural(number: int, noun: str) -> str:
    """Return a count with its noun."""
    return f"{number:,} {noun}{'s' if number != 1 else ''}"


def moment(at: datetime | None, *, form: str = MINUTES) -> str:
    """Format a time, UTC."""
    return UNKNOWN if at is None else at.astimezone(UTC).strftime(form)


def lasted(seconds: float | None) -> str:
    """Return a duration in words."""
    if seconds is None:
        return UNKNOWN
    if seconds < _MINUTE:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"
    whole = round(seconds)
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"


def size(count: int) -> str:
    """Format a number of bytes with a decimal prefix: ``58 kB``, ``1.2 GB``."""
    value, names = float(count), ["B", "kB", "MB", "GB", "TB"]
    while value >= 999.5 and len(names) > 1:
        value, names = value / 1000, names[1:]
    return (
        f"{value:.1f} {names[0]}" if value < 9.95 and names[0] != "B" else f"{value:.0f} {names[0]}"
    )


def cost(spent: Spending) -> str:
    """Format the cost; if it is unknown, its upper bound."""
    if spent.cost_usd is not None:
        return money(spent.cost_usd)
    return f"unknown, at most {money(spent.charged_usd)}"


def tokens(spent: Spending) -> str:
    """Format input and output tokens; marks unknown attempts."""
    known = usage(spent.usage)
    return known if spent.usage_complete else f"{known} + unknown"


def calls(spent: Spending) -> str:
    """Count the model calls, each once however often it was tried; attempts only where they are more."""
    made, tried = spent.calls, len(spent.attempts)
    count = "1 call" if made == 1 else f"{made:,} calls"
    return count if tried == made else f"{count} in {tried:,} attempts"


def usage(used: Usage) -> str:
    """Format input and output tokens."""
    return f"{used.total_input:,} in + {used.total_output:,} out"


def coverage_text(coverage: Coverage) -> str:
    """Describe the partitions that were read, and those that were not."""
    return (
        f"{coverage.partitions} partitions: {coverage.found} with findings, {coverage.empty} without "
        f"relevant passages, {coverage.failed} failed"
    )


def footer(out: AskOutput) -> str:
    """Return model, strategy, passages read, tokens, cost, calls and time in one line."""
    spent = out.spending
    there = len(out.retrieved)
    passages = f"{there} passages" if out.read == there else f"{out.read} of {there} passages"
    return " · ".join(
        (
            safe(out.model),
            out.strategy,
            f"{passages} read",
            f"{tokens(spent)} tokens",
            f"cost {cost(spent)}",
            calls(spent),
            f"{out.seconds:.2f} s",
        )
    )


def place(hit: Ranked, method: str, out: SearchOutput) -> str:
    """Return the place and score of a passage in a ranking; of a ranking as long as asked for, also that it is beyond."""
    found, score = getattr(hit, method), getattr(hit, f"{method}_score")
    if found is not None:
        return f"{found} ({score:.3f})"
    return f"> {out.k}" if len(getattr(out, method)) >= out.k else "–"


def search_remarks(out: SearchOutput) -> Iterator[str]:
    """Yield what a reader must know of a search: its growth, its synonyms, and what missing places mean."""
    if out.growth:
        yield out.growth
    if out.added:
        yield f"BM25 also searched for: {', '.join(out.added)}"
    shown = {place(hit, method, out) for hit in out.hits for method in ("dense", "bm25")}
    if f"> {out.k}" in shown:
        yield (
            f"> {out.k}: not among the first {out.k} of that ranking; the fused ranking combines more places of both."
        )
    if any(place(hit, "bm25", out) == "–" for hit in out.hits):
        yield "bm25 –: the passage shares no word with the query."
