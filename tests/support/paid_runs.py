"""A rig for commands that pay for many calls: an index, questions, the command in this process, and one that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.support.indices import index_of

MODEL = "openai:gpt-4o-mini"
TEXT = (
    "Aspirin lowered the risk of stroke in group {n}. The dose was {n} mg a day. Bleeding was not seen. "
    "Adults were followed for a year. Nobody was lost."
)


def ingest_six(folder: Path, encoder: Path) -> Path:
    """Make an index of six passages of :data:`TEXT`, by an encoder."""
    rows = [{"id": f"t:{n}", "title": f"Trial {n}", "text": TEXT.format(n=n)} for n in range(6)]
    return index_of(folder, encoder, rows)


def environment_of(index: Path, encoder: Path) -> dict[str, str]:
    """The variables of a command that asks about an index."""
    return {
        "POSOLOGY_INDEX": str(index),
        "POSOLOGY_EMBEDDER": str(encoder),
        "POSOLOGY_ATTEMPTS": "1",
        "OPENAI_API_KEY": "sk-test",
        "COLUMNS": "200",
    }


def kill_when(
    ready: Callable[[], bool],
    command: Sequence[str],
    environment: Mapping[str, str],
    cwd: Path,
    *,
    before: str = "",
) -> None:
    """Run a command in a process, and kill it (-9) as soon as ``ready``; ``before`` is Python run before it."""
    program = f"{before}\nfrom orchestrator.cli.app import main; main()"
    env = {**os.environ, **environment}
    with subprocess.Popen(
        [sys.executable, "-c", program, *command], env=env, cwd=cwd, stderr=subprocess.PIPE
    ) as process:
        deadline = time.monotonic() + 400
        while not ready():
            assert time.monotonic() < deadline, "it was not ready in 400 s"
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
