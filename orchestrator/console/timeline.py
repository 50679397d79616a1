"""The story of a job in time: its attempts as bars, and its events in words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from orchestrator.rendering.forms.columns import Cell, Tone
from posology.published.calls import AttemptOutput
from posology.published.jobs import JobEvent, JobOutput

#: attempts of a job that a page shows
MOST = 100
#: least width of a bar, percent
_THIN = 0.6


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """An attempt on the time between the job's submission and its end."""

    attempt: AttemptOutput
    #: begin and width, percent
    left: float
    width: float
    #: seconds from the submission to the attempt
    after: float


def bars(job: JobOutput, now: datetime) -> tuple[Bar, ...]:
    """Return the first attempts of a job in the order of their start."""
    begin = job.created.timestamp()
    attempts = job.spending.attempts[:MOST]
    ends = [one.started + one.latency for one in attempts]
    end = max([(job.ended or now).timestamp(), *ends])
    scale = 100 / max(end - begin, 1e-3)
    return tuple(_bar(one, begin, scale) for one in attempts)


def _bar(one: AttemptOutput, begin: float, scale: float) -> Bar:
    after = max(0.0, one.started - begin)
    left = min(after * scale, 100 - _THIN)
    width = min(max(one.latency * scale, _THIN), 100 - left)
    return Bar(attempt=one, left=round(left, 2), width=round(width, 2), after=after)


def step(event: JobEvent) -> Cell:
    """Return an event in words; an unknown type by its name."""
    data = event.data

    def cell(text: str, *, bad: bool = False) -> Cell:
        return Cell(text=text, at=event.at, tone=Tone.BAD if bad else None)

    match event.type:
        case "state":
            state = str(data.get("state"))
            return cell(state, bad=state in ("failed", "expired"))
        case "decided":
            parts = data.get("partitions")
            reads = f", {parts} partitions" if parts else ""
            calls = data.get("calls")
            most = f"{calls} call{'s'[: calls != 1]}"
            text = f"retrieved, and decided: {data.get('strategy')}{reads}, at most {most}"
            return cell(text)
        case "partition":
            failed = bool(data.get("failed"))
            said = "failed" if failed else "read"
            return cell(f"partition {data.get('partition')} {said}", bad=failed)
        case "call" | "sent":
            outcome = data.get("outcome", "in a provider's batch")
            text = f"call {data.get('call')} ({data.get('stage')}), attempt {data.get('attempt')}: {outcome}"
            return cell(text, bad=outcome in ("lost", "failed", "unusable"))
        case "lost":
            return cell(f"the worker of {data.get('unit')} was lost", bad=True)
        case "evidence_changed":
            text = f"a cited passage has changed since: {data.get('kind')} {data.get('passage')}"
            return cell(text, bad=True)
        case other:
            return cell(other)
