"""The whole stack as processes: what it starts, what it survives, and that it leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from redis import Redis
from typer.testing import CliRunner

from orchestrator.cli.app import app as commands
from orchestrator.configuration import measured
from orchestrator.configuration.measured import Measured
from orchestrator.environment import FOR_SERVICES
from orchestrator.jobs.store import open_store
from orchestrator.question.request import JobRequest
from orchestrator.settings import Settings, load_settings
from orchestrator.stack.child import Child
from orchestrator.stack.folder import StackInfo, read_stack
from orchestrator.stack.options import (
    API,
    WORKER,
    Part,
    StackOptions,
    api_command,
    fitting,
    ingest_command,
    worker_command,
)
from orchestrator.stack.up import running_stack
from posology.errors import (
    ChildFailed,
    ConfigurationError,
    IndexMissing,
    StackRuns,
    StoreUnavailable,
)
from posology.index.store import Index
from posology.store.keys import DEFAULT_TENANT
from tests.support.waiting import until
from workers.engine.claims import WorkStore

ROOT = Path(__file__).resolve().parents[2]
#: announces itself as a worker does
WORKER_CODE = """
import os, socket, time, redis
with redis.Redis.from_url(os.environ["POSOLOGY_REDIS_URL"]) as client:
    name = f"{socket.gethostname()}:{os.getpid()}"
    client.zadd("posology:workers", {name: time.time() * 1000})
print("index", os.environ.get("POSOLOGY_INDEX"), flush=True)
time.sleep(600)
"""
WAIT = "import time; time.sleep(600)"
API_ARGV = (sys.executable, "-m", "http.server", "{port}", "--bind", "{host}")
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('up', flush=True); time.sleep(600)"
)
#: ``posology up`` without its command line: prints a line when ready, and how it ended
UP = """
import os, sys
from pathlib import Path
import anyio
from orchestrator.stack.options import StackOptions
from orchestrator.stack.up import run_stack

async def always(info, children):
    return True

folder, worker, workers, grace = sys.argv[1:]
options = StackOptions(
    environment=dict(os.environ), folder=Path(folder), workers=int(workers), port=0,
    worker_argv=(sys.executable, "-c", worker), worker_grace=float(grace),
    workers_ready=None if "posology:workers" in worker else always,
    api_argv=(sys.executable, "-m", "http.server", "{port}", "--bind", "{host}"),
)
ready = lambda info: print("ready", flush=True)
tell = lambda line: print(line, flush=True)
print(anyio.run(lambda: run_stack(options, ready=ready, tell=tell)).name)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Up:
    """A stack in a process of its own."""

    process: subprocess.Popen[str]
    folder: Path
    #: in the environment of each of its processes
    mark: str

    @property
    def info(self) -> StackInfo:
        found = read_stack(self.folder)
        assert found is not None
        return found

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def running(self) -> dict[int, str]:
        """Its processes that still run, and their command lines."""
        found = {}
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                # Redis writes its title over its environment, and is known by where it works
                here = (place / "cwd").readlink() == self.folder / "redis"
                if here or self.mark.encode() in (place / "environ").read_bytes():
                    found[int(place.name)] = (place / "cmdline").read_text().replace("\0", " ")
        return found

    def children(self) -> dict[int, str]:
        return {pid: c for pid, c in self.running().items() if pid != self.process.pid}

    def pid_if_one(self, part: str) -> int | None:
        pids = [pid for pid, command in self.children().items() if part in command]
        return pids[0] if len(pids) == 1 else None

    def has_new(self, part: str, old: int) -> bool:
        return self.pid_if_one(part) not in (None, old)

    def pid_of(self, part: str) -> int:
        pid = self.pid_if_one(part)
        assert pid is not None
        return pid


@contextmanager
def up(
    folder: Path,
    *,
    worker: str = WORKER_CODE,
    workers: int = 1,
    grace: float = 10,
    ready: bool = True,
) -> Iterator[Up]:
    mark = uuid.uuid4().hex
    command = [sys.executable, "-c", UP, str(folder), worker, str(workers), str(grace)]
    environment = {**os.environ, "POSOLOGY_TEST_MARK": mark}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=None, text=True
    ) as process:
        running = Up(process=process, folder=folder, mark=mark)
        try:
            if ready:
                assert running.line() == "ready"
            yield running
        finally:
            process.kill()
            process.wait(90)
            for pid in running.running():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def workers_of(info: StackInfo) -> list[int]:
    """The process ids of all that told of themselves."""
    with Redis.from_url(info.redis_url, decode_responses=True) as client:
        names: Any = client.zrange("posology:workers", 0, -1)
    return [int(name.rpartition(":")[2]) for name in names]


