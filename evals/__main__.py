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
    """A module of ``evals``, and whether it needs the data sets or an index."""

    name: str
    data: bool = True
    index: bool = False
    #: option that draws, and its value; none: it draws nothing
    drawn: tuple[str, ...] = ()


EXPERIMENTS = (
    Experiment(name="refusals", data=False),
    Experiment(name="simulation", data=False),
    Experiment(name="fanout", data=False),
    Experiment(name="throughput", data=False),
    Experiment(name="lanes", data=False),
    Experiment(name="fairness", data=False),
    Experiment(name="ledger", data=False),
    Experiment(name="console", data=False),
    Experiment(name="overshoot", data=False),
    Experiment(name="estimates", data=False),
    Experiment(name="census", data=False),
    Experiment(name="fuzz_corpus", data=False),
    Experiment(name="pdf", data=False),
    Experiment(name="reader"),
    Experiment(name="sentences"),
    Experiment(name="conflict_structure"),
    Experiment(name="conflicts"),
    Experiment(name="bounds"),
    Experiment(name="replies"),
    Experiment(name="summarization"),
    Experiment(name="support"),
    Experiment(name="tables"),
    Experiment(name="attacks"),
    Experiment(name="preflight"),
    Experiment(name="doubling", drawn=("--plot", "docs/figures/doubling.png")),
    Experiment(name="compressors"),
    Experiment(name="qtable"),
    Experiment(name="router"),
    Experiment(name="policy"),
    Experiment(name="papers", drawn=("--figures", "docs/figures")),
    Experiment(name="pruner"),
    Experiment(name="pruner_latency"),
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
