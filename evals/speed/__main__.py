"""Measures speed and memory, of this checkout and an earlier one by turns: ``python -m evals.speed --data DIR``.

Composes what measures already: :mod:`evals.peers` (beside other libraries, with ``--peer-python``), :mod:`evals.load.throughput`,
the reader of :mod:`evals.scale`, the commands themselves, and a stack at rest (:mod:`evals.speed.idle`). Each figure of a turn is
kept in ``--work``, so an interrupted run resumes, and ``--only`` measures some. ``--before CHECKOUT`` adds an earlier version; a
folder of ``--work`` is of one such pair, and one run at a time.

Processor time is in seconds of all processes of a side. On a machine that others use, compare it rather than wall time.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from posology.durable import replace_file
from posology.hub import published
from training.gold import WORK

#: figures of one turn, by name
Turn = dict[str, Any]
QUESTION = "Does aspirin lower the risk of stroke in adults with hypertension?"
HERE = Path(__file__).resolve().parents[2]
_MAIN = "from orchestrator.cli.app import main; main()"
#: passages of the index that retrieval is measured in
_ROWS = 50_000
#: the peer beside which ingest is measured
_LANGCHAIN = "LangChain"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Bench:
    """What the figures need."""

    given: argparse.Namespace
    #: resources that all turns share
    work: Path

    @property
    def abstracts(self) -> Path:
        """The first records of the pool."""
        file = self.work / f"abstracts-{self.given.records}.jsonl"
        if not file.exists():
            with gzip.open(self.given.data / "pool.jsonl.gz", "rt", encoding="utf-8") as lines:
                file.write_text("".join(itertools.islice(lines, self.given.records)), "utf-8")
        return file

    @property
    def index(self) -> Path:
        """An index of them."""
        index = self.work / f"index-{self.given.records}"
        if not index.exists():
            part = self.work / "index.part"
            shutil.rmtree(part, ignore_errors=True)
            self.spend(HERE, ["ingest", str(self.abstracts), "--index", str(part)])
            part.rename(index)
        return index

    def spend(self, checkout: Path, arguments: Sequence[str], *, fails: bool = False) -> Turn:
        """Run a command of a checkout, and return its wall and processor time in seconds."""
        with _spending() as spent:
            self.run(checkout, ["-c", _MAIN, *arguments], fails=fails)
        return spent

    def spend_until(self, checkout: Path, arguments: Sequence[str], said: str) -> Turn:
        """Run a command of a checkout until a line of its log holds the text, and kill it there."""
        with (
            _spending() as spent,
            subprocess.Popen(
                [sys.executable, "-P", "-c", _MAIN, *arguments],
                cwd=checkout, env=self.environment(checkout), text=True,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            ) as process,
        ):  # fmt: skip
            if not any(said in line for line in process.stderr or ()):
                raise SystemExit(f"{' '.join(arguments)} of {checkout} did not say: {said}")
            process.kill()
        return spent

    def environment(self, checkout: Path) -> dict[str, str]:
        """Return the variables under which a checkout's modules run, compiled outside it."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("POSOLOGY_")}
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        return {
            **kept,
            "PYTHONPATH": str(checkout),
            "PYTHONPYCACHEPREFIX": str(self.work / "compiled"),
            "POSOLOGY_CONFIG": "off",
            "POSOLOGY_HOME": str(self.work / "home"),
        }

    def run(self, checkout: Path, words: Sequence[str], *, fails: bool = False) -> str:
        """Run Python with a checkout's modules, and return what it prints."""
        done = subprocess.run(
            [sys.executable, "-P", *words],
            cwd=checkout, env=self.environment(checkout), check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL if fails else None,
        )  # fmt: skip
        if done.returncode and not fails:
            raise SystemExit(f"{' '.join(words)} of {checkout} ended with {done.returncode}")
        return done.stdout


