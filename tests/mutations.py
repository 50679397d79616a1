"""Runs ``tests/mutations.md``: puts each fault in, and fails where the test named there does not catch it.

    python tests/mutations.py [NUMBER …]

The faults go into a copy of the repository in a temporary folder. A text that is not in its file exactly once is an
error, so that the list cannot fall behind the code.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests" / "mutations.md"
OPTIONS = ("-q", "-x", "-p", "no:cacheprovider", "-m", "not slow and not exhaustive")
#: pytest's exit status of tests that ran and failed
_FAILED = 1
_ENTRY = re.compile(
    r"^(?P<number>\d+)\. (?P<what>.+)\n\s+`(?P<file>[^`]+)`, caught by `(?P<test>[^`]+)`\n\n"
    r"\s+```diff\n\s+-(?P<before>.*)\n\s+\+(?P<after>.*)\n\s+```$",
    re.MULTILINE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutation:
    """One fault of one line."""

    number: int
    what: str
    #: relative to the repository
    file: str
    #: a test's id
    test: str
    #: part of a line, found once in the file
    before: str
    after: str


def read(text: str) -> Iterator[Mutation]:
    """Yield the list's faults."""
    for found in _ENTRY.finditer(text):
        yield Mutation(
            number=int(found["number"]),
            what=found["what"],
            file=found["file"],
            test=found["test"],
            before=found["before"].strip(),
            after=found["after"].strip(),
        )


def caught(mutation: Mutation, copy: Path) -> bool:
    """Put a fault into a copy, run its test, and take the fault out again.

    Raises:
        SystemExit: the text is not in the file exactly once, or the test did not run.
    """
    path = copy / mutation.file
    whole = path.read_text(encoding="utf-8")
    if (times := whole.count(mutation.before)) != 1:
        raise SystemExit(
            f"{mutation.number}: {mutation.before!r} is in {mutation.file} {times} times"
        )
    path.write_text(whole.replace(mutation.before, mutation.after), encoding="utf-8")
    try:
        status = subprocess.run(
            [sys.executable, "-m", "pytest", *OPTIONS, mutation.test],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    finally:
        path.write_text(whole, encoding="utf-8")
    if status.returncode not in (0, _FAILED):
        raise SystemExit(f"{mutation.number}: {mutation.test} did not run:\n{status.stdout}")
    sys.stdout.writelines(
        f"{line}\n" for line in status.stdout.splitlines() if line.startswith("FAILED")
    )
    return status.returncode == _FAILED


def main() -> None:
    """Run the faults that are asked for, or all."""
    wanted = {int(number) for number in sys.argv[1:]}
    found = [m for m in read(LIST.read_text(encoding="utf-8")) if not wanted or m.number in wanted]
    files = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.split("\0")
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in filter(None, files):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
        for mutation in found:
            right = caught(mutation, copy)
            word = "caught" if right else "MISSED"
            sys.stdout.write(f"{mutation.number:>2} {word}: {mutation.what}\n")
            sys.stdout.flush()
            missed += [] if right else [mutation.number]
    if missed:
        raise SystemExit(f"missed: {missed}")


if __name__ == "__main__":
    main()
