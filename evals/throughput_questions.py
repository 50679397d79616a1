"""Measures questions a second beside LangChain, and beside an earlier revision, on one stub provider.

``python -m evals.throughput --questions 100 --data DIR [--peer-python PYTHON] [--before CHECKOUT]``

The sides take turns, each in processes of its own: this checkout by its router, and in the peer's shape (8 extracts and a
reduce), through Redis and worker processes; the earlier checkout alike; and LangChain's map-reduce over FAISS. Processor
time is of all processes of a side but the stub, whose tokens are characters / 4. Loading of models and a warm-up of 16
questions are left out.
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from evals.throughput_side import PASSAGES, SHAPES, WARM
from orchestrator.training.artefacts.gold import pubmedqa
from posology.hub import DEFAULT, PACKAGED
from posology.testing.provider.faults import Faults
from posology.testing.provider.load import LoadStub

PEER = "LangChain map-reduce"


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """What is compared, and on how much."""

    data: Path
    #: Python of the peer's environment; ``None``: it is left out
    peer: Path | None
    #: an earlier checkout that has :mod:`evals.throughput_side`; ``None``: it is left out
    before: Path | None
    questions: int
    #: abstracts in the index
    records: int
    turns: int
    workers: int
    #: seconds of a call
    latency: float


def compare(wanted: Comparison) -> None:
    """Print the table."""
    here = Path(__file__).parents[1]
    checkouts = {"now": here} | ({} if wanted.before is None else {"before": wanted.before})
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        abstracts, questions = folder / "abstracts.jsonl", folder / "questions.json"
        with gzip.open(wanted.data / "pool.jsonl.gz", "rt", encoding="utf-8") as lines:
            abstracts.write_text("".join(itertools.islice(lines, wanted.records)), encoding="utf-8")
        asked = [one.text for one in pubmedqa(wanted.data)][: wanted.questions]
        questions.write_text(json.dumps(asked), encoding="utf-8")
        index = str(folder / "index")
        program = "from orchestrator.cli.app import main; main()"
        subprocess.run(
            [sys.executable, "-c", program, "ingest", str(abstracts), "--index", index],
            env=_environment(here),
            check=True,
            stderr=subprocess.DEVNULL,
        )
        found: dict[str, list[dict[str, float]]] = {}
        for turn in range(wanted.turns):
            for shape in SHAPES:
                for name, checkout in checkouts.items():
                    words = (index, questions, shape, wanted.latency, wanted.workers)
                    one = _own(checkout, [str(word) for word in words])
                    found.setdefault(f"{name}, {shape}", []).append(one)
            if wanted.peer is not None:
                files = (folder / "faiss", abstracts, PACKAGED[DEFAULT](), questions)
                one = _peer(wanted.peer, [str(file) for file in files], wanted.latency)
                found.setdefault(PEER, []).append(one)
            print(
                f"turn {turn + 1}: {json.dumps({n: r[-1] for n, r in found.items()})}",
                file=sys.stderr,
            )
    _show(found, wanted.questions)


def _environment(checkout: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("POSOLOGY_")}
    return kept | {"PYTHONPATH": str(checkout)}


def _own(checkout: Path, words: Sequence[str]) -> dict[str, float]:
    command = [sys.executable, "-m", "evals.throughput_side", *words]
    return _json(command, checkout, _environment(checkout))


def _peer(python: Path, words: Sequence[str], latency: float) -> dict[str, float]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    with LoadStub(Faults(latency=(latency, latency))) as stub:
        script = str(Path(__file__).with_name("throughput_peer.py"))
        command = [str(python), script, *words, stub.openai_url]
        figures = _json(command, None, environment | {"HF_HUB_OFFLINE": "1"})
        usage = [
            entry["usage"] for entry in stub.ledger(start=WARM * (PASSAGES + 1)) if entry["usage"]
        ]
    more = {kind: sum(one[kind] for one in usage) for kind in ("input", "output")}
    return figures | more | {"calls": len(usage)}


def _json(
    command: Sequence[str], folder: Path | None, environment: Mapping[str, str]
) -> dict[str, float]:
    done = subprocess.run(
        command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True
    )
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _show(found: Mapping[str, Sequence[Mapping[str, float]]], questions: int) -> None:
    print(f"{'':24}{'q/s':>7}{'CPU ms/q':>10}{'calls/q':>9}{'CPU ms/call':>13}{'input/q':>9}")
    for name, runs in found.items():
        seconds, spent, calls, read = (
            median(run[kind] for run in runs) for kind in ("seconds", "processor", "calls", "input")
        )
        print(
            f"{name:24}{questions / seconds:7.1f}{spent / questions * 1e3:10.1f}{calls / questions:9.2f}"
            f"{spent / calls * 1e3:13.1f}{read / questions:9.0f}"
        )
