"""Watches: their periods, the next check, and the differences of two answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from orchestrator.rendering.forms.columns import table
from orchestrator.rendering.forms.watches import CHANGES
from orchestrator.settings import Settings
from orchestrator.watches.comparison import difference
from orchestrator.watches.request import WatchRequest
from orchestrator.watches.store import Taken
from posology.errors import InvalidQuery
from posology.published.affected import ChangeKind, EvidenceChange
from posology.published.answers import Disagreement, Evidence, Position, Source, Status
from posology.published.watches.forms import WatchAnswer
from posology.types import Level, Passage, Resolution

HOUR = 3_600_000


def source(name: str) -> Source:
    return Source.of(Passage(id=name, text="It helps."))


def quoted(*names: str) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            passage=source(name), start=0, end=9, quote="It helps.", context_start=0, context="It helps."
        )
        for name in names
    )  # fmt: skip


def kept(**given: Any) -> WatchAnswer:
    fields: dict[str, Any] = {
        "job": "job_1",
        "answered": datetime(2026, 1, 15, tzinfo=UTC),
        "index": "index@1",
        "status": Status.ANSWERED,
        "choice": "yes",
        "answer": "It helps.",
        "refusal": None,
        "evidence": quoted("a"),
        "conflicts": (),
    }
    return WatchAnswer(**fields | given)


def conflict(claim: str, resolution: Resolution = Resolution.UNRESOLVED) -> Disagreement:
    sides = [
        (Position(passage=source(name), level=Level.OTHER, quotes=("It helps.",)),)
        for name in ("a", "b")
    ]
    return Disagreement(
        claim=claim, supporting=sides[0], opposing=sides[1], resolution=resolution, how="by rule"
    )


def changed(kind: ChangeKind, **given: Any) -> EvidenceChange:
    return EvidenceChange(passage="a", title="A", kind=kind, **given)


@pytest.mark.parametrize(
    ("every", "seconds"),
    [("hour", 3_600), ("day", 86_400), ("week", 604_800), ("month", 2_592_000), (7_200, 7_200)],
)
def test_a_period_is_a_word_or_seconds(every: Any, seconds: int) -> None:
    assert WatchRequest(question="Does it help?", every=every).seconds == seconds


@pytest.mark.parametrize("every", ["fortnight", 3_599, 10**9, 0.5, None])
def test_other_periods_are_refused(every: Any) -> None:
    with pytest.raises(InvalidQuery, match="every"):
        WatchRequest.parse({"question": "Does it help?", "every": every})


@pytest.mark.parametrize("field", [{"index_version": 3}, {"fetch": f"ingest_{'0' * 28}"}])
def test_a_watch_reads_the_newest_version(field: dict[str, Any]) -> None:
    with pytest.raises(InvalidQuery, match=next(iter(field))):
        WatchRequest(question="Does it help?", **field).settled(Settings())


@pytest.mark.parametrize(
    ("now", "following"), [(0, 10), (10, 10 + HOUR), (11, 10 + HOUR), (10 + 5 * HOUR, 10 + 6 * HOUR)]
)  # fmt: skip
def test_missed_checks_are_left_out(now: int, following: int) -> None:
    taken = Taken(tenant="t", record={"next": "10", "every": str(HOUR)}, now=now)
    assert taken.next == following


def test_other_words_and_claims_are_no_difference() -> None:
    before = kept(conflicts=(conflict("It helps."),))
    after = kept(
        answer="Yes, it does.", job="job_2", index="index@2", conflicts=(conflict("Helpful."),)
    )
    standing = changed(ChangeKind.REPLACED, standing_quotes=("It helps.",))
    assert difference(before, after, [standing]) is None


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"status": Status.REFUSED, "choice": None}, "answered → refused, verdict yes → none"),
        ({"choice": "no"}, "verdict yes → no"),
        ({"evidence": quoted("b", "c")}, "2 new sources, 1 dropped source"),
        ({"conflicts": (conflict("It helps."),), "evidence": quoted("a", "b")}, "1 new source, 1 new conflict"),
    ],
)  # fmt: skip
def test_a_difference_is_recorded(fields: dict[str, Any], words: str) -> None:
    found = difference(kept(), kept(**fields), [])
    assert found is not None
    (line,) = table(CHANGES, [found], "differences").lines
    assert line.cells[0].text == words


def test_a_conflict_that_is_resolved_otherwise_is_another() -> None:
    before = kept(conflicts=(conflict("It helps."),))
    after = kept(conflicts=(conflict("It helps.", Resolution.SUPPORTING),))
    found = difference(before, after, [])
    assert found is not None
    assert (len(found.conflicts_new), len(found.conflicts_gone)) == (1, 1)


def test_a_retraction_alone_is_a_difference() -> None:
    found = difference(kept(), kept(), [changed(ChangeKind.RETRACTED)])
    assert found is not None
    assert [one.kind for one in found.evidence] == [ChangeKind.RETRACTED]
