"""A short run under fire: real processes, real faults, and the checker's verdict."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from evals.fire.checker import check, load
from evals.fire.drill import Page
from evals.fire.piece import Plan, run
from evals.fire.report import report

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1_500),
    pytest.mark.skipif(sys.platform != "linux", reason="finds the stack's processes in /proc"),
]


def test_a_short_run_under_fire_keeps_every_promise(tmp_path: Path) -> None:
    asyncio.run(run(Plan(folder=tmp_path, seed=3, number=1, seconds=120.0, every=4.0, fewest=60)))
    seen = load(tmp_path)
    verdict = check(seen)
    assert verdict.findings == (), report(seen, verdict)
    assert list(seen.of("drained"))
    assert list(seen.of("struck"))
    assert verdict.jobs.total()
    pages = {record["page"] for record in seen.of("drill")}
    assert pages >= {Page.RESTORE, Page.DRIFT, Page.BOOKS, Page.FULL, Page.PROVIDER}
