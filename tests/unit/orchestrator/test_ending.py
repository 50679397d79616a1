"""How commands end: all is written, all is tidied, and the prompt is back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.app import SECTIONS, app

GROUPS = [
    entry.name for section in SECTIONS for entry in section.entries if entry.target.endswith(":app")
]
#: bytes of output: more than a pipe holds
MANY = 1_000_000
#: output is buffered, as it is for most people
BUFFERED = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
AT_ONCE = """
import sys
from orchestrator.cli.ending import ended
def command(ending):
{body}
ended(command)
"""


def program(body: str) -> list[str]:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return [sys.executable, "-c", AT_ONCE.format(body=lines)]


def run(body: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(program(body), capture_output=True, text=True, check=False, env=BUFFERED)


@pytest.mark.parametrize(
    ("end", "status", "said"),
    [
        ("pass", 0, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit(9)", 9, ""),
        ("sys.exit('no such thing')", 1, "posology: no such thing\n"),
    ],
)
def test_the_status_is_that_of_the_command(end: str, status: int, said: str) -> None:
    done = run(f"sys.stdout.write('answer')\n{end}")
    assert (done.returncode, done.stdout, done.stderr) == (status, "answer", said)


def test_an_error_has_its_traceback() -> None:
    done = run("raise ValueError('defect')")
    assert done.returncode == 1
    assert "ValueError: defect" in done.stderr


def test_a_slow_reader_gets_everything() -> None:
    with subprocess.Popen(
        program(f"sys.stdout.write('x' * {MANY} + 'end')"),
        stdout=subprocess.PIPE,
        text=True,
        env=BUFFERED,
    ) as process:
        assert process.stdout is not None
        # the output does not fit into the pipe
        assert process.stdout.read(1) == "x"
        assert process.poll() is None
        assert process.stdout.read() == "x" * (MANY - 1) + "end"
        assert process.wait() == 0


def test_a_reader_that_has_left_is_no_error() -> None:
    with subprocess.Popen(
        program("sys.stdin.read()\nsys.stdout.write('answer')\nsys.exit(3)"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=BUFFERED,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, said = process.communicate("")
    assert (process.returncode, said) == (3, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize(("given", "status"), [(0, 74), (3, 3)])
def test_a_full_disk_is_an_error(given: int, status: int) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            program(f"sys.stdout.write('answer')\nsys.exit({given})"),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=BUFFERED,
        )
    assert done.returncode == status
    assert done.stderr.startswith("posology: cannot write to standard output: ")


def test_without_standard_output_it_ends_as_well() -> None:
    done = run("sys.stdout = None\nsys.stderr = None\nsys.exit(4)")
    assert done.returncode == 4


def test_what_is_registered_for_the_end_is_done(tmp_path: Path) -> None:
    done = run(
        "import atexit, tempfile\n"
        "global folder\n"
        f"folder = tempfile.TemporaryDirectory(dir={str(tmp_path)!r})\n"
        "atexit.register(lambda: sys.stdout.write('tidied'))"
    )
    assert (done.returncode, done.stdout) == (0, "tidied")
    assert list(tmp_path.iterdir()) == []


def test_a_thread_does_not_hold_it_up() -> None:
    # it waits for an event that nobody sets
    done = run("import threading\nthreading.Thread(target=threading.Event().wait).start()")
    assert done.returncode == 0


@pytest.mark.parametrize("name", ["", *GROUPS])
def test_a_group_alone_prints_its_help(name: str) -> None:
    arguments = [name] if name else []
    alone = CliRunner().invoke(app, arguments)
    asked = CliRunner().invoke(app, [*arguments, "--help"])
    assert (alone.exit_code, alone.stdout) == (0, asked.stdout)
    assert alone.stdout.startswith(f"Usage: posology {name}".rstrip())


@pytest.mark.parametrize("name", GROUPS)
def test_a_wrong_command_of_a_group_is_an_error(name: str) -> None:
    assert CliRunner().invoke(app, [name, "nonsense"]).exit_code == 2
