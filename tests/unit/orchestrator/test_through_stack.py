"""``ask`` and ``search`` through a running stack, and when they answer themselves after all."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from orchestrator.api.examples import ANSWER, JOB, QUEUED
from orchestrator.cli.app import app
from orchestrator.cli.ask import stack as door
from orchestrator.settings import Settings, load_settings
from orchestrator.stack.answers import _ELSEWHERE, digest, stack_for
from posology.errors import ConfigurationError, StoreUnavailable
from posology.published.answers import AskOutput
from posology.published.jobs import JobOutput
from posology.published.literature import SearchOutput
from tests.support.stub_stack import REDIS, SEARCH, Reply, Sent, StubStack, stub_stack

QUESTION = "Does low-dose aspirin lower the risk of pre-eclampsia?"
#: the command answered itself: the address of its Redis is none
ITSELF = ConfigurationError.exit_code
FOUND = {**SEARCH, "query": QUESTION}
QUEUED_JOB = {**QUEUED, "question": QUESTION}
RUNNING = {**QUEUED_JOB, "state": "running", "started": QUEUED["created"]}
DONE = {**RUNNING, "state": "succeeded", "result": {**ANSWER, "question": QUESTION}}
CANCELLED = {**QUEUED_JOB, "state": "cancelled"}
#: what is asked before a question is submitted
ALIVE = ["GET /healthz", "GET /readyz"]
READY = (200, {"status": "ok", "workers": 1})
ERROR = {
    "type": "ProviderUnreachable", "message": "the provider cannot be reached", "exit_code": 6,
    "details": {"provider": "openai"}, "spending": None,
}  # fmt: skip
BUSY = (503, {"type": "urn:posology:problem:too-many-waits", "title": "t", "status": 503, "detail": "d"})  # fmt: skip
NO_REDIS = (503, {"type": "urn:posology:problem:not-ready", "title": "t", "status": 503, "detail": "d", "failing": ["redis"]})  # fmt: skip
LOST = (503, {"type": "urn:posology:problem:store-unavailable", "title": "t", "status": 503, "detail": "d"})  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("POSOLOGY_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("POSOLOGY_CONFIG", "off")
    return tmp_path


@pytest.fixture
def stack(folder: Path) -> Iterator[StubStack]:
    with stub_stack(folder / ".posology", "papers") as running:
        running.replies |= {
            "GET /healthz": (200, {"status": "ok"}),
            "GET /readyz": READY,
            "POST /v1/search": (200, FOUND),
            "POST /v1/jobs": (200, DONE),
            f"DELETE /v1/jobs/{JOB}": (200, CANCELLED),
        }
        yield running


def cli(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--index", "papers"])


def one_by_one(*replies: Reply) -> Callable[[Sent], Reply]:
    left = list(replies)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


def test_a_search_prints_what_the_stack_found(stack: StubStack) -> None:
    done = cli("search", QUESTION, "--json", "--k", "3", "--since", "1990")
    assert done.exit_code == 0, done.output
    assert SearchOutput.model_validate_json(done.stdout) == SearchOutput.model_validate(FOUND)
    assert stack.paths() == ["GET /healthz", "POST /v1/search"]
    sent = stack.sent[-1]
    assert sent.body == {"query": QUESTION, "k": 3, "retracted": False, "filters": {"since": 1990}}
    assert sent.headers["X-Posology-Tenant"] == "default"


def test_a_question_is_one_job(stack: StubStack) -> None:
    stack.replies["POST /v1/jobs"] = one_by_one((202, RUNNING), (202, RUNNING), (200, DONE))
    done = cli("ask", QUESTION, "--json", "--max-cost", "0.5", "--strategy", "direct")
    assert done.exit_code == 0, done.output
    assert AskOutput.model_validate_json(done.stdout) == AskOutput.model_validate(DONE["result"])
    assert [path.partition("?")[0] for path in stack.paths()] == [*ALIVE, *["POST /v1/jobs"] * 3]  # fmt: skip
    first, *others = stack.sent[2:]
    assert first.body == {
        "question": QUESTION, "max_cost_usd": "0.5", "strategy": "direct", "retracted": False,
        "deadline_seconds": 86_400.0,
    }  # fmt: skip
    keys = {sent.headers["Idempotency-Key"] for sent in (first, *others)}
    assert len(keys) == 1
    assert all(sent.body == first.body for sent in others)


def test_local_asks_no_stack(stack: StubStack) -> None:
    assert cli("ask", QUESTION, "--local").exit_code == ITSELF
    assert cli("search", QUESTION, "--local").exit_code == ITSELF
    assert stack.sent == []


def test_an_invalid_question_is_not_sent(stack: StubStack) -> None:
    assert cli("ask", " ").exit_code == 3
    assert cli("search", QUESTION, "--mode", "best").exit_code == 3
    assert stack.sent == []


def test_a_failed_job_ends_as_the_command_would(stack: StubStack) -> None:
    failed = {**RUNNING, "state": "failed", "error": ERROR}
    stack.replies["POST /v1/jobs"] = (200, failed)
    done = cli("ask", QUESTION)
    assert (done.exit_code, done.stderr) == (6, "posology: the provider cannot be reached\n")
    done = cli("ask", QUESTION, "--json")
    assert (done.exit_code, json.loads(done.stdout)["error"]) == (6, ERROR)


def test_a_job_that_somebody_cancels_is_an_error(stack: StubStack) -> None:
    stack.replies["POST /v1/jobs"] = one_by_one((202, RUNNING), (200, CANCELLED))
    done = cli("ask", QUESTION)
    assert done.exit_code == 8
    assert "was cancelled" in done.stderr


def test_a_question_that_no_worker_takes_is_withdrawn(stack: StubStack) -> None:
    stack.replies["POST /v1/jobs"] = (202, QUEUED_JOB)
    assert cli("ask", QUESTION).exit_code == ITSELF
    assert f"DELETE /v1/jobs/{JOB}" in stack.paths()


def test_one_that_is_answered_while_it_is_withdrawn_is_printed(stack: StubStack) -> None:
    stack.replies["POST /v1/jobs"] = one_by_one((202, QUEUED_JOB), (200, DONE))
    assert cli("ask", QUESTION).exit_code == 0
    assert f"DELETE /v1/jobs/{JOB}" not in stack.paths()


def test_an_interrupted_question_is_cancelled(stack: StubStack) -> None:
    def interrupt(sent: Sent) -> Reply:
        if sent.what.endswith("wait=60"):
            raise_in_main.set()
            # until the command has closed the connection
            withdrawn.wait(90)
        return (202, RUNNING)

    def withdraw(_: Sent) -> Reply:
        withdrawn.set()
        return (200, CANCELLED)

    raise_in_main, withdrawn = threading.Event(), threading.Event()
    stack.replies |= {"POST /v1/jobs": interrupt, f"DELETE /v1/jobs/{JOB}": withdraw}
    with subprocess.Popen(
        [sys.executable, "-c", "from orchestrator.cli.app import main; main()", "ask", QUESTION, "--index", "papers"],
        stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert raise_in_main.wait(90)
        process.send_signal(2)
        assert process.wait(90) == 130
    assert withdrawn.is_set()


@pytest.mark.parametrize("reply", [None, BUSY, (502, "an HTML page"), (200, {"no": "form"})])
def test_what_the_stack_does_not_answer_the_command_does(stack: StubStack, reply: Reply) -> None:
    stack.replies |= {"POST /v1/jobs": reply, "POST /v1/search": reply}
    assert cli("ask", QUESTION).exit_code == ITSELF
    assert cli("search", QUESTION).exit_code == ITSELF


@pytest.mark.parametrize("reply", [None, BUSY])
def test_nothing_is_submitted_to_a_stack_without_workers(stack: StubStack, reply: Reply) -> None:
    stack.replies["GET /readyz"] = reply
    assert cli("ask", QUESTION).exit_code == ITSELF
    assert stack.paths() == ALIVE


def test_a_stack_that_hangs_is_left_after_a_second(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "_ALIVE", 0.05)
    monkeypatch.setattr(door.Door.request, "__kwdefaults__", {"key": None, "seconds": 0.05})
    with socket.create_server(("127.0.0.1", 0)) as listening:
        # it accepts connections, and never replies
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with stub_stack(folder / "other", "papers", api_url=url):
            monkeypatch.setenv("POSOLOGY_HOME", "other")
            assert cli("search", QUESTION).exit_code == ITSELF
            assert cli("ask", QUESTION).exit_code == ITSELF


@pytest.mark.parametrize("reply", [NO_REDIS, LOST])
def test_a_redis_that_hangs_is_reported_once(stack: StubStack, reply: Reply) -> None:
    path = "GET /readyz" if reply is NO_REDIS else "POST /v1/jobs"
    stack.replies[path] = reply
    done = cli("ask", QUESTION)
    assert done.exit_code == StoreUnavailable.exit_code
    assert "secret" not in done.output


@pytest.mark.parametrize(
    "changed",
    [
        {"POSOLOGY_MODEL": "openai:gpt-4o-mini"},
        {"POSOLOGY_EMBEDDER": "medcpt"},
        {"POSOLOGY_POLICY": "doubling"},
        {"POSOLOGY_FOLD": "off"},
        {"OPENAI_API_KEY": "sk-another"},
        {"OPENAI_BASE_URL": "http://127.0.0.1:1"},
        {"POSOLOGY_INDEX": "others"},
        {"POSOLOGY_REDIS_URL": "redis://127.0.0.1:2/0"},
        {"POSOLOGY_PRICES": "prices.toml"},
    ],
    ids=lambda one: next(iter(one)),
)
def test_other_settings_are_another_answer(
    stack: StubStack, changed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POSOLOGY_INDEX", "papers")
    assert stack_for(load_settings(), None) is not None
    for name, value in changed.items():
        monkeypatch.setenv(name, value)
    assert stack_for(load_settings(), None) is None
    assert stack.sent == []


@pytest.mark.parametrize(
    "changed",
    [
        {"POSOLOGY_TENANT": "acme"},
        {"POSOLOGY_LOG_LEVEL": "debug"},
        {"POSOLOGY_WORKER_CONCURRENCY": "2"},
        {"POSOLOGY_REDIS_URL": REDIS},
        {"POSOLOGY_HOSTS": "example.org"},
    ],
    ids=lambda one: next(iter(one)),
)
def test_what_changes_no_answer_does_not_matter(
    stack: StubStack, changed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in changed.items():
        monkeypatch.setenv(name, value)
    assert stack_for(load_settings(), "./papers/../papers/") is not None
    assert stack.sent == []


def test_a_tenant_asks_for_itself(stack: StubStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSOLOGY_TENANT", "acme")
    assert cli("ask", QUESTION).exit_code == 0
    assert {sent.headers.get("X-Posology-Tenant") for sent in stack.sent} == {"acme"}


@pytest.mark.parametrize(
    "changed", [{"version": "0.0.1"}, {"answers": None}, {"api_url": None}], ids=str
)
def test_a_stack_that_cannot_be_used_is_not(folder: Path, changed: dict[str, Any]) -> None:
    with stub_stack(folder / ".posology", "papers", **changed):
        assert stack_for(load_settings(), "papers") is None


def test_a_stack_that_asks_for_keys_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert digest(load_settings(), "papers") is not None
    monkeypatch.setenv("POSOLOGY_AUTH", "keys")
    assert digest(load_settings(), "papers") is None


def test_a_changed_file_is_another_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prices = folder / "prices.toml"
    prices.write_text("", encoding="utf-8")
    monkeypatch.setenv("POSOLOGY_PRICES", "prices.toml")
    before = digest(load_settings(), "papers")
    prices.write_text("# other prices", encoding="utf-8")
    assert digest(load_settings(), "papers") != before


def test_every_setting_that_does_not_matter_exists() -> None:
    assert set(Settings.model_fields) >= _ELSEWHERE


def test_the_canned_jobs_are_jobs() -> None:
    for job in (QUEUED_JOB, RUNNING, DONE, CANCELLED):
        JobOutput.model_validate(job)
