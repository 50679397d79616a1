"""Records a second and peak memory of reading a file as NLM publishes it, and of its alternatives.

Usage: ``python -m evals.pubmed_reading [--records N]``.

A file of the size of NLM's (30,000 records) is written from drawn words and read, each time in a process of
its own: by Posology's reader; counted only, as for a progress bar; and by ``pubmed_parser`` where that is
installed. Rates are by the time that the processor was busy with it, which other work on the machine changes
less. Memory is the most that the process held, with what it holds before it reads (Linux).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections import Counter
from importlib import import_module
from pathlib import Path

from evals.pubmed_files import write

WAYS = ("start", "count", "read", "pubmed_parser")


def _start(path: Path) -> int:
    import_module("posology.corpus.pubmed.reader")
    import_module("lxml.etree")
    return path.stat().st_size


def _read(path: Path) -> int:
    from posology.corpus.pubmed import read

    kinds = Counter(type(item).__name__ for item in read(path))
    print(", ".join(f"{count:,} {kind}" for kind, count in kinds.items()), end="  ")
    return kinds.total()


def _count(path: Path) -> int:
    from posology.corpus.pubmed import count

    return count(path)


def _pubmed_parser(path: Path) -> int:
    from pubmed_parser import parse_medline_xml

    return sum(1 for _ in parse_medline_xml(str(path)))


def measure(way: str, path: Path) -> None:
    """Read the file in one of :data:`WAYS`, in this process, and print what it took."""
    started, busy = time.perf_counter(), time.process_time()
    found = {"start": _start, "count": _count, "read": _read, "pubmed_parser": _pubmed_parser}[way](
        path
    )
    seconds, busy = time.perf_counter() - started, time.process_time() - busy
    rate = f"{found:>8,} {seconds:>7.1f} s {busy:>7.1f} s busy {found / busy:>8,.0f}/s"
    print(f"{way:<14} {'' if way == 'start' else rate:<46} {_peak():>6.0f} MB")


def _peak() -> float:
    """The most memory that this process held, MB."""
    # not getrusage, which counts what the process held that started this one
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def main(argv: list[str] | None = None) -> int:
    """Write a file and measure every way of reading it."""
    parser = argparse.ArgumentParser(prog="evals.pubmed_reading", description=__doc__)
    parser.add_argument("--records", type=int, default=30_000)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if given.way is not None:
        measure(given.way, given.file)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        for records in (given.records // 10, given.records):
            path = Path(folder) / f"pubmed{records}.xml.gz"
            write(path, records)
            print(f"\n{records:,} records, {path.stat().st_size / 1e6:.1f} MB packed", flush=True)
            for way in WAYS:
                command = [
                    sys.executable,
                    "-m",
                    "evals.pubmed_reading",
                    "--way",
                    way,
                    "--file",
                    str(path),
                ]
                if subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode:
                    print(f"{way:<14} not installed, or it failed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
