"""Figures of a turn of :mod:`evals.peers` from the stub's own ledger, and the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from posology.budget.prices.book import packaged
from posology.types import Usage

#: whose list price the tokens are priced at
PRICED: Final = "openai:gpt-5-mini"
_MEBI = 2**20
#: figures of one turn of a side; what a side of an earlier revision does not measure is absent
Turn = Mapping[str, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """Turns of every side, by its name."""

    questions: int
    #: questions of a turn that were asked one after the other
    alone: int
    #: seconds of a call
    latency: float
    clean: dict[str, list[Turn]] = field(default_factory=dict)
    #: with faults
    faulty: dict[str, list[Turn]] = field(default_factory=dict)
    #: sides that could not run, and why
    skipped: dict[str, str] = field(default_factory=dict)


def billed(entries: Sequence[Mapping[str, Any]], *, alone: float, began: float) -> dict[str, float]:
    """Return calls, tokens and dollars of the questions at once, and the depth of those alone.

    Args:
        entries: the stub's ledger.
        alone: POSIX time when the questions one after the other began.
        began: POSIX time when the questions at once began.

    Returns:
        ``chain`` is the number of calls of the questions alone that waited for another's reply.
    """
    once = [entry for entry in entries if entry["arrived"] >= began]
    prices = packaged()
    usage = [Usage(**entry["usage"]) for entry in once if entry["usage"]]
    dollars = [prices.cost(PRICED, one) for one in usage]
    return {
        "calls": len(once),
        "input": sum(one.total_input for one in usage),
        "output": sum(one.total_output for one in usage),
        "dollars": float(sum(one for one in dollars if one is not None)),
        "chain": _chain([entry for entry in entries if alone <= entry["arrived"] < began]),
    }


def _chain(entries: Sequence[Mapping[str, Any]]) -> int:
    """Return the most calls of which none overlaps another in time."""
    last, found = 0.0, 0
    for entry in sorted(entries, key=lambda one: one["ended"] or one["arrived"]):
        if entry["arrived"] >= last:
            last, found = entry["ended"] or entry["arrived"], found + 1
    return found


def show(found: Found) -> None:
    """Print the tables as Markdown."""
    print(
        f"{found.questions} questions of 64 at once; {found.alone} one after the other. "
        f"Medians of turns. Dollars: list price of {PRICED.partition(':')[2]}."
    )
    heads: tuple[str, ...] = (
        "questions/s", "ms alone", "calls deep", "ms over the ideal", "calls", "input tokens", "output tokens",
        "$ for 1,000", "CPU ms a question", "CPU ms a call", "MiB",
    )  # fmt: skip
    _table(heads, {name: _clean(turns, found) for name, turns in found.clean.items()})
    print("\nWith 2 % of 429 and 1 % of 500:")
    heads = ("questions failed", "questions/s", "calls", "CPU ms a question")
    _table(heads, {name: _faulty(turns, found) for name, turns in found.faulty.items()})
    for name, reason in found.skipped.items():
        print(f"\nSkipped: {name}: {reason}")


def _clean(turns: Sequence[Turn], found: Found) -> list[str]:
    of = _medians(turns)
    many = found.questions
    return [
        _ratio(many, of("seconds"), 1, 1),
        _ratio(of("alone"), found.alone, 1e3),
        _ratio(of("chain"), found.alone, 1, 2),
        _ratio(_over(of("alone"), of("chain"), found.latency), found.alone, 1e3),
        _ratio(of("calls"), many, 1, 2),
        _ratio(of("input"), many),
        _ratio(of("output"), many),
        _ratio(of("dollars"), many, 1e3, 2),
        _ratio(of("processor"), many, 1e3),
        _ratio(of("processor"), of("calls"), 1e3, 1),
        _ratio(of("memory"), _MEBI),
    ]


def _faulty(turns: Sequence[Turn], found: Found) -> list[str]:
    of = _medians(turns)
    failed = sum(int(turn["failed"]) for turn in turns)
    return [
        f"{failed} of {found.questions * len(turns)}",
        _ratio(found.questions, of("seconds"), 1, 1),
        _ratio(of("calls"), found.questions, 1, 2),
        _ratio(of("processor"), found.questions, 1e3),
    ]


def _over(alone: float | None, chain: float | None, latency: float) -> float | None:
    return None if alone is None or chain is None else alone - chain * latency


def _medians(turns: Sequence[Turn]) -> Any:
    def of(kind: str) -> float | None:
        known = [turn[kind] for turn in turns if kind in turn]
        return median(known) if known else None

    return of


def _ratio(of: float | None, to: float | None, times: float = 1, digits: int = 0) -> str:
    return "–" if of is None or not to else f"{of / to * times:,.{digits}f}"


def _table(heads: Sequence[str], rows: Mapping[str, Sequence[str]]) -> None:
    print(f"\n| | {' | '.join(heads)} |\n| --- |{' --- |' * len(heads)}")
    for name, cells in rows.items():
        print(f"| {name} | {' | '.join(cells)} |")
