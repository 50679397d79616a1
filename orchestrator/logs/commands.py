"""Log lines of commands: a submission is logged whichever way it comes, and the command's own output stays as it is."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.logs.events import EVENTS
from orchestrator.logs.rotated import SharedFile

#: file of the commands of a stack, beside those of its processes
FILE = "commands.log"


@contextmanager
def logged(level: str, folder: Path | None) -> Iterator[None]:
    """Write the events of the block as lines of JSON.

    Args:
        level: lowest level, a name of the standard library.
        folder: of the logs of a stack on this machine; ``None``: standard error.
    """
    log = logging.getLogger(EVENTS)
    before = log.level
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    if folder is not None:
        handler = SharedFile.of(folder / FILE)
    handler.setFormatter(_Lines())
    log.addHandler(handler)
    log.setLevel(level.upper())
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


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