def answers(url: str | None) -> bool:
    assert url is not None
    with urllib.request.urlopen(url, timeout=60) as reply:
        return bool(reply.status == 200)


def test_everything_runs_and_ctrl_c_leaves_nothing(tmp_path: Path) -> None:
    with up(tmp_path, workers=2) as stack:
        info = stack.info
        assert info.pid == stack.process.pid
        assert answers(info.api_url)
        assert len(workers_of(info)) == 2
        processes = stack.running()
        # itself, Redis, two workers, the API
        assert len(processes) == 5
        password = info.redis_url.split("@")[0].rpartition(":")[2]
        assert not any(password in command for command in processes.values())
        # a terminal's Ctrl-C reaches the supervisor alone
        assert {os.getsid(pid) == pid for pid in processes if pid != info.pid} == {True}
        stack.process.send_signal(signal.SIGINT)
        assert stack.line() == "stopping"
        assert stack.line() == "SIGINT"
        assert stack.process.wait(90) == 0
        assert stack.running() == {}
        assert read_stack(tmp_path) is None
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*.log")}
    assert modes == dict.fromkeys(["redis.log", "worker1.log", "worker2.log", "api.log"], 0o600)


def test_ctrl_c_while_it_starts_leaves_nothing(tmp_path: Path) -> None:
    code = "'posology:workers is not written to'; print('up', flush=True);" + WAIT
    with up(tmp_path, worker=code, ready=False) as stack:
        log = tmp_path / "log" / "worker1.log"
        until(lambda: log.exists() and log.read_text(encoding="utf-8"))
        assert read_stack(tmp_path) is None
        stack.process.send_signal(signal.SIGINT)
        assert stack.line() == "stopping"
        assert stack.line() == "SIGINT"
        assert stack.process.wait(90) == 0
        assert stack.running() == {}


def test_sigterm_is_a_ctrl_c(tmp_path: Path) -> None:
    with up(tmp_path) as stack:
        stack.process.terminate()
        assert stack.line() == "stopping"
        assert stack.line() == "SIGTERM"
        assert stack.process.wait(90) == 0
        assert stack.running() == {}


async def begun(url: str) -> None:
    """A job that a worker has begun, and one that waits."""
    async with open_store(url) as store:
        for _ in range(2):
            asked = JobRequest.model_validate({"question": "Does it?"}).settled(Settings())
            await store.submit(asked)
        unit = await WorkStore(store, worker="w").take(DEFAULT_TENANT)
        assert unit is not None
        assert await WorkStore(store, worker="w").claim(unit, delivery="d")


def test_a_stop_says_what_it_waits_for(tmp_path: Path) -> None:
    with up(tmp_path) as stack:
        anyio.run(begun, stack.info.redis_url)
        stack.process.send_signal(signal.SIGINT)
        said = stack.line()
        assert said.startswith("stopping: waiting up to 10 s for 1 unfinished job; press Ctrl-C")
        assert stack.line() == "SIGINT"
        assert stack.process.wait(90) == 0


def test_a_missing_index_is_named_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    for place in ("./missing", "other"):
        done = CliRunner().invoke(commands, ["up", "--index", place, "--port", "0"])
        assert done.exit_code == IndexMissing.exit_code
        assert f"posology ingest PATH --index {place}" in done.stderr
        assert "starting" not in done.stderr
    assert not (tmp_path / ".posology").exists()


