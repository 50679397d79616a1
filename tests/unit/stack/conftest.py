from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.stack.child import Command

Python = Callable[..., Command]


@pytest.fixture
def python(tmp_path: Path) -> Python:
    """Makes the command of a Python program."""

    def command(code: str, *, name: str = "child", grace: float = 90.0) -> Command:
        return Command(
            name=name,
            argv=(sys.executable, "-I", "-S", "-c", code),
            environment=dict(os.environ),
            log=tmp_path / "log" / f"{name}.log",
            grace=grace,
        )

    return command
