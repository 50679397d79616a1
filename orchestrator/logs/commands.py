"""Log lines of commands: a submission is logged whichever way it comes, and the command's own output stays as it is."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from orchestrator.logs.events import EVENTS

#: file of the commands of a stack, beside those of its processes
FILE = "commands.log"
#: maximum bytes of the file; then it is rotated once
_LIMIT = 5_000_000


@contextmanager
def logged(level: str, folder: Path | None) -> Iterator[None]:
    """Write the events of the block as lines of JSON.

    Args:
        level: lowest level, a name of the standard library.
        folder: of the logs of a stack on this machine; ``None``: standard error.
    """
    log = logging.getLogger(EVENTS)
    before = log.level
    with _stream(folder) as stream:
        if stream is None:
            # a log that cannot be written is no reason to submit nothing
            yield
            return
        handler = logging.StreamHandler(stream)
        handler.setFormatter(_Lines())
        log.addHandler(handler)
        log.setLevel(level.upper())
        try:
            yield
        finally:
            log.removeHandler(handler)
            log.setLevel(before)


@contextmanager
def _stream(folder: Path | None) -> Iterator[IO[str] | None]:
    if folder is None:
        yield sys.stderr
        return
    path = folder / FILE
    try:
        with suppress(FileNotFoundError):
            if path.stat().st_size > _LIMIT:
                path.replace(path.with_name(f"{FILE}.1"))
        # lines of several commands do not mix: each is one write to the end
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError:
        yield None
        return
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        yield file


class _Lines(logging.Formatter):
    """Events as one line of JSON each; they have ids and numbers, and neither text nor secrets."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", {})
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {
            "timestamp": at.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **{name: value for name, value in fields.items() if value is not None},
        }
        return json.dumps(line, default=str)
