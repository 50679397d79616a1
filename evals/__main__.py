"""``python -m evals [NAME …]``: run every experiment that can run here, one after the other.

Experiments whose data or index is missing are skipped, with a note of what they need.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """A program of ``evals``, and whether it needs the data sets or an index."""

    name: str
    data: bool = True
    index: bool = False
    #: option that draws, and its value; none: it draws nothing
    drawn: tuple[str, ...] = ()


EXPERIMENTS = (
    Experiment(name="refusals", data=False),
    Experiment(name="follow_ups", data=False),
    Experiment(name="simulation", data=False),
    Experiment(name="load.fanout", data=False),
    Experiment(name="load.throughput", data=False),
    Experiment(name="load.lanes", data=False),
    Experiment(name="load.fairness", data=False),
    Experiment(name="money.ledger", data=False),
    Experiment(name="load.console", data=False),
    Experiment(name="money.overshoot", data=False),
    Experiment(name="money.estimates", data=False),
    Experiment(name="corpus.fuzz", data=False),
    Experiment(name="growth", data=False),
    Experiment(name="corpus.pdf", data=False),
    Experiment(name="corpus.scans", data=False),
    Experiment(name="reader"),
    Experiment(name="corpus.sentences"),
    Experiment(name="conflicts.structure"),
    Experiment(name="money.bounds"),
    Experiment(name="compressors.summarization"),
    Experiment(name="support"),
    Experiment(name="tables"),
    Experiment(name="attacks"),
    Experiment(name="policy.preflight"),
    Experiment(name="policy.doubling", drawn=("--plot", "docs/figures/doubling.png")),
    Experiment(name="compressors"),
    Experiment(name="policy.router"),
    Experiment(name="policy"),
    Experiment(name="papers"),
    Experiment(name="compressors.pruner"),
    Experiment(name="compressors.pruner_latency"),
    Experiment(name="scale"),
    Experiment(name="retrieval", index=True),
)


def main() -> None:
    """Run the experiments; exit with 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=Path("../shared/data"), help="folder of the data sets"
    )
    parser.add_argument("--index", type=Path, help="index of pool.jsonl.gz")
    parser.add_argument("only", nargs="*", metavar="NAME", help="experiments to run; default: all")
    given = parser.parse_args()
    failed = []
    for experiment in EXPERIMENTS:
        if given.only and experiment.name not in given.only:
            continue
        print(f"\n== {experiment.name}", flush=True)
        arguments = [*experiment.drawn]
        if experiment.data:
            if not given.data.is_dir():
                print(
                    f"skipped: {given.data} is not a folder. Pass --data with the folder of the data sets."
                )
                continue
            arguments += ["--data", str(given.data)]
        if experiment.index:
            if given.index is None:
                print("skipped: needs an index of pool.jsonl.gz. Pass --index with its folder.")
                continue
            arguments += ["--index", str(given.index)]
        command = [sys.executable, "-m", f"evals.{experiment.name}", *arguments]
        if subprocess.run(command, check=False).returncode:
            failed.append(experiment.name)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
