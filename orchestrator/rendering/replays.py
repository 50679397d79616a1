"""Results of replays in words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from orchestrator.question.decisions.forms import (
    ChangeOutput,
    Replay,
    ReplayedDecision,
    ReplayedJob,
)
from policies.affordable import describe

#: results as a person reads them
NAMES: Mapping[Replay, str] = MappingProxyType(
    {
        Replay.SAME: "same",
        Replay.CHANGED: "different decision",
        Replay.FAILED: "cannot be replayed from its record",
        Replay.UNDECIDED: "no decision was made",
        Replay.MISSING: "job not found",
    }
)


def differences(job: ReplayedJob) -> tuple[str, ...]:
    """Return what differs now from a job's record: dose, parts of the decision, versions, features."""
    return tuple(
        line
        for number, one in enumerate(job.decisions)
        for line in _differences(one, second=number > 0)
    )


def _differences(one: ReplayedDecision, *, second: bool) -> list[str]:
    lines = []
    if one.error is not None:
        lines.append(f"{one.error.type}: {one.error.message}")
    elif one.now is not None and one.now != one.dose:
        recorded, now = describe(one.dose), describe(one.now)
        lines.append(f"recorded: {recorded}; now: {now}")
    if one.differing:
        lines.append(f"different: {', '.join(one.differing)}")
    lines += [f"version of {_change(change)}" for change in one.versions]
    lines += [f"feature {_change(change)}" for change in one.features]
    return [f"after the step-up: {line}" for line in lines] if second else lines


def _change(change: ChangeOutput) -> str:
    return f"{change.name}: recorded {_value(change.recorded)}, now {_value(change.now)}"


def _value(value: object) -> str:
    return "none" if value is None else str(value)
