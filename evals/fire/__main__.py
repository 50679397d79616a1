"""Runs the product under fire, and checks what its clients saw.

As in::

    python -m evals.fire --hours 2 --seed 7 --out fire-7
    python -m evals.fire --resume fire-7 --hours 1
    python -m evals.fire --check fire-7

Exit status 1: something was found, or not every call had ended.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import tempfile
from pathlib import Path
from typing import Any

from evals.fire.checker import check, load
from evals.fire.piece import Plan, run
from evals.fire.report import report
from evals.fire.schedule import WEIGHTS


def main() -> None:
    """Read the arguments, run a piece, and print the report of all pieces."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hours", type=float, default=0.05, help="of work in this piece")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--every", type=float, default=4.0, help="mean seconds between blows; 0: none"
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--before",
        type=Path,
        metavar="CHECKOUT",
        help="an earlier version: code of the last stack, or of the first worker of a single one",
    )
    parser.add_argument(
        "--steady",
        action="store_true",
        help="keep jobs and replaced versions for 15 minutes, and upload revisions of the same documents",
    )
    parser.add_argument("--stacks", type=int, default=1, help="stacks on the same Redis and index")
    some = parser.add_mutually_exclusive_group()
    kinds: dict[str, Any] = {"nargs": "+", "choices": WEIGHTS, "default": [], "metavar": "BLOW"}
    some.add_argument("--only", help=f"kinds of blows: {', '.join(WEIGHTS)}", **kinds)
    some.add_argument("--without", help="all other kinds", **kinds)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--out", type=Path, help="new folder of the run")
    where.add_argument("--resume", type=Path, metavar="DIR", help="run to continue by a piece")
    where.add_argument("--check", type=Path, metavar="DIR", help="run to check again")
    given = parser.parse_args()
    folder = given.check or given.resume or given.out or Path(tempfile.mkdtemp(prefix="fire-"))
    folder.mkdir(parents=True, exist_ok=True)
    if not given.check:
        plan = Plan(
            folder=folder.absolute(),
            seed=given.seed,
            number=len(list(folder.glob("records-*.jsonl"))) + 1,
            seconds=given.hours * 3600,
            every=given.every or None,
            workers=given.workers,
            before=given.before and given.before.absolute(),
            stacks=given.stacks,
            steady=given.steady,
            kinds=frozenset(given.only or WEIGHTS.keys() - set(given.without)),
        )
        # ends what it started, as after Ctrl-C
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        asyncio.run(run(plan))
    seen = load(folder)
    verdict = check(seen)
    text = report(seen, verdict)
    (folder / "report.md").write_text(text + "\n", encoding="utf-8")
    print(f"{text}\n\n{folder}")
    if verdict.findings or not any(True for _ in seen.of("drained")):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
