"""The commands around jobs, on a real Redis and without workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner, Result

from orchestrator.cli.app import app
from orchestrator.jobs.store import open_store
from orchestrator.stack.folder import StackInfo, own_folder, write_stack
from orchestrator.stack.ports import free_port
from posology.store import keys
from tests.integration.conftest import Finish
from tests.support.commands import Cli, flat, published

RUNNER = CliRunner()


@pytest.fixture
def end(redis_url: str, tenant: str, finish: Finish) -> Callable[..., str | None]:
    def run(**how: Any) -> str | None:
        async def once() -> str:
            async with open_store(redis_url) as store:
                with anyio.fail_after(90):
                    # the job may be on its way still
                    while (job := await finish(store, tenant, **how)) is None:  # noqa: ASYNC110 - another process
                        await anyio.sleep(0.05)
                    return job

        return anyio.run(once)

    return run


def test_a_question_is_submitted_once_for_its_key(cli: Cli) -> None:
    first = cli("submit", "Why?", "--key", "mine", "--deadline", "60")
    assert first.exit_code == 0
    assert first.stdout.startswith("job_")
    out = published(cli("submit", "Why?", "--key", "mine", "--deadline", "60", "--json"), "job")
    assert out["id"] == first.stdout.strip()
    assert out["request"]["deadline_seconds"] == 60
    conflict = cli("submit", "How?", "--key", "mine")
    assert conflict.exit_code == 8
    assert "new key" in conflict.stderr


def test_a_submission_may_wait_for_its_answer(cli: Cli, end: Any) -> None:
    timer = threading.Timer(0.3, end)
    timer.start()
    result = cli("submit", "Why?", "--wait")
    timer.join()
    assert result.exit_code == 0, result.stderr
    assert "refused" in result.stdout
    assert "Not in" in result.stdout
    assert "\x1b" not in result.stdout
    assert result.stderr.startswith("job_")


def test_a_waited_for_failure_has_its_exit_status(cli: Cli, end: Any) -> None:
    timer = threading.Timer(0.3, end, kwargs={"state": "failed", "nano": None})
    timer.start()
    result = cli("submit", "Why?", "--wait")
    timer.join()
    assert result.exit_code == 6
    assert "no [31mconnection" in result.stderr
    assert "\x1b" not in result.stderr


def test_jobs_are_listed_by_state_and_in_pages(cli: Cli, end: Any) -> None:
    ids = [cli("submit", f"Is it [red]{i}?").stdout.strip() for i in range(5)]
    dead = {end(state="failed"), end(state="expired")}
    page = published(cli("jobs", "list", "--json"), "jobs")
    assert [job["id"] for job in page["jobs"]] == sorted(ids, reverse=True)
    assert page["next"] is None
    found = published(cli("jobs", "list", "--failed", "--json"), "jobs")["jobs"]
    assert {job["id"] for job in found} == dead
    queued = published(cli("jobs", "list", "--state", "queued", "--json"), "jobs")["jobs"]
    assert {job["id"] for job in queued} == set(ids) - dead
    first = published(cli("jobs", "list", "--limit", "3", "--json"), "jobs")
    rest = published(cli("jobs", "list", "--after", first["next"], "--json"), "jobs")
    assert [job["id"] for job in (*first["jobs"], *rest["jobs"])] == sorted(ids, reverse=True)
    table = flat(cli("jobs", "list", "--limit", "2").stdout)
    assert max(ids) in table
    assert "Is it [red]" in table
    assert cli("jobs", "list", "--failed", "--state", "queued").exit_code == 2


def test_everything_about_a_job_is_shown(cli: Cli, end: Any) -> None:
    job = cli("submit", "Why [bold]\x1b[31mso?").stdout.strip()
    end(state="failed", nano=None)
    out = published(cli("jobs", "show", job, "--json"), "job")
    assert (out["state"], out["unknown_costs"], out["error"]["type"]) == (
        "failed", 1, "ProviderUnreachable"
    )  # fmt: skip
    result = cli("jobs", "show", job)
    assert "\x1b" not in result.stdout
    shown = flat(result.stdout)
    for part in (job, "failed", "Why [bold][31mso?", "ProviderUnreachable", "1 unknown",
                 "call 1 attempt 1: ok"):  # fmt: skip
        assert part in shown
    answered = cli("submit", "And now?").stdout.strip()
    end()
    assert "Not in [31mthere." in cli("jobs", "show", answered).stdout


def test_a_job_is_watched_to_its_end(cli: Cli, end: Any) -> None:
    job = cli("submit", "Why?").stdout.strip()
    timer = threading.Timer(0.3, end)
    timer.start()
    result = cli("jobs", "watch", job, "--json")
    timer.join()
    assert result.exit_code == 0
    events = [json.loads(line) for line in result.stdout.splitlines()]
    states = [event["data"]["state"] for event in events if event["type"] == "state"]
    assert states == ["queued", "running", "succeeded"]
    told = cli("jobs", "watch", job)
    assert "state succeeded" in told.stdout
    assert "refused" in told.stdout


def test_cancelling_says_what_was_spent(cli: Cli) -> None:
    job = cli("submit", "Why?").stdout.strip()
    told = flat(cli("jobs", "cancel", job).stdout)
    assert f"{job} is cancelled: spent $0; 0 calls made" in told
    out = published(cli("jobs", "cancel", job, "--json"), "job")
    assert out["cancellation"]["calls_made"] == 0
    assert cli("jobs", "watch", job).exit_code == 8


def test_failed_jobs_are_tried_again(cli: Cli, end: Any) -> None:
    first, second, third = (cli("submit", f"Is it {i}?").stdout.strip() for i in range(3))
    end(state="failed")
    end(state="expired")
    end()
    result = cli("jobs", "retry", first, third, "job_0", "--json")
    assert result.exit_code == 1
    assert result.stderr.count("posology: ") == 2
    assert [job["id"] for job in published(result, "jobs")["jobs"]] == [first]
    assert cli("jobs", "retry", third).exit_code == 8
    again = published(cli("jobs", "retry", "--all-failed", "--json"), "jobs")["jobs"]
    assert [job["id"] for job in again] == [second]
    assert "no job was tried again" in cli("jobs", "retry", "--all-failed").stderr
    assert cli("jobs", "retry").exit_code == 2
    assert cli("jobs", "retry", first, "--all-failed").exit_code == 2


@pytest.mark.parametrize("command", ["show", "watch", "cancel", "retry"])
def test_an_unknown_job_is_told(cli: Cli, command: str) -> None:
    result = cli("jobs", command, "job_0")
    assert result.exit_code == 8
    assert "there is no job job_0" in result.stderr
    assert published(cli("jobs", "show", "job_0", "--json"), "error")["error"]["exit_code"] == 8


def test_another_tenants_jobs_are_not_seen(cli: Cli) -> None:
    job = cli("submit", "Why?").stdout.strip()
    assert cli("jobs", "show", job, "--tenant", "somebody").exit_code == 8


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_what_commands_submit_is_logged_with_the_stack(
    redis_url: str, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    home = tmp_path / ".posology"
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"question": "Is it?"}\n{"question": "Does it?"}\n', encoding="utf-8")
    info = StackInfo(pid=1, redis_url=redis_url, api_url=None, started="", version="")
    env = {"POSOLOGY_TENANT": tenant}
    with own_folder(home):
        write_stack(home, info)
        # without a folder of logs there is nothing to write to, and the job is submitted all the same
        assert RUNNER.invoke(app, ["submit", "Can it?"], env=env).exit_code == 0
        (home / "log").mkdir()
        made = RUNNER.invoke(app, ["submit", "zyxomab?"], env=env)
        assert made.exit_code == 0, made.output
        assert made.stderr == ""
        job = made.stdout.strip()
        assert RUNNER.invoke(app, ["jobs", "cancel", job], env=env).exit_code == 0
        sent = RUNNER.invoke(app, ["batch", "rows.jsonl", "--no-watch"], env=env)
        assert sent.exit_code == 0, sent.output
    path = home / "log" / "commands.log"
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text(encoding="utf-8")
    assert "zyxomab" not in text
    found = lines(text)
    assert len(found) == len(text.splitlines())
    submitted = [line for line in found if line["event"] == "job submitted"]
    assert [line.get("job") == job for line in submitted] == [True, False, False]
    assert {line["tenant"] for line in submitted} == {tenant}
    assert len({line["batch"] for line in submitted[1:]}) == 1
    assert [line["row"] for line in submitted[1:]] == [0, 1]
    assert any(line["event"] == "job cancellation requested" for line in found)
    shown = RUNNER.invoke(app, ["logs", "--job", job], env=env)
    assert "commands" in shown.stdout
    assert "job submitted" in shown.stdout


def test_with_another_machines_redis_json_on_standard_error_is_asked_for(cli: Cli) -> None:
    assert cli("submit", "Is it?").stderr == ""
    made = cli("submit", "Does it?", POSOLOGY_LOG_FORMAT="json")
    (line,) = lines(made.stderr)
    assert (line["event"], line["job"]) == ("job submitted", made.stdout.strip())
    assert (
        cli("submit", "Can it?", POSOLOGY_LOG_FORMAT="json", POSOLOGY_LOG_LEVEL="error").stderr
        == ""
    )


def test_the_stack_of_this_folder_is_found(
    cli: Cli, redis_url: str, tmp_path: Path, tenant: str
) -> None:
    said = cli("submit", "Why?", POSOLOGY_REDIS_URL="")
    assert said.exit_code == 4
    assert "posology up" in said.stderr
    folder = tmp_path / "home"
    info = StackInfo(pid=1, redis_url=redis_url, api_url=None, started="", version="0")
    with own_folder(folder):
        write_stack(folder, info)
        found = cli("submit", "Why?", POSOLOGY_REDIS_URL="", POSOLOGY_HOME=str(folder))
    assert found.exit_code == 0, found.stderr
    assert keys.prefix(tenant)
    assert cli("jobs", "show", found.stdout.strip()).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["up", "--index", "s3://x/y", "--home", "/proc/nowhere"], 4),
        (["up", "--index", "x"], 5),
        (["up"], 4),
        (["up", "--workers", "0"], 2),
        (["api", "--port", "99999"], 2),
    ],
)
def test_what_cannot_be_served_is_told(cli: Cli, arguments: list[str], code: int) -> None:
    result = cli(*arguments)
    assert result.exit_code == code, result.stderr


def test_the_api_is_served_alone(redis_url: str) -> None:
    port = free_port("127.0.0.1")
    program = "from orchestrator.cli.app import main; main()"
    argv = [sys.executable, "-c", program, "api", "--port", str(port)]
    environment = {**os.environ, "POSOLOGY_REDIS_URL": redis_url}
    with subprocess.Popen(argv, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 90
            while True:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz") as reply:
                        assert reply.status == 200
                        break
                except OSError:
                    assert time.monotonic() < deadline
                    time.sleep(0.1)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(90)


def test_the_api_says_what_it_needs(cli: Cli) -> None:
    result = cli("api", POSOLOGY_REDIS_URL="")
    assert result.exit_code == 4
    assert "posology up" in result.stderr


def test_batches_are_listed_shown_and_cancelled(cli: Cli, end: Any, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"question": "Is it?"}\n{"question": "Is it so?"}\n{\n', encoding="utf-8")
    made = cli("batch", str(rows), "--no-watch").stdout.strip()
    end()
    shown = cli("batches", "show", made)
    assert shown.exit_code == 0, shown.stderr
    assert "1 queued, 1 succeeded, 1 rejected" in shown.stdout
    cancelled = cli("batches", "cancel", made, "--json")
    out = published(cancelled, "batch")
    assert (out["state"], out["states"]) == ("cancelled", {"succeeded": 1, "cancelled": 1})
    page = published(cli("batches", "list", "--state", "cancelled", "--json"), "batches")
    assert [one["id"] for one in page["batches"]] == [made]
    assert made in cli("batches", "list").stdout
    assert made not in cli("batches", "list", "--state", "running").stdout
    for command in ("show", "cancel"):
        missing = cli("batches", command, "batch_1")
        assert missing.exit_code == 8
    assert cli("batches", "list", "--after", "x").exit_code == 3


def test_logs_are_read_and_followed(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    log = tmp_path / "log" / "worker1.log"
    line = (
        '{{"timestamp": "2026-01-15T10:00:0{0}Z", "level": "{1}", "event": "{2}", "job": "{3}"}}\n'
    )
    log.write_text(line.format(1, "info", "a", "j") + line.format(2, "warning", "b", "k"))

    def logs(*more: str) -> Result:
        return RUNNER.invoke(app, ["logs", "--home", str(tmp_path), *more])

    assert [text.split()[-2:] for text in logs().stdout.splitlines()] == [
        ["a", "job=j"],
        ["b", "job=k"],
    ]
    assert logs("--job", "k", "--json").stdout == line.format(2, "warning", "b", "k")
    assert "a" not in logs("--level", "warning").stdout.split()
    assert len(logs("-n", "1").stdout.splitlines()) == 1
    assert logs("--level", "loudest").exit_code == 2
    missing = RUNNER.invoke(app, ["logs", "--home", str(tmp_path / "none")])
    assert missing.exit_code == 4
    program = "from orchestrator.cli.app import main; main()"
    argv = [sys.executable, "-c", program, "logs", "-f", "--job", "j", "--home", str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert " a job=j" in process.stdout.readline()
            with log.open("a") as file:
                file.write(line.format(3, "info", "c", "k") + line.format(4, "info", "d", "j"))
            assert " d job=j" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(90) == 130
        finally:
            process.kill()
