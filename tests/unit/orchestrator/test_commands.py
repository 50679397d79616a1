from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from orchestrator.cli.common import run
from orchestrator.cli.jobs.collection import Patience, open_again
from orchestrator.settings import Settings
from posology.errors import ConfigurationError, PosologyError, StoreUnavailable


def test_the_command_line_is_read_without_heavy_libraries() -> None:
    heavy = {"torch", "lancedb", "redis", "openai", "anthropic", "fastapi", "celery", "numpy"}
    program = f"import sys, orchestrator.cli.app; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_ctrl_c_gets_through_where_a_library_loses_a_cancellation() -> None:
    closed = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            with contextlib.suppress(asyncio.CancelledError):
                await anyio.sleep(10)
            await anyio.sleep(10)
        finally:
            closed.append(True)

    with pytest.raises(KeyboardInterrupt):
        run(work)
    assert closed == [True]


def test_results_and_errors_come_out_as_they_are() -> None:
    async def good() -> int:
        return 3

    async def bad() -> int:
        raise ZeroDivisionError

    assert run(good) == 3
    with pytest.raises(ZeroDivisionError):
        run(bad)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("begun", "error"), [(False, ConfigurationError), (True, StoreUnavailable)]
)
async def test_a_stack_that_is_gone_is_waited_for_only_if_it_was_there(
    begun: bool, error: type[PosologyError], tmp_path: Path
) -> None:
    patience = Patience(1.0, lambda _: None)
    if begun:
        patience.reached()
    with pytest.raises(error, match="posology up"):
        async with open_again(Settings.model_validate({"POSOLOGY_HOME": str(tmp_path)}), patience):
            pass


@pytest.mark.anyio
async def test_each_outage_has_the_whole_time_and_is_told_once() -> None:
    told: list[str] = []
    patience = Patience(10.0, told.append)
    patience.reached()
    left = [2]

    async def work() -> str:
        left[0] -= 1
        if left[0] >= 0:
            raise StoreUnavailable("out of reach", address="here")
        patience.reached()
        return "done"

    assert await patience(work) == "done"
    assert [line.split(".")[0] for line in told] == ["out of reach", "Redis is back: continuing"]