def test_all_processes_of_a_stack_keep_their_data_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was paid for is among it, and a backup must find it there."""
    Index.create(tmp_path / "index", "hash", 16)
    seen: list[StackOptions] = []

    async def run(options: StackOptions, **_: object) -> None:
        seen.append(options)

    monkeypatch.setattr("orchestrator.stack.up.run_stack", run)
    monkeypatch.setenv("POSOLOGY_HOME", str(tmp_path / "own"))
    check = Measured(day=date(2026, 1, 15), share=1.4, findings={})
    measured.write(load_settings(), "openai:gpt-6-luna", check)
    given = ["up", "--home", str(tmp_path / "data"), "--index", str(tmp_path / "index")]
    done = CliRunner().invoke(commands, given)
    assert done.exit_code == 0, done.stderr
    assert seen[0].folder == tmp_path / "data"
    assert seen[0].overrides["POSOLOGY_HOME"] == str(tmp_path / "data")
    # what was measured of models bounds their calls
    found = measured.read(Settings.model_validate({"POSOLOGY_HOME": str(tmp_path / "data")}))
    assert found["openai:gpt-6-luna"].share == 1.4


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs PR_SET_PDEATHSIG")
def test_a_killed_supervisor_leaves_nothing_and_the_next_one_finds_the_data(tmp_path: Path) -> None:
    with up(tmp_path) as stack:
        info = stack.info
        with Redis.from_url(info.redis_url) as client:
            client.set("job", "1")
        stack.process.kill()
        stack.process.wait(90)
        until(lambda: not stack.running())
        assert (tmp_path / "stack.json").exists()
        assert read_stack(tmp_path) is None
    with up(tmp_path) as stack:
        assert stack.info.redis_url == info.redis_url
        with Redis.from_url(stack.info.redis_url) as client:
            assert client.get("job") == b"1"


def test_whatever_is_killed_comes_back(tmp_path: Path) -> None:
    with up(tmp_path) as stack:
        info = stack.info
        with Redis.from_url(info.redis_url) as client:
            client.set("job", "1")
        for name, part in (("redis", "redis-server"), ("worker1", "zadd"), ("api", "http.server")):
            pid = stack.pid_of(part)
            os.kill(pid, signal.SIGKILL)
            assert stack.line().startswith(f"{name} ended by SIGKILL; restarting in 0.1 s")
            until(partial(stack.has_new, part, pid))
        with Redis.from_url(info.redis_url) as client:
            assert until(lambda: client.get("job")) == b"1"
        worker = stack.pid_of("zadd")
        until(lambda: worker in workers_of(info))
        assert stack.info == info


def options(folder: Path, **more: Any) -> StackOptions:
    plain = StackOptions(
        environment=dict(os.environ),
        folder=folder,
        port=0,
        worker_argv=(sys.executable, "-c", WORKER_CODE),
        api_argv=API_ARGV,
    )
    return replace(plain, **more)


IN_A_BLOCK = """
import os, sys
from pathlib import Path
import anyio
from orchestrator.stack.options import StackOptions
from orchestrator.stack.up import running_stack

async def always(info, children):
    return True

async def main():
    options = StackOptions(
        environment=dict(os.environ), folder=Path(sys.argv[1]), api=False, workers_ready=always,
        worker_argv=(sys.executable, "-c", sys.argv[2]), worker_grace=600,
    )
    async with running_stack(options):
        print("ready", flush=True)
        try:
            await anyio.sleep_forever()
        finally:
            print("stopping", flush=True)

try:
    anyio.run(main)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.parametrize("worker", [WORKER_CODE, STUBBORN])
def test_ctrl_c_in_a_block_that_receives_no_signals_leaves_nothing(
    tmp_path: Path, worker: str
) -> None:
    mark = uuid.uuid4().hex
    command = [sys.executable, "-c", IN_A_BLOCK, str(tmp_path), worker]
    environment = {**os.environ, "POSOLOGY_TEST_MARK": mark}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        stack = Up(process=process, folder=tmp_path, mark=mark)
        assert stack.line() == "ready"
        log = tmp_path / "log" / "worker1.log"
        until(lambda: log.read_text(encoding="utf-8"))
        process.send_signal(signal.SIGINT)
        assert stack.line() == "stopping"
        if worker == STUBBORN:
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
        assert stack.line() == "interrupted"
        assert process.wait(90) == 0
        assert stack.running() == {}


@pytest.mark.anyio
async def test_a_second_stack_on_the_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_stack(options(tmp_path, index="data/index")) as info:
        assert read_stack(tmp_path) == info
        with monkeypatch.context() as other:
            other.setattr(os, "geteuid", lambda: os.getuid() + 1)
            # another user's stack would be sent questions
            assert read_stack(tmp_path) is None
        with pytest.raises(StackRuns, match=rf"pid {os.getpid()}, API at {info.api_url}"):
            async with running_stack(options(tmp_path)):
                pytest.fail("two stacks on one folder")
        said = (tmp_path / "log" / "worker1.log").read_text(encoding="utf-8")
        assert said.split() == ["index", "data/index"]
    assert read_stack(tmp_path) is None


@pytest.mark.anyio
async def test_a_redis_that_runs_already_is_used_and_left_alone(tmp_path: Path) -> None:
    async with running_stack(options(tmp_path / "a", workers=0, api=False)) as first:
        assert first.api_url is None
        mine = options(tmp_path / "b", redis_url=first.redis_url, workers=1)
        async with running_stack(mine) as second:
            assert second.redis_url == first.redis_url
            assert not (tmp_path / "b" / "redis").exists()
            assert await anyio.to_thread.run_sync(answers, second.api_url)
        assert len(workers_of(first)) == 1


