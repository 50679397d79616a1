"""``posology backup``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.common import IndexOption, errors, run
from orchestrator.settings import Settings, load_settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.backup.backup import Backup, Sources

_HOUR = 3_600.0


def backup(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", file_okay=False, help="Folder of all backups."),
    ],
    *,
    keep: Annotated[
        int,
        typer.Option(min=1, help="Number of backups to keep. The newest with an index stays, too."),
    ] = 7,
    every: Annotated[
        float | None,
        typer.Option(
            "--every",
            metavar="HOURS",
            min=0.01,
            max=8_760,
            help="Hours between two backups, until Ctrl-C. Default: one backup.",
        ),
    ] = None,
    index: IndexOption = None,
    with_index: Annotated[
        bool, typer.Option("--copy-index/--no-index", help="Whether to copy the index.")
    ] = True,
) -> None:
    """Copy a running service: Redis, the ledger as rows, the index and the memory.

    Each backup is a folder of its own, named by its time (UTC). Files of the index that have not changed are shared with
    the backup before. docs/how-to/backup.md describes how to restore one.
    """
    from orchestrator.backup.backup import back_up

    with errors(as_json=False):
        sources = _sources(load_settings(), index, with_index=with_index)

        async def once() -> Backup:
            return await back_up(sources, folder, keep=keep)

        if every is None:
            _say(run(once))
            return
        _repeat(lambda: run(once), every)


def _repeat(once: Callable[[], Backup], every: float) -> None:
    """Make backups until SIGINT or SIGTERM; one that fails is reported, and the next one is tried."""
    import signal
    import threading

    from orchestrator.cli.common import fail
    from posology.errors import PosologyError

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    while not stop.is_set():
        try:
            _say(once())
        except (PosologyError, OSError) as error:
            fail(f"no backup: {error}")
        stop.wait(every * _HOUR)


def _sources(settings: Settings, index: str | None, *, with_index: bool) -> Sources:
    from orchestrator.backup.backup import Sources
    from orchestrator.compressors import memory_file
    from orchestrator.jobs.place import store_url
    from orchestrator.service import index_place

    folder = None
    if with_index and (index or settings.index):
        # an index in a bucket has the versions of its bucket
        folder = index_place(settings, index).folder
    return Sources(redis=store_url(settings), index=folder, memory=memory_file(settings))


def _say(made: Backup) -> None:
    copied = (
        f"{made.folder}: Redis {made.redis_bytes:,} bytes, {made.attempts:,} attempts in the ledger, "
        f"{made.index_files:,} files of the index ({made.shared:,} unchanged)"
    )
    sys.stdout.write("".join(f"{line}\n" for line in (copied, made.without) if line))
    sys.stdout.flush()
