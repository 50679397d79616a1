from __future__ import annotations

import io
from datetime import UTC, datetime
from decimal import Decimal

from rich.console import Console

from orchestrator.cli.jobs.progress import BatchProgress, bad, over, summary
from orchestrator.rendering.forms.jobs import spent
from posology.published.jobs import BatchOutput
from posology.types import BatchState, JobState


def batch(unknown: int = 0, **states: int) -> BatchOutput:
    return BatchOutput(
        id="batch_1",
        tenant="t",
        state=BatchState.RUNNING,
        cancelled=None,
        created=datetime.now(UTC),
        total=10,
        rejected=1,
        states={JobState(name): count for name, count in states.items()},
        known_cost_usd=Decimal("1.25"),
        unknown_costs=unknown,
        over=False,
    )


def test_rows_that_are_over_and_rows_that_are_bad() -> None:
    now = batch(succeeded=3, failed=2, cancelled=1, queued=3)
    assert (over(now), bad(now)) == (7, 4)


def test_unknown_costs_come_on_top() -> None:
    assert spent(batch()) == "$1.2500"
    assert spent(batch(unknown=4)) == "$1.2500 + 4 unknown"


def test_the_bar_tells_how_far_how_fast_and_how_dear() -> None:
    file = io.StringIO()
    with BatchProgress(Console(file=file, force_terminal=True, width=120)) as progress:
        progress.show(batch(queued=9))
        progress.tell("a line")
        progress.show(batch(unknown=2, succeeded=6, failed=1, queued=2))
    drawn = file.getvalue()
    for part in ("8/10", "$1.2500 + 2 unknown", "2 failed", "a line"):
        assert part in drawn


def test_without_a_terminal_there_is_no_bar() -> None:
    file = io.StringIO()
    with BatchProgress(Console(file=file, force_terminal=False)) as progress:
        progress.show(batch(queued=9))
        progress.tell("a line")
    assert file.getvalue() == "a line\n"


def test_the_summary_says_what_to_do_about_failures() -> None:
    assert len(summary(batch(succeeded=9), 1, "out")) == 2
    for state in ("failed", "expired"):
        assert "jobs retry --all-failed" in summary(batch(succeeded=8, **{state: 1}), 2, "out")[-1]
    (*_, advice) = summary(batch(succeeded=8, cancelled=1), 2, "out")
    assert "1 rows were cancelled" in advice
    assert "jobs retry ID" in advice