@pytest.mark.anyio
async def test_a_redis_that_does_not_answer_is_named_without_its_password(tmp_path: Path) -> None:
    url = "redis://:secret@127.0.0.1:1/0"
    with pytest.raises(StoreUnavailable) as silent:
        async with running_stack(options(tmp_path, redis_url=url)):
            pytest.fail("started")
    assert silent.value.address == "redis://127.0.0.1:1/0"
    assert "secret" not in str(silent.value)


@pytest.mark.anyio
async def test_a_worker_that_cannot_start_ends_the_stack_with_its_words(tmp_path: Path) -> None:
    code = "raise SystemExit('the index is missing')"
    with pytest.raises(ChildFailed, match=r"worker1 ended 5 times.*exit status 1: the index is m"):
        async with running_stack(options(tmp_path, worker_argv=(sys.executable, "-c", code))):
            pytest.fail("ready")
    assert read_stack(tmp_path) is None


@pytest.mark.anyio
async def test_a_worker_that_is_never_ready_ends_the_stack(tmp_path: Path) -> None:
    async def never(info: StackInfo, workers: tuple[Child, ...]) -> bool:
        return False

    # Redis starts within the same time, also on a busy machine
    slow = options(tmp_path, workers_ready=never, start_timeout=4.0, api=False)
    with pytest.raises(ChildFailed, match=r"not ready after 4 s: worker1"):
        async with running_stack(slow):
            pytest.fail("ready")


@pytest.mark.anyio
async def test_a_taken_port_is_named_before_somebody_else_is_mistaken_for_the_api(
    tmp_path: Path,
) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"127.0.0.1:{port} is in use"):
            async with running_stack(options(tmp_path, port=port, workers=0)):
                pytest.fail("started")


KEYS = ("POSOLOGY_CONSOLE_KEY", "POSOLOGY_METRICS_KEY", "POSOLOGY_OIDC_CLIENT_SECRET", "POSOLOGY_API_KEY", "NCBI_API_KEY", "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY")  # fmt: skip


@pytest.mark.parametrize(
    ("embedder", "of_api"),
    [("", set()), ("all-MiniLM-L6-v2", set()), ("openai:text-embedding-3-small", {"OPENAI_API_KEY"})],
)  # fmt: skip
def test_each_process_has_only_the_keys_that_it_needs(
    tmp_path: Path, embedder: str, of_api: set[str]
) -> None:
    given = {**dict.fromkeys(KEYS, "secret"), "POSOLOGY_EMBEDDER": embedder, "PATH": "/bin"}
    one = options(tmp_path, environment=given)
    url = "redis://h:1/0"
    found = {
        "api": api_command(one, url, 1).environment,
        "worker": worker_command(one, url, 1).environment,
        "ingest": ingest_command(one, url).environment,
        "redis": fitting(given, Part.REDIS),
    }
    callers = {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"}
    assert {name: {key for key in KEYS if key in has} for name, has in found.items()} == {
        "api": {"POSOLOGY_CONSOLE_KEY", "POSOLOGY_METRICS_KEY", "POSOLOGY_OIDC_CLIENT_SECRET"}
        | of_api,
        "worker": callers,
        "ingest": callers | {"NCBI_API_KEY"},
        "redis": set(),
    }
    assert all(has["PATH"] == "/bin" for has in found.values())


def test_the_commands_are_those_of_celery_and_uvicorn(tmp_path: Path) -> None:
    plain = options(tmp_path, worker_argv=WORKER, api_argv=API, concurrency=3, index="i",
                    environment={"A": "1"}, overrides={"B": "2"})  # fmt: skip
    worker = worker_command(plain, "redis://:secret@h:1/0", 2)
    assert worker.argv[:6] == (sys.executable, "-m", "celery", "-A", "workers.app", "worker")
    assert worker.argv[worker.argv.index("--concurrency") + 1] == "3"
    assert worker.argv[worker.argv.index("-Q") + 1] == "posology.jobs,posology.calls"
    assert worker.argv[-1] == "worker2@%h"
    assert worker.environment == {
        **FOR_SERVICES,
        "A": "1",
        "B": "2",
        "POSOLOGY_INDEX": "i",
        "POSOLOGY_REDIS_URL": "redis://:secret@h:1/0",
    }
    assert "secret" not in repr(worker) + repr(worker.argv)
    api = api_command(plain, "redis://:secret@h:1/0", 8123)
    assert api.argv[1:] == ("-m", "uvicorn", "--factory", "orchestrator.api.app:from_environment",
                            "--host", "127.0.0.1", "--port", "8123", "--no-access-log",
                            "--limit-concurrency", "1000")  # fmt: skip
    assert json.dumps(api.argv)
