"""Differences between two answers of a watch."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.question.changes import cited
from posology.published.affected import ChangeKind, EvidenceChange
from posology.published.answers import Disagreement, Source
from posology.published.jobs import JobOutput
from posology.published.watches.forms import WatchAnswer, WatchChange


def answer_of(job: JobOutput) -> WatchAnswer:
    """Return what a watch keeps of the answer of a succeeded job."""
    assert job.result is not None
    assert job.ended is not None
    fields = ("index", "status", "choice", "answer", "refusal", "evidence", "conflicts")
    kept = {name: getattr(job.result, name) for name in fields}
    return WatchAnswer(job=job.id, answered=job.ended, **kept)


def difference(
    before: WatchAnswer, after: WatchAnswer, evidence: Sequence[EvidenceChange]
) -> WatchChange | None:
    """Compare two answers; ``None``: they do not differ. Other words for the same verdict are no difference.

    Args:
        before: the earlier answer.
        after: the later one.
        evidence: changes of the passages that the earlier one cites.
    """
    sources = {one.source.id: one.source for one in cited(after)}
    earlier = {one.source.id: one.source for one in cited(before)}
    conflicts = {_sides(one): one for one in after.conflicts}
    known = {_sides(one): one for one in before.conflicts}
    change = WatchChange(
        at=after.answered,
        job=after.job,
        index=after.index,
        status_before=before.status,
        status=after.status,
        choice_before=before.choice,
        choice=after.choice,
        sources_new=_without(sources, earlier),
        sources_gone=_without(earlier, sources),
        conflicts_new=tuple(one for sides, one in conflicts.items() if sides not in known),
        conflicts_gone=tuple(one for sides, one in known.items() if sides not in conflicts),
        # a replaced passage that has the quotes still bears them out
        evidence=tuple(
            one for one in evidence if one.kind is not ChangeKind.REPLACED or one.lost_quotes
        ),
    )
    differs = (before.status, before.choice) != (after.status, after.choice) or any(
        (
            change.sources_new,
            change.sources_gone,
            change.conflicts_new,
            change.conflicts_gone,
            change.evidence,
        )
    )
    return change if differs else None


def _without(some: dict[str, Source], others: dict[str, Source]) -> tuple[Source, ...]:
    return tuple(source for name, source in some.items() if name not in others)


def _sides(conflict: Disagreement) -> tuple[frozenset[str], frozenset[str], str]:
    """Return what a contradiction is known by: its passages and its resolution, since a model words each claim anew."""
    return (
        frozenset(one.passage.id for one in conflict.supporting),
        frozenset(one.passage.id for one in conflict.opposing),
        conflict.resolution,
    )
