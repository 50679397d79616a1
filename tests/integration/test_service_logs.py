"""Logs of a real stack: one line for each event, with ids, and without text, keys or passwords."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from redis import Redis
from typer.testing import CliRunner

from orchestrator.cli.app import app
from orchestrator.logs.files import Line
from orchestrator.stack.folder import StackInfo, read_stack
from posology.testing.provider.faults import Faults
from posology.testing.provider.load import LoadStub
from tests.support.indices import index_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
MODEL = "openai:gpt-4o-mini"
QUESTION = "Did zyxomab lower the risk of stroke?"
PASSAGE = "Zyxomab lowered the risk of stroke in a group of adults."
#: of no usual form, so that only the settings tell that it is one
KEY = "planted-provider-key-4711"


@pytest.fixture(scope="module")
def index(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [{"id": "t:1", "text": PASSAGE}]
    return index_of(tmp_path_factory.mktemp("logged-index"), tiny_encoder, rows)


class Up:
    """``posology up`` in a process of its own; its terminal is read as it is written."""

    def __init__(self, process: subprocess.Popen[str], home: Path) -> None:
        self.process = process
        self.home = home
        self.terminal: list[str] = []
        self._new = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._new:
                self.terminal.append(line)
                self._new.notify_all()

    def says(self, text: str) -> None:
        with self._new:
            found = self._new.wait_for(lambda: any(text in one for one in self.terminal), 120)
        assert found, f"{text!r} not in {self.terminal}"

    @property
    def info(self) -> StackInfo:
        found = read_stack(self.home)
        assert found is not None
        return found

    def lines(self) -> list[dict[str, Any]]:
        """Lines of our own processes: JSON without exception."""
        found = []
        for path in (self.home / "log").glob("*.log"):
            if path.stem != "redis":
                text = path.read_text(encoding="utf-8").splitlines()
                found += [dict(Line.of(path.stem, one).fields, raw=one) for one in text]
        assert [one["raw"] for one in found if len(one) == 1] == []
        return found

    def until(self, event: str, **fields: Any) -> dict[str, Any]:
        deadline = time.monotonic() + 120
        while True:
            for line in self.lines():
                if line["event"] == event and fields.items() <= line.items():
                    return line
            assert time.monotonic() < deadline, (event, fields, self.lines())
            time.sleep(0.05)


@contextmanager
def up(home: Path, index: Path, encoder: Path, stub: LoadStub, **more: str) -> Iterator[Up]:
    environment = {
        **os.environ,
        "POSOLOGY_EMBEDDER": str(encoder),
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": stub.openai_url,
        "PYTHONPATH": str(ROOT),
        **more,
    }
    code = "from orchestrator.cli.app import main; main()"
    options = ["--home", str(home), "--index", str(index), "--port", "0"]
    with subprocess.Popen(
        [sys.executable, "-c", code, "up", *options],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        stack = Up(process, home)
        try:
            stack.says("ready:")
            yield stack
        finally:
            process.terminate()
            try:
                process.wait(90)
            finally:
                process.kill()


def submit(stack: Up, tenant: str = "acme", **headers: str) -> httpx2.Response:
    return httpx2.post(
        f"{stack.info.api_url}/v1/jobs",
        json={"question": QUESTION, "model": MODEL},
        headers={"X-Posology-Tenant": tenant, **headers},
        trust_env=False,
        timeout=60,
    )


def test_every_event_has_its_line_and_no_line_has_a_secret(
    index: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    with LoadStub(Faults(latency=(0.0, 0.0))) as stub, up(home, index, tiny_encoder, stub) as stack:
        stack.until("worker ready")
        made = submit(stack, **{"X-Request-ID": "req-7"})
        assert made.headers["x-request-id"] == "req-7"
        job = made.json()["id"]
        submitted = stack.until("job submitted", job=job)
        assert (submitted["tenant"], submitted["request_id"]) == ("acme", "req-7")
        assert stack.until("request", route="/v1/jobs", request_id="req-7")["status"] == 202
        stack.until("decision made", job=job, tenant="acme")
        settled = stack.until("attempt settled", job=job, unit="answer")
        assert float(settled["charged_usd"]) > 0
        assert settled["tokens_in"] > 0
        stack.until("job succeeded", job=job)

        # a limit that refuses, shown on the terminal as well
        cli = CliRunner()
        at = {"POSOLOGY_REDIS_URL": stack.info.redis_url}
        created = cli.invoke(
            app, ["tenants", "create", "poor", "--day", "0.000001", "--model", MODEL], env=at
        )
        key = created.stdout.strip()
        refused = submit(stack, "poor", Authorization=f"Bearer {key}")
        assert refused.status_code == 402
        assert stack.until("refused by a limit", tenant="poor")["error"] == "BudgetExhausted"
        stack.says("refused by a limit")

        # most of a budget is spent
        with Redis.from_url(stack.info.redis_url) as redis:
            redis.hset("posology:{acme}:tenant", "total", "1")
        near = stack.until("budget nearly spent", tenant="acme")
        assert near["scope"] == "total"
        metrics = httpx2.get(f"{stack.info.api_url}/metrics", trust_env=False, timeout=60).text
        assert 'posology_budgets_near_limit{scope="total"} 1.0' in metrics

        password = stack.info.redis_url.split("@")[0].rpartition(":")[2]
        stack.process.send_signal(signal.SIGINT)
        stack.says("stopping")
        assert stack.process.wait(90) == 0
    stack.until("shutdown began")
    stack.until("worker stopped")
    stack.until("stack stopped")
    text = "".join(path.read_text(encoding="utf-8") for path in (home / "log").iterdir())
    text += "".join(stack.terminal)
    for secret in (KEY, key, password, "zyxomab", "lower the risk"):
        assert secret.lower() not in text.lower()

    found = CliRunner().invoke(app, ["logs", "--home", str(home), "--job", job, "--json"])
    assert found.exit_code == 0, found.output
    shown = [json.loads(line) for line in found.stdout.splitlines()]
    assert {line["job"] for line in shown} == {job}
    events = [line["event"] for line in shown]
    wanted = ["job submitted", "decision made", "attempt settled", "job succeeded"]
    assert [event for event in events if event in wanted] == wanted
    stamps = [line["timestamp"] for line in shown]
    assert stamps == sorted(stamps)


def test_a_second_ctrl_c_requeues_and_nothing_is_lost(
    index: Path, tiny_encoder: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    with (
        LoadStub(Faults(latency=(600.0, 600.0))) as stub,
        up(home, index, tiny_encoder, stub) as stack,
    ):
        job = submit(stack).json()["id"]
        deadline = time.monotonic() + 90
        while not stub.ledger():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        stack.process.send_signal(signal.SIGINT)
        stack.says("for 1 unfinished job; press Ctrl-C again to hurry")
        stack.process.send_signal(signal.SIGINT)
        stack.says("hurrying")
        assert stack.process.wait(60) == 0
        assert stack.until("unit requeued")["job"] == job
    with LoadStub(Faults(latency=(0.0, 0.0))) as stub, up(home, index, tiny_encoder, stub) as stack:
        stack.until("job succeeded", job=job)
