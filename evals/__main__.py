"""``python -m evals``: every experiment that can run here, one after the other.

Those that need data or an index that are not at hand are named with what they need.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """A module under ``evals`` that runs as a script."""

    name: str
    data: bool = True
    index: bool = False


EXPERIMENTS = (
    Experiment(name="refusals", data=False),
    Experiment(name="provider_load", data=False),
    Experiment(name="chord", data=False),
    Experiment(name="fanout", data=False),
    Experiment(name="throughput", data=False),
    Experiment(name="chaos", data=False),
    Experiment(name="fairness", data=False),
    Experiment(name="ledger", data=False),
    Experiment(name="overshoot", data=False),
    Experiment(name="estimates", data=False),
    Experiment(name="versions", data=False),
    Experiment(name="rebuild", data=False),
    Experiment(name="pubmed_reading", data=False),
    Experiment(name="fuzz_corpus", data=False),
    Experiment(name="sentences"),
    Experiment(name="embedder"),
    Experiment(name="encoding"),
    Experiment(name="offline_reader"),
    Experiment(name="partitions"),
    Experiment(name="conflicts"),
    Experiment(name="wording"),
    Experiment(name="bounds"),
    Experiment(name="replies"),
    Experiment(name="self_information"),
    Experiment(name="summarization"),
    Experiment(name="token_codes"),
    Experiment(name="faithful"),
    Experiment(name="preflight"),
    Experiment(name="doubling"),
    Experiment(name="leancontext"),
    Experiment(name="compressors"),
    Experiment(name="qtable"),
    Experiment(name="router"),
    Experiment(name="replay"),
    Experiment(name="tcra"),
    Experiment(name="tcra_retrieval"),
    Experiment(name="expansion"),
    Experiment(name="pruner"),
    Experiment(name="pruner_needles"),
    Experiment(name="pruner_lengths"),
    Experiment(name="pruner_latency"),
    Experiment(name="pruner_rerank"),
    Experiment(name="bm25_peers"),
    Experiment(name="dense_peers"),
    Experiment(name="scale"),
    Experiment(name="ingest_workers"),
    Experiment(name="object_storage"),
    Experiment(name="retrieval", index=True),
    Experiment(name="latency", index=True),
)


def main() -> None:
    """Run what can be run; the exit status is 1 when any of it failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="the data sets")
    parser.add_argument("--index", type=Path, help="an index of pool.jsonl.gz")
    parser.add_argument("only", nargs="*", help="names of experiments; default: all")
    given = parser.parse_args()
    failed = []
    for experiment in EXPERIMENTS:
        if given.only and experiment.name not in given.only:
            continue
        print(f"\n== {experiment.name}", flush=True)
        arguments: list[str] = []
        if experiment.data:
            if not given.data.is_dir():
                print(f"skipped: no data at {given.data}; say --data DIR")
                continue
            arguments += ["--data", str(given.data)]
        if experiment.index:
            if given.index is None:
                print("skipped: needs an index of pool.jsonl.gz; say --index DIR")
                continue
            arguments += ["--index", str(given.index)]
        command = [sys.executable, "-m", f"evals.{experiment.name}", *arguments]
        if subprocess.run(command, check=False).returncode:
            failed.append(experiment.name)
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
