"""Measures how the index grows from 10,000 to a million passages: ``python -m evals.scale --data DIR``.

Each size is built and measured in its own processes. Figures are kept under ``--work``, so an interrupted run resumes
with the missing size. Measured: build time (writing, files, columns, words, vectors, recall), disk, recall of the 16
nearest to real questions against an exact search, time of whole retrievals and of their parts, with and without
filters, and the memory of the builder and of a reader.

The passages are synthetic (:mod:`evals.scale.corpus`), with vectors and sentence vectors, without token codes and
phrases. ``--likeness`` shows that their vectors are no easier to find than the pool's.

It prints the figures and how each grows. ``--report`` also writes ``docs/figures/scale.json``,
``docs/figures/scale.png`` and the tables of the sizing page.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from evals.scale.build import FILTERS, build, read
from evals.scale.corpus import Corpus
from evals.scale.likeness import compare
from evals.scale.reader import FILTERED, TIMED, WARM
from evals.scale.report import FIGURES, measured, report, table
from posology.durable import replace_file
from training.gold import WORK

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)


def _one(arguments: argparse.Namespace, rows: int) -> None:
    work: Path = arguments.work
    corpus = Corpus(arguments.data, work)
    where = work / f"index-{rows}"
    asked = corpus.questions
    some = slice(None, None, max(1, len(asked.texts) // (WARM + TIMED + FILTERED)))
    _write(
        work / "asked.json",
        {
            "texts": asked.texts[some],
            "vectors": asked.vectors[some].tolist(),
            "filters": {name: asdict(filters) for name, filters in FILTERS.items()},
        },
    )
    figures = build(corpus, rows, where)
    figures |= read(where, work)
    _write(work / f"result-{rows}.json", figures)
    if not arguments.keep:
        shutil.rmtree(where)


def _write(path: Path, value: object) -> None:
    replace_file(path, json.dumps(value, indent=1, sort_keys=True).encode())


def main() -> None:
    """Build, measure and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, default=WORK / "scale")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="passages")
    parser.add_argument("--keep", action="store_true", help="leave the indices there")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument(
        "--likeness", action="store_true", help="compare the vectors with real ones"
    )
    parser.add_argument(
        "--report", action="store_true", help="measure nothing; write the page from what is known"
    )
    arguments = parser.parse_args()
    if arguments.one:
        _one(arguments, arguments.one)
        return
    if arguments.report:
        print(report(arguments.work, FIGURES))
        return
    if arguments.likeness:
        compared = compare(Corpus(arguments.data, arguments.work), arguments.work)
        _write(arguments.work / "likeness.json", compared)
        return
    for rows in arguments.sizes:
        if (arguments.work / f"result-{rows}.json").exists():
            continue
        print(f"{rows:,} passages", flush=True)
        command = [sys.executable, "-m", "evals.scale", "--one", str(rows)]
        command += ["--data", str(arguments.data), "--work", str(arguments.work)]
        command += ["--keep"] if arguments.keep else []
        subprocess.run(command, check=True)
    print(table(measured(arguments.work)))


if __name__ == "__main__":
    main()
