"""How the time of parsers and readers grows with a hostile text: in proportion, or as its square.

Usage: ``python -m evals.growth``

Runs the tests that count steps, and measures their work too: the time of four times as much, in times of once as much. In
proportion that is 4, as the square 16. The least of three, in seconds of this thread on a processor.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
#: as in ``tests/support/growth.py``, which experiments do not import
FILE = "GROWTH_FILE"


def main() -> None:
    """Print a row of Markdown for each test, the fastest growth first."""
    used = [
        path for path in sorted(TESTS.rglob("test_*.py")) if "growth(" in path.read_text("utf-8")
    ]
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.jsonl"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:xdist",
            "-k",
            "time or cost or longer",
        ]
        done = subprocess.run(
            [*command, *map(str, used)],
            env={**os.environ, FILE: str(rows)},
            check=False,
            stdout=sys.stderr,
        )
        found = [json.loads(line) for line in rows.read_text("utf-8").splitlines()]
    print("| test | time of four times as much |\n| --- | --- |")
    for row in sorted(found, key=lambda one: -one["times"]):
        print(f"| `{row['test']}` | {row['times']:.1f} |")
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
