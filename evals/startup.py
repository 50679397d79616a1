"""Measures how long commands take from start to prompt: ``python -m evals.startup``.

Each ``--side NAME=PROGRAM`` is an installed ``posology``; the sides take turns, so that a busy machine slows all of
them. Without one, this environment's is measured. A stack of each side runs while its commands are timed. What needs
Redis finds it; ``search`` and ``ask`` are timed both apart from it and beside it.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from posology.corpus.sample import notes_file

QUESTION = "Does low-dose aspirin lower the risk of pre-eclampsia?"
#: name → arguments; what these need is prepared in the folder that they run in
COMMANDS: Mapping[str, Sequence[str]] = {
    "--help": ["--help"],
    "--version": ["--version"],
    "completion": [],
    "jobs list": ["jobs", "list"],
    "tenants list": ["tenants", "list"],
    "spend": ["spend"],
    "search": ["search", QUESTION, "--index", "../index"],
    "ask": ["ask", QUESTION, "--index", "../index", "--strategy", "direct"],
    "search, stack up": ["search", QUESTION, "--index", "index"],
    "ask, stack up": ["ask", QUESTION, "--index", "index", "--strategy", "direct"],
}
#: these run in a folder that has no stack
APART = ("search", "ask")
#: seconds to wait for a stack
_READY = 300.0
_IMPORT = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \|(\s*)(\S+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One installation."""

    name: str
    program: Path
    folder: Path
    #: seconds of wall and of CPU, by command
    times: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def place(self, command: str) -> Path:
        """Return the folder that a command runs in."""
        return self.folder / "apart" if command in APART else self.folder

    def environment(self, command: str) -> dict[str, str]:
        """Return the environment of a command."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("POSOLOGY_")}
        kept.pop("PYTHONPATH", None)
        if command == "completion":
            kept |= {
                "_POSOLOGY_COMPLETE": "complete_bash",
                "COMP_WORDS": "posology jo",
                "COMP_CWORD": "1",
            }
        return kept

    def time(self, command: str) -> tuple[float, float]:
        """Return seconds of wall and of CPU of one run.

        Raises:
            SystemExit: the command failed.
        """
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(
            [self.program, *COMMANDS[command]],
            cwd=self.place(command),
            env=self.environment(command),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        wall = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode and command != "completion":
            raise SystemExit(f"{self.name}: {command}: {done.stderr}")
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return wall, cpu

    def up(self) -> tuple[subprocess.Popen[str], float]:
        """Start a stack; return its process and the seconds until it was ready.

        Raises:
            SystemExit: it does not become ready.
        """
        started = time.perf_counter()
        process = subprocess.Popen(
            [self.program, "up", "--index", "index", "--port", "0"],
            cwd=self.folder,
            env=self.environment("up"),
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("ready"):
                return process, time.perf_counter() - started
            if time.perf_counter() - started > _READY:
                break
        process.kill()
        raise SystemExit(f"{self.name}: the stack does not start")

    def imports(self, command: str) -> list[tuple[int, str]]:
        """Return the ten dearest imports of a command, outermost only: milliseconds and module."""
        python = self.program.with_name("python")
        code = f"import sys; sys.argv = ['posology', *{list(COMMANDS[command])!r}]; from orchestrator.cli.app import main; main()"
        done = subprocess.run(
            [python, "-X", "importtime", "-c", code],
            cwd=self.place(command),
            env=self.environment(command),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        found = [
            (int(match[2]) // 1000, match[4])
            for match in map(_IMPORT.match, done.stderr.splitlines())
            if match is not None and len(match[3]) == 1
        ]
        return sorted(found, reverse=True)[:10]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", action="append", metavar="NAME=PROGRAM", default=[])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--stacks", type=int, default=3, help="starts of a stack")
    parser.add_argument("--imports", action="append", choices=COMMANDS, default=[])
    args = parser.parse_args()
    given = args.side or [f"now={Path(sys.executable).with_name('posology')}"]
    with tempfile.TemporaryDirectory() as root, notes_file() as notes:
        sides = []
        for one in given:
            name, _, program = one.partition("=")
            folder = Path(root) / name
            (folder / "apart").mkdir(parents=True)
            sides.append(Side(name=name, program=Path(program).absolute(), folder=folder))
            subprocess.run(
                [program, "ingest", str(notes), "--index", "index"],
                cwd=folder,
                env=sides[-1].environment("ingest"),
                capture_output=True,
                check=True,
            )
        stacks = []
        for _ in range(args.stacks):
            for side in sides:
                process, seconds = side.up()
                side.times.setdefault("up, until ready", []).append((seconds, 0.0))
                stacks.append(process)
            if len(stacks) < args.stacks * len(sides):
                _stop(stacks[-len(sides) :])
        try:
            for _ in range(args.rounds):
                for command in COMMANDS:
                    for side in sides:
                        side.times.setdefault(command, []).append(side.time(command))
        finally:
            _stop(stacks[-len(sides) :])
        _print(sides)
        for command in args.imports or ["ask"]:
            for side in sides:
                print(f"\nimports of {command}, {side.name}, ms")
                for milliseconds, module in side.imports(command):
                    print(f"{milliseconds:8} {module}")


def _stop(stacks: Sequence[subprocess.Popen[str]]) -> None:
    for process in stacks:
        process.terminate()
    for process in stacks:
        process.communicate(timeout=_READY)


def _print(sides: Sequence[Side]) -> None:
    print(f"{'command':18}" + "".join(f"{side.name:>12} s {'CPU s':>8}" for side in sides))
    for command in sides[0].times:
        cells = ""
        for side in sides:
            walls, cpus = zip(*side.times[command], strict=True)
            cells += f"{median(walls):14.2f} {median(cpus):8.2f}"
        print(f"{command:18}{cells}")


if __name__ == "__main__":
    main()
