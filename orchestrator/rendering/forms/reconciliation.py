"""Ledgers beside the accounts of providers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from orchestrator.rendering.forms.columns import Cell, Column, Kind, Table, Tone, table
from orchestrator.rendering.words import money
from posology.budget.reconcile.report import Compared, Group, Measure, Number, Requests, Verdict

_TONES = {Verdict.WITHIN: Tone.WARN, Verdict.DRIFT: Tone.BAD}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Figure:
    """One figure of both sides."""

    #: names and hint of its group; empty: as in the figure before
    day: str
    model: str
    hint: str
    compared: Compared


def _ours(figure: _Figure) -> str:
    one = figure.compared
    ours = amount(one.measure, one.ours)
    return ours if one.most == one.ours else f"{ours} to {amount(one.measure, one.most)}"


def _unexplained(figure: _Figure) -> str:
    one = figure.compared
    part = f" ({one.relative:.2%})" if one.relative and one.unexplained else ""
    return f"{amount(one.measure, one.unexplained)}{part}"


def _verdict(figure: _Figure) -> Cell:
    verdict = figure.compared.verdict
    return Cell(text=verdict, tone=_TONES.get(verdict, Tone.GOOD), note=figure.hint)


_COLUMNS: tuple[Column[_Figure], ...] = (
    Column("day or provider", lambda figure: figure.day),
    Column("model", lambda figure: figure.model),
    Column("measure", lambda figure: figure.compared.measure),
    Column("ours", _ours, Kind.NUMBER),
    Column("theirs", lambda one: amount(one.compared.measure, one.compared.theirs), Kind.NUMBER),
    Column("drift", lambda one: amount(one.compared.measure, one.compared.drift), Kind.NUMBER),
    Column("unexplained", _unexplained, Kind.NUMBER),
    Column("verdict", _verdict, Kind.WIDE),
)


def compared(groups: Iterable[Group], title: str = "") -> Table:
    """Return the figures of groups that differ; of the whole time and all models, all figures.

    A model's total repeats its days, so it is left out unless it drifts.
    """
    figures = (figure for group in groups for figure in _figures(group))
    return table(_COLUMNS, figures, title=title)


def request_totals(found: Requests) -> Table:
    """Return the sums over all requests."""
    rows = (_Figure(day="requests", model="all", hint="", compared=one) for one in found.totals)
    return table(_COLUMNS, rows)


def requests_text(found: Requests) -> str:
    """Return the counts of requests in words."""
    return (
        f"{found.matched:,} matched ({found.differing:,} differ), {found.only_ours:,} only ours, "
        f"{found.only_theirs:,} only theirs, {found.twice:,} duplicates; calls without a reply: "
        f"{found.explained:,} billed, {found.unbilled:,} not billed"
    )


def worst_first(groups: Iterable[Group]) -> list[Group]:
    """Return the groups that are not equal, those that drift first."""
    odd = [group for group in groups if group.verdict is not Verdict.EQUAL]
    return sorted(odd, key=lambda group: group.verdict is not Verdict.DRIFT)


def amount(measure: Measure, number: Number) -> str:
    """Return dollars or a count."""
    return money(Decimal(number)) if measure is Measure.COST else f"{number:,}"


def _figures(group: Group) -> Iterator[_Figure]:
    whole = group.day is None and group.model is None
    quiet = group.day is None and not whole and group.verdict is not Verdict.DRIFT
    marks = [f"{group.unknown:,} unknown"] if group.unknown else []
    marks += [f"{group.edge:,} near midnight"] if group.edge else []
    day, model = group.day or group.provider, group.model or "all models"
    hint = "; ".join([*marks, *([group.hint] if group.hint else [])])
    for one in group.compared:
        if whole or not (quiet or one.verdict is Verdict.EQUAL):
            yield _Figure(day=day, model=model, hint=hint, compared=one)
            day, model, hint = "", "", ""
