"""``posology batch`` on a real Redis: complete, in order, and going on after whatever stopped it."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import anyio
import pytest
from redis import Redis

from orchestrator.jobs.store import open_store
from orchestrator.stack.redis_server import find_server
from posology.store import keys
from tests.integration.conftest import Finish
from tests.support.commands import Cli, published
from tests.support.waiting import until


@pytest.fixture
def works(redis_url: str, tenant: str, finish: Finish) -> Callable[..., Any]:
    """Ends jobs in the background; with ``count`` so many at most, with ``bad`` each of these fails."""

    @contextmanager
    def working(count: int = 10**6, bad: int = 10**6) -> Iterator[None]:
        stop = threading.Event()

        async def work() -> None:
            async with open_store(redis_url) as store:
                done = 0
                while not stop.is_set() and done < count:
                    state = "failed" if (done + 1) % bad == 0 else "succeeded"
                    if await finish(store, tenant, state=state):
                        done += 1
                    else:
                        await anyio.sleep(0.02)

        thread = threading.Thread(target=anyio.run, args=(work,))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(90)

    return working


def questions(path: Path, count: int, *, bad: bool = False) -> Path:
    rows = [json.dumps({"id": f"q{i}", "question": f"Is it {i}?"}) for i in range(count)]
    if bad:
        rows[1:1] = ["{not json", ""]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def answers(path: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [row["row"] for row in rows] == list(range(len(rows)))
    return rows


def jobs(redis_url: str, tenant: str) -> list[str]:
    with Redis.from_url(redis_url, decode_responses=True) as redis:
        found = redis.zrange(f"{keys.prefix(tenant)}jobs", 0, -1)
        assert isinstance(found, list)
        return found


def test_each_row_has_its_row_and_nothing_is_asked_twice(
    cli: Cli, works: Any, tmp_path: Path, redis_url: str, tenant: str
) -> None:
    source, out = questions(tmp_path / "q.jsonl", 30), tmp_path / "a.jsonl"
    with works():
        result = cli("batch", str(source), "-o", str(out), "--json")
    assert result.exit_code == 0, result.stderr
    batch = published(result, "batch")
    assert (batch["total"], batch["over"], batch["states"]) == (30, True, {"succeeded": 30})
    rows = answers(out)
    assert [row["id"] for row in rows] == [f"q{i}" for i in range(30)]
    assert all(row["result"]["question"] == f"Is it {row['row']}?" for row in rows)
    assert list(tmp_path.glob("*.part")) == []
    again = cli("batch", str(source), "-o", str(out), "--json")
    assert (again.exit_code, json.loads(again.stdout)["id"]) == (0, batch["id"])
    assert len(jobs(redis_url, tenant)) == 30


def test_a_row_that_failed_or_was_bad_is_told_and_the_status_is_1(
    cli: Cli, works: Any, tmp_path: Path
) -> None:
    source, out = questions(tmp_path / "q.jsonl", 6, bad=True), tmp_path / "a.jsonl"
    with works(bad=3):
        result = cli("batch", str(source), "-o", str(out))
    assert result.exit_code == 1
    rows = answers(out)
    assert len(rows) == 7
    assert rows[1]["error"]["type"] == "InvalidQuery"
    assert [row["error"]["type"] for row in rows if row["state"] == "failed"] == [
        "ProviderUnreachable"
    ] * 2
    said = " ".join(result.stderr.split())
    assert "7 rows in" in said
    assert "4 answered or refused, 3 failed" in said
    assert "1 rows were not valid requests" in said
    assert "jobs retry" in said
    assert cli("batch", str(source), "-o", str(out)).exit_code == 1


def test_what_was_only_submitted_is_collected_later(
    cli: Cli, works: Any, tmp_path: Path, redis_url: str, tenant: str
) -> None:
    source, out = questions(tmp_path / "q.jsonl", 5), tmp_path / "a.jsonl"
    given = (str(source), "--max-cost", "0.5")
    first = cli("batch", *given, "--no-watch")
    assert first.exit_code == 0
    assert first.stdout.startswith("batch_")
    assert "--max-cost 0.5 is per question, not for the whole batch" in first.stderr
    assert cli("batch", *given, "--no-watch").stdout == first.stdout
    with works():
        assert cli("batch", *given, "-o", str(out)).exit_code == 0
    assert len(answers(out)) == len(jobs(redis_url, tenant)) == 5


def test_other_options_or_fresh_are_another_batch(
    cli: Cli, tmp_path: Path, redis_url: str, tenant: str
) -> None:
    source = str(questions(tmp_path / "q.jsonl", 2))
    given: list[tuple[str, ...]] = [(), ("--k", "3"), ("--model", "openai:x"), ("--fresh",)]
    ids = [cli("batch", source, "--no-watch", *extra).stdout for extra in given]
    assert len(set(ids)) == 4
    assert len(jobs(redis_url, tenant)) == 8
    # what was made afresh is what the same command leads to from then on
    assert cli("batch", source, "--no-watch").stdout == ids[-1]


def test_other_settings_are_another_batch(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, prompts = str(questions(tmp_path / "q.jsonl", 2)), tmp_path / "prompts"
    prompts.mkdir()
    packaged = resources.files("prompts") / "templates" / "answer.md"
    (prompts / "answer.md").write_text(
        f"{packaged.read_text(encoding='utf-8')}\n", encoding="utf-8"
    )
    ids = [cli("batch", source, "--no-watch").stdout]
    for name, value in (
        ("POSOLOGY_POLICY", "preflight"),
        ("POSOLOGY_TIER", "flex"),
        ("POSOLOGY_PROMPTS", str(prompts)),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            ids.append(cli("batch", source, "--no-watch").stdout)
    assert len(set(ids)) == 4


def test_the_output_of_another_batch_is_told_by_its_last_question(
    cli: Cli, works: Any, tmp_path: Path
) -> None:
    """Its last rows may have been rejected in both."""
    source, out = tmp_path / "q.jsonl", tmp_path / "a.jsonl"
    source.write_text('{"question": "Is it so?"}\n{not json\n', encoding="utf-8")
    with works():
        assert cli("batch", str(source), "-o", str(out)).exit_code == 1
    assert cli("batch", str(source), "-o", str(out)).exit_code == 1
    other = (str(source), "--model", "openai:x")
    assert cli("batch", *other, "--no-watch").exit_code == 0
    refused = cli("batch", *other, "-o", str(out))
    assert refused.exit_code != 1
    assert "is not an output of this batch" in " ".join(refused.stderr.split())


def test_a_torn_line_is_cut_off_and_whole_ones_are_kept(
    cli: Cli, works: Any, tmp_path: Path
) -> None:
    source, out = questions(tmp_path / "q.jsonl", 4), tmp_path / "a.jsonl"
    name = cli("batch", str(source), "--no-watch").stdout.strip()
    with works():
        assert cli("batch", str(source), "-o", str(tmp_path / "whole.jsonl")).exit_code == 0
    whole = (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)
    part = tmp_path / f"a.jsonl.{name[-12:]}.part"
    # a mark that shows that the line is not written again
    kept = whole[0].replace(b"Not in", b"NOT IN")
    for torn in (whole[1][:50], whole[1][:-1], b"\0" * 80, whole[2], b""):
        part.write_bytes(kept + torn)
        assert cli("batch", str(source), "-o", str(out)).exit_code == 0
        assert out.read_bytes() == b"".join([kept, *whole[1:]])
        out.unlink()


def test_an_output_of_something_else_is_not_written_over(
    cli: Cli, works: Any, tmp_path: Path
) -> None:
    source, out = questions(tmp_path / "q.jsonl", 2), tmp_path / "a.jsonl"
    out.write_text("precious\n", encoding="utf-8")
    result = cli("batch", str(source), "-o", str(out))
    assert result.exit_code == 3
    assert "--fresh" in result.stderr
    assert out.read_text(encoding="utf-8") == "precious\n"
    with works():
        assert cli("batch", str(source), "-o", str(out), "--fresh").exit_code == 0
    assert len(answers(out)) == 2


def test_a_part_whose_batch_is_forgotten_is_not_paid_for_again(
    cli: Cli, tmp_path: Path, redis_url: str, tenant: str
) -> None:
    source = questions(tmp_path / "q.jsonl", 2)
    name = cli("batch", str(source), "--no-watch").stdout.strip()
    (tmp_path / f"a.jsonl.{name[-12:]}.part").write_bytes(b'{"row":0,"error":null}\n')
    with Redis.from_url(redis_url) as redis:
        redis.delete(f"{keys.prefix(tenant)}batch:{name}")
    result = cli("batch", str(source), "-o", str(tmp_path / "a.jsonl"))
    assert result.exit_code == 3
    assert "whose record has expired" in result.stderr
    assert len(jobs(redis_url, tenant)) == 2


def test_compressed_input_standard_input_and_standard_output(
    cli: Cli, works: Any, tmp_path: Path
) -> None:
    source = questions(tmp_path / "q.jsonl", 3)
    packed = tmp_path / "q.jsonl.gz"
    packed.write_bytes(gzip.compress(source.read_bytes()))
    plain = cli("batch", str(source), "--no-watch").stdout
    assert cli("batch", str(packed), "--no-watch").stdout == plain
    with works():
        result = cli("batch", "-", "-o", "-", stdin=source.read_bytes())
    assert result.exit_code == 0, result.stderr
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == ["q0", "q1", "q2"]


@pytest.mark.parametrize(
    ("arguments", "env", "code", "says"),
    [
        (["none.jsonl", "-o", "a"], {}, 3, "No such file"),
        (["torn.gz", "-o", "a"], {}, 3, "broken compression"),
        (["q.jsonl", "-o", "nowhere/a"], {}, 3, "folder"),
        (["q.jsonl", "-o", "."], {}, 3, "regular file"),
        (["q.jsonl", "-o", "a", "--model", "x"], {}, 4, "openai:NAME"),
        (["q.jsonl", "-o", "a", "--tenant", "a b"], {}, 3, "tenant"),
        (["q.jsonl", "-o", "a"], {"POSOLOGY_REDIS_URL": ""}, 4, "posology up"),
        (["q.jsonl", "-o", "a"], {"POSOLOGY_REDIS_URL": "unix:///nowhere"}, 9, "unreachable"),
        (["q.jsonl"], {}, 2, ""),
        (["q.jsonl", "-o", "-", "--json"], {}, 2, ""),
    ],
)
def test_what_cannot_be_done_is_told_before_anything_is_asked(
    cli: Cli, tmp_path: Path, redis_url: str, tenant: str,
    arguments: list[str], env: dict[str, str], code: int, says: str,
) -> None:  # fmt: skip
    questions(tmp_path / "q.jsonl", 1)
    (tmp_path / "torn.gz").write_bytes(gzip.compress(b"x" * 1000)[:20])
    result = cli("batch", *arguments, **env)
    assert result.exit_code == code, result.stderr
    assert says in result.stderr
    assert jobs(redis_url, tenant) == []


@contextmanager
def command(
    source: Path, out: Path, redis_url: str, tenant: str
) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "POSOLOGY_REDIS_URL": redis_url, "POSOLOGY_TENANT": tenant}
    argv = [sys.executable, "-m", "orchestrator", "batch", str(source), "-o", str(out)]
    argv[1:3] = ["-c", "from orchestrator.cli.app import main; main()"]
    with subprocess.Popen(
        argv, env=environment, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        *(pytest.param(n, marks=pytest.mark.slow) for n in (signal.SIGINT, signal.SIGTERM)),
    ],
)
def test_whatever_ends_the_command_the_next_one_goes_on(
    cli: Cli, works: Any, tmp_path: Path, redis_url: str, tenant: str, number: signal.Signals
) -> None:
    source, out = questions(tmp_path / "q.jsonl", 200), tmp_path / "a.jsonl"
    with command(source, out, redis_url, tenant) as process:
        with works(count=60):
            part = until(lambda: next(iter(tmp_path.glob("a.jsonl.*.part")), None))
            until(lambda: part.stat().st_size > 0)
            process.send_signal(number)
            said = process.communicate(timeout=90)[1]
        if number is signal.SIGINT:
            assert process.returncode == 130
            assert "run this command again" in said
        else:
            assert process.returncode == -number
    kept = part.read_bytes()
    assert kept.count(b"\n") < 200
    assert not out.exists()
    with works():
        assert cli("batch", str(source), "-o", str(out)).exit_code == 0
    assert out.read_bytes().startswith(kept[: kept.rfind(b"\n") + 1])
    assert len(answers(out)) == len(jobs(redis_url, tenant)) == 200


@pytest.mark.slow
def test_two_commands_on_one_output_do_not_mix(cli: Cli, tmp_path: Path, works: Any,
                                               redis_url: str, tenant: str) -> None:  # fmt: skip
    source, out = questions(tmp_path / "q.jsonl", 3), tmp_path / "a.jsonl"
    with command(source, out, redis_url, tenant) as process:
        until(lambda: list(tmp_path.glob("a.jsonl.*.part")))
        second = cli("batch", str(source), "-o", str(out))
        assert second.exit_code == 3
        assert "another process" in second.stderr
        with works():
            assert process.wait(90) == 0
    assert len(answers(out)) == 3


@pytest.mark.slow
def test_a_redis_that_goes_away_is_waited_for(
    cli: Cli, tmp_path: Path, tenant: str, finish: Finish
) -> None:
    folder = tmp_path / "redis"
    folder.mkdir()
    url = f"unix://{folder / 'own.sock'}"
    argv = [str(find_server(os.environ.get("PATH"))), "--port", "0", "--unixsocket",
            str(folder / "own.sock"), "--dir", str(folder), "--appendonly", "yes",
            "--appendfsync", "always", "--save", ""]  # fmt: skip

    async def end(count: int) -> None:
        async with open_store(url) as store:
            while count:
                count -= bool(await finish(store, tenant))
                await anyio.sleep(0.02)

    source, out = questions(tmp_path / "q.jsonl", 20), tmp_path / "a.jsonl"
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as first:
        until((folder / "own.sock").exists)
        with command(source, out, url, tenant) as process:
            anyio.run(end, 5)
            until(lambda: next(iter(tmp_path.glob("a.jsonl.*.part"))).stat().st_size > 0)
            first.kill()
            first.wait(90)
            assert process.stderr is not None
            assert "Waiting for up to 600 s" in process.stderr.readline()
            with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as second:
                assert "Redis is back" in process.stderr.readline()
                anyio.run(end, 15)
                assert process.wait(90) == 0
                second.kill()
    assert len(answers(out)) == 20


def test_a_batch_is_exported(cli: Cli, works: Any, tmp_path: Path) -> None:
    source, out = questions(tmp_path / "q.jsonl", 3, bad=True), tmp_path / "a.jsonl"
    with works():
        batch = json.loads(cli("batch", str(source), "-o", str(out), "--json").stdout)["id"]
    table = list(
        csv.DictReader(io.StringIO(cli("batches", "show", batch, "--format", "csv").stdout))
    )
    assert [(row["row"], row["id"], row["status"]) for row in table] == [
        ("0", "q0", "refused"), ("1", "", "InvalidQuery"), ("2", "q1", "refused"), ("3", "q2", "refused"),
    ]  # fmt: skip
    assert json.loads(cli("batches", "show", batch, "--format", "json").stdout)["id"] == batch
    assert cli("batches", "show", f"batch_{'0' * 28}", "--format", "csv").exit_code == 8
    # more than are read at a time
    many = cli("batch", "-", "-o", "-", stdin=b"{}\n" * 150)
    assert many.exit_code == 1
    listed = json.loads(cli("batches", "list", "--limit", "1", "--json").stdout)["batches"]
    rows = cli("batches", "show", listed[0]["id"], "--format", "csv").stdout.splitlines()
    assert len(rows) == 1 + 150