@contextmanager
def _spending() -> Iterator[Turn]:
    """Yield what is filled in at the end: wall and processor time in seconds, of the processes that ended meanwhile."""
    spent: Turn = {}
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    yield spent
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent["s"] = time.perf_counter() - began
    spent["cpu_s"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _start(bench: _Bench, checkout: Path) -> Turn:
    asked = ["ask", QUESTION, "--index", str(bench.index), "--strategy", "direct"]
    found: Turn = {}
    # no stack runs: `jobs list` says so
    for name, arguments in (("help", ["--help"]), ("jobs_list", ["jobs", "list"]), ("ask", asked)):
        bench.spend(checkout, arguments, fails=name == "jobs_list")
        spent = bench.spend(checkout, arguments, fails=name == "jobs_list")
        found |= {f"{name}_{kind}": value for kind, value in spent.items()}
    return found


def _ingest(bench: _Bench, checkout: Path) -> Turn:
    with tempfile.TemporaryDirectory() as folder:
        words = ["ingest", str(bench.abstracts), "--index"]
        whole = bench.spend(checkout, [*words, f"{folder}/whole"])
        quick = bench.spend_until(
            checkout, [*words, f"{folder}/quick", "--quick"], "are searchable"
        )
    return {
        name: bench.given.records / spent["cpu_s"]
        for name, spent in (("per_cpu_s", whole), ("quick_per_cpu_s", quick))
    }


def _langchain(bench: _Bench) -> Turn:
    """Return how LangChain embeds the same records with the same encoder, into FAISS."""
    with tempfile.TemporaryDirectory() as folder:
        none = Path(folder) / "questions.json"
        none.write_text("[]", encoding="utf-8")
        program = Path(__file__).parents[1] / "peers" / "programs.py"
        words = (
            program,
            "langchain",
            f"{folder}/index",
            bench.abstracts,
            published(),
            none,
            0,
            "http://127.0.0.1:9/v1",
        )
        with _spending() as spent:
            subprocess.run(
                [bench.given.peer_python, *map(str, words)],
                check=True,
                stdout=subprocess.DEVNULL,
                env=bench.environment(HERE) | {"PYTHONPATH": "", "HF_HUB_OFFLINE": "1"},
            )
    return {"per_cpu_s": bench.given.records / spent["cpu_s"]}


def _calls(bench: _Bench, checkout: Path) -> Turn:
    said = bench.run(checkout, ["-m", "evals.load.throughput", "--jobs", str(bench.given.jobs)])
    rate = re.search(r"(\d+) calls/s", said)
    worker = re.search(r"worker .* ([\d.]+) ms of CPU a call", said)
    if rate is None or worker is None:
        raise SystemExit(f"evals.load.throughput printed no rate: {said}")
    return {"per_s": float(rate[1]), "cpu_ms": float(worker[1])}


def _retrieval(bench: _Bench, checkout: Path) -> Turn:
    work = bench.work / "scale"
    index = work / f"index-{_ROWS}"
    if not (work / f"result-{_ROWS}.json").exists():
        words = ["--data", str(bench.given.data), "--work", str(work), "--sizes", str(_ROWS)]
        bench.run(HERE, ["-m", "evals.scale", *words, "--keep"])
    said = bench.run(
        checkout, ["-m", "evals.scale.reader", "--index", str(index), "--work", str(work)]
    )
    return {"p50_ms": json.loads(said.splitlines()[-1])["retrieve_p50_ms"]}


def _idle(bench: _Bench, checkout: Path) -> Turn:
    said = bench.run(checkout, [str(Path(__file__).with_name("idle.py")), str(bench.index)])
    return dict(json.loads(said.splitlines()[-1]))


def _peers(bench: _Bench, checkout: Path) -> Turn:
    """Return the sides of :mod:`evals.peers`, those of an earlier version with it: peers run once a turn."""
    given = bench.given
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.json"
        words = [
            "-m",
            "evals.peers",
            "--data",
            str(given.data),
            "--turns",
            "1",
            "--json",
            str(file),
        ]
        words += ["--questions", str(given.questions), "--alone", "0", "--no-faults"]
        words += ["--peer-python", str(given.peer_python)] if given.peer_python else []
        words += ["--before", str(given.before)] if given.before else []
        bench.run(checkout, words)
        return dict(json.loads(file.read_text(encoding="utf-8")))


#: name → what measures it, once for each version
FIGURES: Mapping[str, Callable[[_Bench, Path], Turn]] = {
    "start": _start,
    "idle": _idle,
    "calls": _calls,
    "ingest": _ingest,
    "retrieval": _retrieval,
}

ROUTER, SHAPE = "Posology, router", "Posology, 8 extracts and a reduce"
CHAIN, PAPERQA, PLAIN = "LangChain, map-reduce", "paper-qa, aquery", "plain RAG of 40 lines"


#: name, aim, our side, the peer, and the figure that is compared
BESIDE: Sequence[tuple[str, str, str, str, Callable[[Turn], float]]] = (
    ("questions a second, router ÷ LangChain", "≥ 4", ROUTER, CHAIN, lambda t: 1 / t["seconds"]),
    ("… ÷ paper-qa", "≥ 3", ROUTER, PAPERQA, lambda t: 1 / t["seconds"]),
    ("questions a second, same shape ÷ LangChain", "≥ 2.5", SHAPE, CHAIN, lambda t: 1 / t["seconds"]),
    ("… ÷ paper-qa", "≥ 2", SHAPE, PAPERQA, lambda t: 1 / t["seconds"]),
    ("input tokens, same shape ÷ LangChain", "≤ 1.2", SHAPE, CHAIN, lambda t: t["input"]),
    ("dollars, same shape ÷ LangChain", "≤ 1.3", SHAPE, CHAIN, lambda t: t["dollars"]),
    ("CPU of a question, router ÷ plain RAG", "≤ 1.0", ROUTER, PLAIN, lambda t: t["processor"]),
    ("CPU of a call, same shape ÷ LangChain", "≤ 0.4", SHAPE, CHAIN, lambda t: t["processor"] / t["calls"]),
    ("memory of all processes ÷ LangChain", "≤ 0.65", SHAPE, CHAIN, lambda t: t["memory"]),
)  # fmt: skip
#: name, aim, and the part of ``ingest`` that is compared
INGEST: Sequence[tuple[str, str, str]] = (
    (
        "abstracts searchable a CPU second, `--quick` ÷ LangChain with FAISS",
        "≥ 2",
        "quick_per_cpu_s",
    ),
    ("abstracts ingested a CPU second ÷ LangChain with FAISS", "≥ 1.2", "per_cpu_s"),
)
#: name, aim, figure, its part, digits
ALONE: Sequence[tuple[str, str, str, str, int]] = (
    ("`--help`, s", "0.2", "start", "help_s", 2),
    ("… CPU s", "–", "start", "help_cpu_s", 2),
    ("`jobs list`, s", "0.4", "start", "jobs_list_s", 2),
    ("… CPU s", "–", "start", "jobs_list_cpu_s", 2),
    ("`ask` offline, until the prompt is back, s", "1.2", "start", "ask_s", 2),
    ("… CPU s", "–", "start", "ask_cpu_s", 2),
    ("calls a second of one worker", "300", "calls", "per_s", 0),
    ("CPU of a call in the worker, ms", "–", "calls", "cpu_ms", 2),
    ("abstracts ingested a CPU second", "–", "ingest", "per_cpu_s", 1),
    ("… searchable with `--quick`", "–", "ingest", "quick_per_cpu_s", 1),
    ("retrieval of 16 from 50,000, p50, ms", "8", "retrieval", "p50_ms", 1),
    ("peak memory of a worker, MiB", "180", "idle", "worker_mib", 0),
    ("peak memory of the API, MiB", "200", "idle", "api_mib", 0),
    ("Redis commands a second, idle", "flat", "idle", "redis_commands", 1),
)


def _figures(bench: _Bench, sides: Mapping[str, Path]) -> list[tuple[str, str, Callable[[], Turn]]]:
    """Return what a turn measures: name, side, and how; peers run once a turn."""
    found = [
        (name, side, partial(figure, bench, checkout))
        for name, figure in FIGURES.items()
        for side, checkout in sides.items()
    ]
    if bench.given.peer_python:
        found.append(("ingest", _LANGCHAIN, partial(_langchain, bench)))
    return [*found, ("peers", "now", partial(_peers, bench, HERE))]


def _measure(bench: _Bench, sides: Mapping[str, Path], kept: dict[str, Any], file: Path) -> None:
    given, figures = bench.given, _figures(bench, sides)
    for turn in range(given.turns):
        for name, side, figure in figures:
            known = kept.setdefault(name, {}).setdefault(side, [])
            if len(known) <= turn and (not given.only or name in given.only):
                known.append(figure())
                print(f"turn {turn + 1}: {name}, {side}: {known[-1]}", file=sys.stderr)
                replace_file(file, json.dumps(kept, indent=1, sort_keys=True).encode())


def table(kept: Mapping[str, Any], sides: Sequence[str]) -> str:
    """Return the figures as Markdown, medians of turns; –: not measured."""
    rows = [["figure", "aim", *sides], ["---", "---", *("---:" for _ in sides)]]
    turns = kept.get("peers", {}).get("now", [])
    for name, aim, own, peer, figure in BESIDE:
        cells = []
        for side in sides:
            row = own if side == "now" else f"{own}, {side}"
            both = [t["clean"] for t in turns if row in t["clean"] and peer in t["clean"]]
            ratios = [figure(clean[row][0]) / figure(clean[peer][0]) for clean in both]
            cells.append(_median(ratios))
        rows.append([name, aim, *cells])
    ingested = kept.get("ingest", {})
    for name, aim, part in INGEST:
        pairs = [
            zip(ingested.get(side, []), ingested.get(_LANGCHAIN, []), strict=False)
            for side in sides
        ]
        cells = [_median([own[part] / chain["per_cpu_s"] for own, chain in some]) for some in pairs]
        rows.append([name, aim, *cells])
    for name, aim, group, part, digits in ALONE:
        known = [[turn[part] for turn in kept.get(group, {}).get(side, [])] for side in sides]
        rows.append([name, aim, *(_median(values, digits) for values in known)])
    skipped = {name: why for turn in turns for name, why in turn["skipped"].items()}
    notes = [f"\nSkipped: {name}: {why}" for name, why in skipped.items()]
    return "\n".join([*(f"| {' | '.join(row)} |" for row in rows), *notes])


def _median(values: Sequence[float], digits: int = 2) -> str:
    return f"{median(values):,.{digits}f}" if values else "–"


def main() -> None:
    """Measure what is missing, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, default=WORK / "speed", help="figures and indices")
    parser.add_argument("--before", type=Path, help="checkout of an earlier version")
    parser.add_argument("--peer-python", type=Path, help="as evals.peers takes it")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--questions", type=int, default=60, help="beside peers, a turn")
    parser.add_argument("--records", type=int, default=200, help="abstracts that are ingested")
    parser.add_argument("--jobs", type=int, default=20, help="of 49 calls each")
    parser.add_argument("--only", nargs="+", choices=[*FIGURES, "peers"], help="default: all")
    given = parser.parse_args()
    given.data = given.data.resolve()
    given.work.mkdir(parents=True, exist_ok=True)
    file = given.work / "figures.json"
    kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if given.peer_python:
        # a link to the interpreter is what makes an environment
        given.peer_python = given.peer_python.absolute()
    if given.before:
        given.before = given.before.resolve()
    before = {"before": given.before} if given.before else {}
    sides = {**before, "now": HERE}
    _measure(_Bench(given=given, work=given.work.resolve()), sides, kept, file)
    print(table(kept, list(sides)))


if __name__ == "__main__":
    main()
