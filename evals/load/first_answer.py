"""Measures the first answer without a corpus: ``python -m evals.load.first_answer --data DIR --latency 2``.

Each run is the command ``posology ask --live`` in a new process, with an empty home and an empty cache: it searches,
fetches 100 records page by page, reads and encodes them into a new index, retrieves, and answers by the offline reader.
The service is a stub whose every reply takes ``--latency`` seconds, and which refuses more than three requests a second. Its
records are abstracts of the pool.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from posology.testing.literature.articles import Article
from posology.testing.literature.stub import LiteratureStub

QUESTION = "Does aspirin reduce stroke in adults?"
RECORDS = 100
#: seconds within which a first answer is promised
PROMISE = 60.0


def _articles(data: Path) -> list[Article]:
    with gzip.open(data / "pool.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in islice(lines, RECORDS)]
    # the stub finds what has the words of the query
    return [
        Article(
            pmid=str(90_000_000 + number),
            title=f"Aspirin and stroke in adults, report {number}",
            abstract=row["text"],
        )
        for number, row in enumerate(rows)
    ]


def _ask(url: str) -> tuple[float, float]:
    """Return the seconds of one question, from the start of the process to its end, and its processor time."""
    with tempfile.TemporaryDirectory() as home:
        environment = {
            **os.environ,
            "POSOLOGY_CONFIG": "off",
            "POSOLOGY_HOME": f"{home}/home",
            "POSOLOGY_CACHE": f"{home}/cache",
            "POSOLOGY_EUTILS_URL": f"{url}/eutils",
        }
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-c", "from orchestrator.cli.app import main; main()", "ask", QUESTION, "--live", "--json"],
            capture_output=True, text=True, env=environment, check=False,
        )  # fmt: skip
        took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stderr)
    assert json.loads(done.stdout)["fetch"]["records"] == RECORDS
    worked = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took, worked


def main() -> None:
    """Print a row for each run; fail if one took longer than is promised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--latency", type=float, default=2.0, help="seconds of each reply")
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    articles = _articles(args.data)
    slowest = 0.0
    for run in range(args.runs):
        stub = LiteratureStub(articles, reached=lambda _path, _form: time.sleep(args.latency))
        with stub.serving() as url:
            took, worked = _ask(url)
        slowest = max(slowest, took)
        load = os.getloadavg()[0]
        print(
            f"run {run + 1}  {took:5.1f} s  processor {worked:.1f} s  requests {len(stub.seen)}  replies {args.latency:g} s each  "
            f"load {load:.1f} on {os.cpu_count()} cores"
        )
    if slowest > PROMISE:
        raise SystemExit(f"a first answer took {slowest:.1f} s, and {PROMISE:g} are promised")


if __name__ == "__main__":
    main()
