"""Runs the papers' experiments, and reports the papers' figures beside ours.

Usage: ``python -m evals.papers NAME … [--reader READER] [--questions N] [--out DIR]``; ``--list`` names the suites, and
without a name all are run with readers that need no key.

READER is a simulated profile, ``simulated`` (all profiles), ``offline``, or a model of a key or a server,
``provider:name``. A model with a price needs ``--max-cost``. Each row is written to DIR/NAME/rows.jsonl at once: an
interrupted run resumes by the same command, repeats nothing and pays for no call twice. The report is
DIR/NAME/report.md.
"""

from __future__ import annotations

import argparse
import sys
from decimal import Decimal
from functools import partial
from pathlib import Path

import anyio

from evals.papers.rows import open_folder
from evals.papers.run import Done, Payment, run
from evals.papers.suite import Given
from evals.papers.table import SUITES
from posology.errors import PosologyError
from training.gold import DATA, WORK


def parser() -> argparse.ArgumentParser:
    """Return the options."""
    found = argparse.ArgumentParser(
        prog="evals.papers", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    found.add_argument("names", nargs="*", metavar="NAME", help="suites; default: all")
    found.add_argument("--list", action="store_true", help="name the suites")
    found.add_argument(
        "--reader", action="append", metavar="READER", help="who answers; repeat for several"
    )
    found.add_argument("--questions", type=int, help="most questions; default: the suite's own")
    found.add_argument(
        "--arms", default="", metavar="TEXT", help="only arms whose names contain this"
    )
    found.add_argument("--out", type=Path, default=Path("build/papers"), help="folder of the runs")
    found.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    found.add_argument("--work", type=Path, default=WORK, help="where indices are kept")
    found.add_argument("--seed", type=int, default=0, help="of samples and simulated draws")
    found.add_argument(
        "--max-cost", type=Decimal, metavar="USD", help="dollars that the folder's calls may cost"
    )
    found.add_argument("--dry-run", action="store_true", help="print the price and make no calls")
    found.add_argument(
        "--at-once", type=int, default=1, metavar="N", help="questions in work at the same time"
    )
    return found


def main(argv: list[str] | None = None) -> int:
    """Run suites; the exit status is 1 if one failed or its rows are incomplete."""
    given = parser().parse_args(argv)
    if given.list:
        for suite in SUITES.values():
            print(f"{suite.name:<26}{suite.paper}, {suite.place}: {suite.title}")
        return 0
    if unknown := set(given.names) - set(SUITES):
        sys.exit(f"no suite {', '.join(sorted(unknown))}; --list names the suites")
    failed = False
    for name in given.names or SUITES:
        try:
            done = _run(name, given)
            print(done.text, flush=True)
            failed |= done.missing > 0
        except PosologyError as error:
            print(f"{name}: {error.message}", file=sys.stderr)
            failed = True
    return int(failed)


def _run(name: str, given: argparse.Namespace) -> Done:
    suite = SUITES[name]
    asked = Given(
        data=given.data,
        work=given.work,
        questions=given.questions or suite.questions,
        seed=given.seed,
        arms=given.arms,
    )
    payment = Payment(cap=given.max_cost, dry=given.dry_run, at_once=given.at_once)
    with open_folder(given.out / name) as folder:
        return anyio.run(partial(run, suite, asked, given.reader or (), folder, payment))


if __name__ == "__main__":
    raise SystemExit(main())
