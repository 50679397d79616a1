"""Measures what an ingest costs, beside LangChain with sentence-transformers and FAISS.

``python -m evals.ingest --data DIR [--peer-python PYTHON] [--records N] [--turns N]``

The same abstracts are indexed by ``posology ingest --quick``, by ``posology ingest`` and by the peer, in turns. Each run is
a process of its own; its processor time (user and system) counts from its start. A quick ingest is *searchable* when it
says so. Printed are medians, ratios to the peer, and the bytes of an abstract on disk.

The peer runs ``evals/ingest_peer.py`` in a Python that has langchain-community, langchain-huggingface,
sentence-transformers and faiss-cpu. Without ``--peer-python`` only this project is measured. ``--own`` and ``--peer`` add
variables to the environments, e.g. to keep libraries from some instructions of the processor.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from posology.hub import published

QUICK, WHOLE, PEER = "posology --quick", "posology", "LangChain + FAISS"
_TICK = os.sysconf("SC_CLK_TCK")
_SAYS = "searchable"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """One run."""

    wall: float
    #: seconds of processor time, of all its threads and processes
    processor: float
    #: processor time when the passages were searchable; ``None``: not before the end
    searchable: float | None
    #: wall time then
    searchable_wall: float | None
    #: on disk, afterwards
    size: int


def run(command: Sequence[str], environment: Mapping[str, str], made: Path) -> Cost:
    """Run a command to its end.

    Args:
        command: program and arguments.
        environment: all of its variables.
        made: the folder that it writes.

    Raises:
        SystemExit: it failed.
    """
    started = time.perf_counter()
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    lines, searchable, searchable_wall = [], None, None
    for line in process.stderr:
        lines.append(line)
        if searchable is None and _SAYS in line:
            searchable = _processor(process.pid)
            searchable_wall = time.perf_counter() - started
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} failed:\n{''.join(lines[-20:])}")
    return Cost(
        wall=wall,
        processor=used.ru_utime + used.ru_stime,
        searchable=searchable,
        searchable_wall=searchable_wall,
        size=sum(file.stat().st_size for file in made.rglob("*") if file.is_file()),
    )


def _processor(process: int) -> float:
    """Return the processor time of a running process, in seconds."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _take(data: Path, folder: Path, records: int) -> Path:
    path = folder / "abstracts.jsonl"
    with (
        gzip.open(data / "pool.jsonl.gz", "rt", encoding="utf-8") as lines,
        path.open("w", encoding="utf-8") as out,
    ):
        out.writelines(itertools.islice(lines, records))
    return path


def _environment(added: Sequence[str], **own: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("POSOLOGY_INDEX")}
    return kept | own | dict(one.partition("=")[::2] for one in added)


def _shown(costs: Mapping[str, Sequence[Cost]], records: int) -> None:
    rows: dict[str, tuple[float, float, float | None]] = {}
    for name, found in costs.items():
        early = [(c.searchable, c.searchable_wall) for c in found if c.searchable is not None]
        if early:
            rows[f"{name}, searchable"] = (
                median(cpu for cpu, _ in early),
                median(wall or 0.0 for _, wall in early),
                None,
            )
        size = median(c.size for c in found) / records
        rows[f"{name}, complete"] = (
            median(c.processor for c in found),
            median(c.wall for c in found),
            size,
        )
    peer = rows.get(f"{PEER}, complete")
    print(f"{'':32}{'CPU s':>8}{'wall s':>8}{'CPU ratio':>11}{'wall ratio':>11}{'kB':>8}")
    for name, (cpu, wall, kilobytes) in rows.items():
        ratios = f"{cpu / peer[0]:11.2f}{wall / peer[1]:11.2f}" if peer else f"{'':22}"
        size_shown = f"{kilobytes / 1000:8.1f}" if kilobytes is not None else ""
        print(f"{name:32}{cpu:8.1f}{wall:8.1f}{ratios}{size_shown}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="evals.ingest", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--peer-python", type=Path)
    parser.add_argument("--records", type=int, default=300)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--own", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--no-quick", action="store_true", help="leave out the quick ingest")
    given = parser.parse_args()
    if given.peer_python is None:
        print("the peer is left out: pass --peer-python", file=sys.stderr)
    elif not given.peer_python.exists():
        print(f"the peer is left out: there is no {given.peer_python}", file=sys.stderr)
        given.peer_python = None
    own = _environment(given.own)
    peer = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    peer |= {"HF_HUB_OFFLINE": "1"} | dict(one.partition("=")[::2] for one in given.peer)
    program = [sys.executable, "-c", "from orchestrator.cli.app import main; main()", "ingest"]
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        file = _take(given.data, folder, given.records)
        (folder / "warm").mkdir()
        one = _take(given.data, folder / "warm", 1)
        # the model is exported once a machine
        run([*program, str(one), "--index", str(folder / "w")], own, folder / "w")
        costs: dict[str, list[Cost]] = {}
        for turn in range(given.turns):
            commands = {
                QUICK: ([*program, "--quick", str(file), "--index"], own),
                WHOLE: ([*program, str(file), "--index"], own),
            }
            if given.no_quick:
                del commands[QUICK]
            if given.peer_python is not None:
                script = str(Path(__file__).with_name("ingest_peer.py"))
                commands[PEER] = ([str(given.peer_python), script, str(file)], peer)
            for name, (command, environment) in commands.items():
                made = folder / f"{name.replace(' ', '')}-{turn}"
                extra = [str(published())] if name == PEER else []
                cost = run([*command, str(made), *extra], environment, made)
                costs.setdefault(name, []).append(cost)
                print(f"turn {turn + 1}: {name}: {cost}", file=sys.stderr, flush=True)
    _shown(costs, given.records)


if __name__ == "__main__":
    main()
