"""Measures what one Redis carries: ``python -m evals.load.volume``; an interrupted run goes on with the same ``--work``.

Queued jobs and entries of ledgers in growing numbers, of many tenants, the largest of which has a fifth: memory, restart, and
commands and processor time of Redis for each operation of that tenant. Then entries that are archived, as ``ledger archive``
does; and a Redis at rest, as :mod:`evals.speed.rest` measures it.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from evals.load.volume import archived, queued
from evals.speed.rest import resting
from posology.durable import replace_file
from training.gold import WORK

#: title of a row, and how its cell is made of the figures of a size
Row = tuple[str, Callable[[Mapping[str, Any]], str]]


def _cell(cost: Mapping[str, float]) -> str:
    return f"{cost['commands']:,.0f}, {cost['redis_us']:,.0f}"


QUEUED: Sequence[Row] = (
    ("memory, MB", lambda f: f"{f['memory'] / 1e6:,.0f}"),
    ("bytes a queued job", lambda f: f"{f['job_bytes']:,.0f}"),
    ("bytes an entry", lambda f: f"{f['entry_bytes']:,.0f}"),
    ("append-only file, MB", lambda f: f"{f['file_bytes'] / 1e6:,.0f}"),
    ("… rewritten in, s", lambda f: f"{f['rewrite_s']:.1f}"),
    ("restart, s; CPU s", lambda f: f"{f['restart_s']:.1f}; {f['restart_cpu_s']:.1f}"),
)
ARCHIVED: Sequence[Row] = (
    ("entries of the largest tenant", lambda f: f"{f['entries']:,}"),
    ("files", lambda f: f"{f['files']:,}"),
    ("disk, bytes an entry", lambda f: f"{f['bytes'] / f['all']:,.0f}"),
    ("Redis, MB", lambda f: f"{f['redis_bytes'] / 1e6:,.1f}"),
    ("archived a second", lambda f: f"{f['moved'] / f['moved_s']:,.0f}"),
    *(
        (name, lambda f, name=name: f"{_cell(f[name])}; {f[name]['ms']:,.1f} ms")
        for name in ("audit", "spend", "reconcile half a day", "list files")
    ),
    ("inspection of the largest, s", lambda f: f"{f['inspection_s']:.1f}"),
    ("mirrored a second", lambda f: f"{f['mirrored'] / f['mirror_s']:,.0f}"),
    ("mirror, bytes an entry", lambda f: f"{f['mirror_bytes'] / f['mirrored']:,.0f}"),
    ("mirror again, s", lambda f: f"{f['mirror_again_s']:.1f}"),
    ("SQL: newest page, ms", lambda f: f"{f['sql_page_ms']:,.1f}"),
    ("SQL: attempts of a day, ms", lambda f: f"{f['sql_day_ms']:,.0f}"),
    ("SQL: all attempts, ms", lambda f: f"{f['sql_all_ms']:,.0f}"),
)  # fmt: skip


def table(kept: Mapping[str, Mapping[str, Any]], rows: Sequence[Row], *, unit: str) -> str:
    """Return the figures as Markdown, a column for each size; –: not measured."""
    sizes = sorted(kept, key=int)
    lines = [f"| | {' | '.join(f'{int(n):,} {unit}' for n in sizes)} |", "| --- |" + " ---: |" * len(sizes)]  # fmt: skip
    for title, cell in rows:
        lines.append(f"| {title} | {' | '.join(_made(cell, kept[n]) for n in sizes)} |")
    return "\n".join(lines)


def _made(cell: Callable[[Mapping[str, Any]], str], found: Mapping[str, Any]) -> str:
    try:
        return cell(found)
    except (KeyError, ZeroDivisionError):
        return "–"


def report(kept: Mapping[str, Mapping[str, Any]]) -> str:
    """Return all tables that have a figure."""
    jobs = kept["queued"]
    names = dict.fromkeys(name for found in jobs.values() for name in found["operations"])
    costs = [(name, lambda f, name=name: _cell(f["operations"][name])) for name in names]
    tables = [table(jobs, [*QUEUED, *costs], unit="jobs")] if jobs else []
    if kept["archived"]:
        tables.append(table(kept["archived"], ARCHIVED, unit="entries"))
    rest = (f"{processes} processes at rest: {found}" for processes, found in kept["rest"].items())
    return "\n\n".join(("Operations: commands, microseconds of Redis.", *tables, *rest))


def main(words: Sequence[str] | None = None) -> None:
    """Measure what is missing, and print the tables.

    Args:
        words: of the command line; ``None``: of this process.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, default=WORK / "volume", help="figures and archive")
    parser.add_argument("--tenants", type=int, default=500)
    parser.add_argument("--jobs", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--entries", type=int, nargs="*", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument(
        "--mirrored", type=int, default=0, help="entries up to which Postgres is measured"
    )
    parser.add_argument("--processes", type=int, nargs="*", default=[100], help="at rest")
    given = parser.parse_args(words)
    work, tenants = given.work, given.tenants
    work.mkdir(parents=True, exist_ok=True)
    file = work / "figures.json"
    kept = json.loads(file.read_text("utf-8")) if file.exists() else {}

    def keep(kind: str, name: int, measure: Callable[[], Any]) -> None:
        known = kept.setdefault(kind, {})
        if str(name) not in known:
            known[str(name)] = measure()
            replace_file(file, json.dumps(kept, indent=1).encode())
            print(f"{kind} {name:,}: {known[str(name)]}", flush=True)

    for kind in ("queued", "archived", "rest"):
        kept.setdefault(kind, {})
    for jobs in sorted(given.jobs):
        keep("queued", jobs, partial(_queued, work / "queued", jobs, tenants))
    for processes in given.processes:
        keep("rest", processes, partial(_rest, processes, tenants))
    for entries in sorted(given.entries):
        mirrors = entries <= given.mirrored
        keep("archived", entries, partial(_archived, work / "archived", entries, tenants, mirrors))
    print(report(kept))


def _queued(folder: Path, jobs: int, tenants: int) -> dict[str, Any]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return anyio.run(queued.measured, folder, jobs, tenants)


def _archived(folder: Path, entries: int, tenants: int, mirrors: bool) -> dict[str, Any]:  # noqa: FBT001
    found = anyio.run(partial(archived.measured, folder, entries, tenants, mirrors=mirrors))
    return {"all": entries, **found}


def _rest(processes: int, tenants: int) -> dict[str, float]:
    done = anyio.run(resting, processes, tenants)
    return {
        "tenants": tenants,
        "commands a second": done.commands / done.seconds,
        "ms of Redis a second": done.milliseconds / done.seconds,
    }


if __name__ == "__main__":
    main()
