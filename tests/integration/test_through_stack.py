"""``ask`` and ``search`` print the same through a running stack and in their own process, and account the same."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from orchestrator.cli.app import app
from orchestrator.cli.demo.money import shadow_prices
from posology.corpus.sample import notes_file
from posology.errors import StoreUnavailable
from posology.store.connection import LONG

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="finds the stack's processes in /proc"),
]

QUESTION = "Does low-dose aspirin lower the risk of pre-eclampsia?"
#: what differs between two runs of anything
CHANGING = re.compile(
    r'("(?:id|request_id|started|latency|seconds|retrieval_seconds|attempt|cost_saved_usd)": )[^\n]+|'
    r"\d+(?:\.\d+)? m?s\b"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stack:
    pid: int
    environment: dict[str, str]

    def cli(self, *arguments: str) -> Result:
        return CliRunner().invoke(app, list(arguments), env=self.environment)

    def jobs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.cli("jobs", "list", "--json").stdout)["jobs"]
        return found

    def charged(self) -> tuple[int, Decimal]:
        total = json.loads(self.cli("spend", "--json").stdout)["total"]
        return total["attempts"], Decimal(total["charged_usd"])

    @contextmanager
    def hung(self, what: str) -> Iterator[None]:
        """Stop the processes whose command line contains a word."""
        found = [pid for pid in descendants(self.pid) if what in line_of(pid)]
        assert found, what
        for pid in found:
            os.kill(pid, signal.SIGSTOP)
        # a signal is not carried out at once
        while not all(stopped(pid) for pid in found):
            time.sleep(0.01)
        try:
            yield
        finally:
            for pid in found:
                os.kill(pid, signal.SIGCONT)


def descendants(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [one for child in map(int, children) for one in (child, *descendants(child))]


def stopped(pid: int) -> bool:
    return (
        Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "T"
    )


def line_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("stack")
    environment = {
        "POSOLOGY_CONFIG": "off",
        "POSOLOGY_HOME": str(folder / "home"),
        "POSOLOGY_INDEX": str(folder / "index"),
        # the offline reader costs something
        "POSOLOGY_PRICES": str(shadow_prices(folder)),
    }
    with notes_file() as notes:
        made = CliRunner().invoke(app, ["ingest", str(notes)], env=environment)
    assert made.exit_code == 0, made.output
    kept = {k: v for k, v in os.environ.items() if not k.startswith("POSOLOGY_")}
    with subprocess.Popen(
        [sys.executable, "-c", "from orchestrator.cli.app import main; main()", "up", "--port", "0"],
        env=kept | environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert any(line.startswith("ready") for line in process.stderr)
        try:
            yield Stack(pid=process.pid, environment=environment)
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=90)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("POSOLOGY_"):
            monkeypatch.delenv(name)


def unchanging(text: str) -> str:
    return CHANGING.sub(r"\1…", text)


@pytest.mark.parametrize("form", ["text", "markdown", "json", "ris", "bibtex", "csl"])
@pytest.mark.parametrize(
    "command",
    [
        ["search", QUESTION, "--k", "4", "--since", "1990"],
        ["ask", QUESTION],
        ["ask", QUESTION, "--strategy", "direct", "--form", "yes_no_maybe", "--k", "5"],
        ["ask", "Why is the sky blue over Neptune?", "--strategy", "direct"],
    ],
    ids=["search", "ask", "direct", "refused"],
)
def test_the_output_is_the_same(stack: Stack, command: list[str], form: str) -> None:
    before = len(stack.jobs())
    through = stack.cli(*command, "--format", form)
    asked = len(stack.jobs())
    local = stack.cli(*command, "--format", form, "--local")
    assert (through.exit_code, local.exit_code) == (0, 0), through.output + local.output
    assert unchanging(through.stdout) == unchanging(local.stdout)
    assert through.stderr == local.stderr
    assert asked - before == (command[0] == "ask")
    assert len(stack.jobs()) == asked


def test_the_decision_is_explained_the_same(stack: Stack) -> None:
    through, local = (
        stack.cli("ask", QUESTION, "--why", *more) for more in ([], ["--local"])
    )  # fmt: skip
    assert "policy" in through.stdout
    assert unchanging(through.stdout) == unchanging(local.stdout)


def test_the_account_is_the_same(stack: Stack) -> None:
    def spent(*more: str) -> tuple[int, Decimal]:
        attempts, dollars = stack.charged()
        assert stack.cli("ask", QUESTION, "--strategy", "direct", *more).exit_code == 0
        now = stack.charged()
        return now[0] - attempts, now[1] - dollars

    through, local = spent(), spent("--local")
    assert through == local
    assert through[0] == 1
    assert through[1] > 0


def test_a_cap_holds_the_same(stack: Stack) -> None:
    options = ["ask", QUESTION, "--strategy", "direct", "--max-cost", "0.000001", "--json"]
    through, local = stack.cli(*options), stack.cli(*options, "--local")
    assert through.exit_code == local.exit_code != 0
    assert unchanging(through.stdout) == unchanging(local.stdout)


def test_workers_that_hang_cost_nothing(stack: Stack) -> None:
    known = {job["id"] for job in stack.jobs()}
    attempts, _ = stack.charged()
    with stack.hung("celery"):
        done = stack.cli("ask", QUESTION, "--strategy", "direct")
    assert done.exit_code == 0, done.output
    (withdrawn,) = [job for job in stack.jobs() if job["id"] not in known]
    assert (withdrawn["state"], withdrawn["started"]) == ("cancelled", None)
    # its own alone
    assert stack.charged()[0] == attempts + 1


def test_a_redis_that_hangs_is_told_within_seconds(stack: Stack) -> None:
    known = len(stack.jobs())
    with stack.hung("redis-server"):
        began = time.monotonic()
        done = stack.cli("ask", QUESTION)
        took = time.monotonic() - began
    assert done.exit_code == StoreUnavailable.exit_code
    # a person's bound, not a worker's
    assert took < LONG
    assert "the running stack's Redis" in done.stderr
    assert "stop the stack with Ctrl-C and start it again" in done.stderr
    assert len(stack.jobs()) == known


@pytest.mark.parametrize("command", [["jobs", "list"], ["spend"], ["ask", QUESTION, "--local"]])
def test_one_advice_for_a_stack_whose_redis_hangs(stack: Stack, command: list[str]) -> None:
    with stack.hung("redis-server"):
        done = stack.cli(*command)
    assert done.exit_code == StoreUnavailable.exit_code
    assert "the running stack's Redis" in done.stderr
    assert "stop the stack with Ctrl-C and start it again" in done.stderr
    assert "posology up" not in done.stderr


def test_a_search_needs_no_redis(stack: Stack) -> None:
    with stack.hung("redis-server"):
        assert stack.cli("search", QUESTION).exit_code == 0


def test_a_submission_without_an_answer_is_repeated_with_its_key(stack: Stack) -> None:
    with stack.hung("redis-server"):
        done = stack.cli("submit", QUESTION, "--key", "once")
        unkeyed = stack.cli("submit", QUESTION)
    assert done.exit_code == unkeyed.exit_code == StoreUnavailable.exit_code
    assert (
        "The job may still be in the queue: repeat the command with the same --key" in done.stderr
    )
    assert "look for it with `posology jobs list`" in unkeyed.stderr
    again = [stack.cli("submit", QUESTION, "--key", "once").stdout for _ in range(2)]
    assert again[0] == again[1]
