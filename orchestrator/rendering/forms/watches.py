"""Watches and their changes."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.rendering.forms.columns import Cell, Column, Kind, Tone
from orchestrator.rendering.forms.jobs import job_cell
from orchestrator.rendering.words import plural
from posology.published.watches.forms import WatchChange, WatchOutput, WatchSummary
from posology.types import WatchState

_TONES = {WatchState.ACTIVE: Tone.GOOD, WatchState.PAUSED: Tone.OFF, WatchState.ENDED: Tone.SOFT}

WATCHES: tuple[Column[WatchSummary], ...] = (
    Column("watch", lambda one: Cell(text=one.id, page=f"/watches/{one.id}")),
    Column("question", lambda one: one.question, Kind.WIDE),
    Column("state", lambda one: Cell(text=one.state.value, tone=_TONES[one.state], state=True)),
    Column("every", lambda one: f"{one.every_seconds / 3600:g} h"),
    Column("next check", lambda one: one.next, Kind.TIME),
    Column("last check", lambda one: one.checked, Kind.TIME),
    Column("last change", lambda one: one.changed, Kind.TIME),
    Column("asked", lambda one: one.asked, Kind.NUMBER),
    Column("fetch", lambda one: one.fetch),
    Column("job", lambda one: one.job and job_cell(one.job)),
    Column("error", lambda one: one.error and Cell(text=one.error, tone=Tone.BAD), Kind.WIDE),
)


def _differences(change: WatchChange) -> Iterator[str]:
    """Yield the differences of two answers in words."""
    if change.status != change.status_before:
        yield f"{change.status_before} → {change.status}"
    if change.choice != change.choice_before:
        yield f"verdict {change.choice_before or 'none'} → {change.choice or 'none'}"
    for count, noun in (
        (len(change.sources_new), "new source"),
        (len(change.sources_gone), "dropped source"),
        (len(change.conflicts_new), "new conflict"),
        (len(change.conflicts_gone), "settled conflict"),
    ):
        if count:
            yield plural(count, noun)
    yield from (f"{one.passage} {one.kind}" for one in change.evidence)


CHANGES: tuple[Column[WatchChange], ...] = (
    Column("changed", lambda change: change.at, Kind.TIME),
    Column("index", lambda change: change.index),
    Column("job", lambda change: job_cell(change.job)),
    Column("differences", lambda change: ", ".join(_differences(change)), Kind.WIDE),
)


def last(watch: WatchOutput) -> list[tuple[str, str]]:
    """Return as facts what is fetched before each check, and the last answer; empty: nothing is, and there is none yet."""
    told = []
    if (live := watch.live) is not None:
        query = live["query"] or "the question's words"
        told = [
            ("literature", f"{live['service']}: {query}, at most {live['max_records']:,} records")
        ]
    if (found := watch.answer) is None:
        return told
    outcome = f"{found.status}{f', {found.choice}' if found.choice else ''} ({found.index})"
    return [*told, ("last answer", outcome), ("text", found.answer or found.refusal or "")]
