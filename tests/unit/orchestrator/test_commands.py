from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys

import anyio
import pytest

from orchestrator.commands.common import run


def test_the_command_line_is_read_without_heavy_libraries() -> None:
    heavy = {"torch", "lancedb", "redis", "openai", "anthropic", "fastapi", "celery", "numpy"}
    program = f"import sys, orchestrator.cli; print(sorted({heavy!r} & set(sys.modules)))"
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
