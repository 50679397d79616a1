from __future__ import annotations

import os
import signal
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from orchestrator.stack.child import Child, Command
from orchestrator.stack.supervisor import RestartPolicy, kept
from posology.errors import ChildFailed

Python = Callable[..., Command]
SLEEP = "import time; print('up', flush=True); time.sleep(600)"
#: SIGTERM is not obeyed
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print('up', flush=True); time.sleep(600)"
)
QUICK = RestartPolicy(first=0.01, longest=0.02, within=600)

pytestmark = pytest.mark.anyio


async def until(done: Callable[[], Any], seconds: float = 90.0) -> Any:
    with anyio.fail_after(seconds):
        while not (value := done()):  # noqa: ASYNC110 - another process is waited for
            await anyio.sleep(0.01)
    return value


def alive(pid: int) -> bool:
    """Whether the process runs; one that nobody has reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def is_up(child: Child) -> Callable[[], bool]:
    return lambda: "up" in child.last_lines()


async def test_a_process_lives_as_long_as_its_block(python: Python) -> None:
    async with kept([python(SLEEP)], hurry=anyio.Event()) as (child,):
        pid = child.pid
        assert pid is not None
        await until(is_up(child))
        assert alive(pid)
        assert os.getsid(pid) == os.getpgid(pid) == pid != os.getsid(0)
    assert child.pid is None
    assert not alive(pid)


async def test_a_killed_process_is_started_again_and_that_is_told(python: Python) -> None:
    told: list[str] = []
    async with kept([python(SLEEP)], hurry=anyio.Event(), policy=QUICK, tell=told.append) as (c,):
        first = c.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        second = await until(lambda: c.pid if c.pid != first else None)
        await until(is_up(c))
        assert not alive(first)
    assert told == ["child ended by SIGKILL; restarting in 0.01 s"]
    assert not alive(second)


async def test_a_process_that_ends_again_and_again_is_given_up(python: Python) -> None:
    told: list[str] = []
    code = "import sys; print('cannot open the index', file=sys.stderr); sys.exit(3)"
    with pytest.raises(ChildFailed) as given_up:
        async with kept([python(code)], hurry=anyio.Event(), policy=QUICK, tell=told.append):
            await anyio.sleep(600)
    message = str(given_up.value)
    assert "last with exit status 3" in message
    assert "cannot open the index" in message
    assert "child.log" in message
    assert given_up.value.child == "child"
    # the lines of earlier runs are not shown
    assert given_up.value.lines == ("cannot open the index",)
    assert len(told) == 4


async def test_a_program_that_is_missing_is_given_up_with_its_name(python: Python) -> None:
    command = replace(python(""), argv=("/nowhere/redis-server",))
    with pytest.raises(ChildFailed, match="/nowhere/redis-server: No such file"):
        async with kept([command], hurry=anyio.Event(), policy=QUICK):
            await anyio.sleep(600)


async def test_ends_that_are_far_apart_are_no_reason_to_give_up(python: Python) -> None:
    told: list[str] = []
    policy = RestartPolicy(first=0.01, longest=0.01, ends=2, within=0.001)
    async with kept([python("")], hurry=anyio.Event(), policy=policy, tell=told.append):
        await until(lambda: len(told) >= 3)


async def test_an_error_in_the_block_comes_out_bare_and_ends_the_process(python: Python) -> None:
    pids: list[int | None] = []

    async def block() -> None:
        async with kept([python(SLEEP)], hurry=anyio.Event()) as (child,):
            pids.append(child.pid)
            raise LookupError

    with pytest.raises(LookupError):
        await block()
    assert pids[0] is not None
    assert not alive(pids[0])


async def test_cancellation_ends_the_process_in_good_order(python: Python) -> None:
    code = (
        # the signal may come while a print is at work, which no other may interrupt
        "import os, signal, sys, time\n"
        "def end(*_):\n    os.write(1, b'in good order\\n'); sys.exit()\n"
        "signal.signal(signal.SIGTERM, end); os.write(1, b'up\\n'); time.sleep(600)"
    )
    with anyio.CancelScope() as scope:
        async with kept([python(code)], hurry=anyio.Event()) as (child,):
            await until(is_up(child))
            scope.cancel()
            await anyio.sleep(600)
    assert child.last_lines() == ("up", "in good order")


async def test_a_stubborn_process_is_killed_after_its_grace(python: Python) -> None:
    async with kept([python(STUBBORN, grace=0.1)], hurry=anyio.Event()) as (child,):
        pid = await until(lambda: child.pid)
        await until(is_up(child))
    assert not alive(pid)


async def test_a_hurry_does_not_wait_for_the_grace(python: Python) -> None:
    hurry = anyio.Event()
    commands = [python(STUBBORN, name=name, grace=600) for name in ("a", "b")]
    with anyio.fail_after(90):
        async with (
            anyio.create_task_group() as hastening,
            kept(commands, hurry=hurry) as children,
        ):
            for child in children:
                await until(is_up(child))
            hastening.start_soon(_set_soon, hurry)
    assert [child.pid for child in children] == [None, None]


async def test_before_it_is_killed_a_process_may_give_back_its_work(python: Python) -> None:
    code = (
        "import signal, sys, time\n"
        "def give_back(*_):\n    print('given back', flush=True); sys.exit()\n"
        "signal.signal(signal.SIGQUIT, give_back)\n"
        f"{STUBBORN}"
    )
    command = replace(python(code, grace=0.05), insist=signal.SIGQUIT)
    async with kept([command], hurry=anyio.Event()) as (child,):
        await until(is_up(child))
    assert child.last_lines() == ("up", "given back")


async def _set_soon(event: anyio.Event) -> None:
    await anyio.sleep(0.05)
    event.set()


async def test_several_processes_stop_side_by_side(python: Python, tmp_path: Path) -> None:
    names = ("a", "b", "c")
    # each ends when all were asked to: one after another, the first would never end
    code = (
        "import pathlib, signal, sys, time\n"
        f"asked = [pathlib.Path({str(tmp_path)!r}, name) for name in {names}]\n"
        "def end(*_):\n"
        "    asked[{}].touch()\n"
        "    while not all(path.exists() for path in asked): time.sleep(0.01)\n"
        "    sys.exit()\n"
        "signal.signal(signal.SIGTERM, end); print('up', flush=True); time.sleep(600)"
    )
    commands = [python(code.format(i), name=name, grace=600) for i, name in enumerate(names)]
    with anyio.fail_after(90):
        async with kept(commands, hurry=anyio.Event()) as children:
            for child in children:
                await until(is_up(child))


async def test_what_a_process_started_ends_with_it(python: Python) -> None:
    code = (
        "import subprocess, sys, time\n"
        "print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']).pid,"
        " flush=True); time.sleep(600)"
    )
    async with kept([python(code)], hurry=anyio.Event()) as (child,):
        (line,) = await until(child.last_lines)
        assert alive(int(line))
    await until(lambda: not alive(int(line)))


async def test_logs_are_private_and_are_put_aside_when_large(python: Python) -> None:
    command = replace(python("print('new')"), log_limit=10)
    command.log.parent.mkdir()
    command.log.write_text("old " * 10, encoding="utf-8")
    child = Child(command)
    child.start()
    with anyio.fail_after(90):
        await child.ended()
    assert child.reap() == 0
    assert child.last_lines() == ("new",)
    assert stat.S_IMODE(command.log.stat().st_mode) == 0o600
    assert command.log.with_name("child.log.1").read_text(encoding="utf-8").startswith("old")


async def test_an_end_is_seen_where_the_system_does_not_report_it(python: Python) -> None:
    child = Child(python("raise SystemExit(4)"))
    child.start()
    assert child._process is not None
    with anyio.fail_after(90):
        await child._polled(child._process)
        await child.ended()
    assert child.reap() == 4


async def test_the_program_gets_the_usual_signal_actions(python: Python) -> None:
    # Python itself ignores SIGPIPE
    command = replace(python(""), argv=("grep", "SigIgn", "/proc/self/status"))
    child = Child(command)
    child.start()
    await child.ended()
    child.reap()
    (line,) = child.last_lines()
    mask = int(line.split()[1], 16)
    assert not mask & (1 << (signal.SIGPIPE - 1))
