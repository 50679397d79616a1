"""The record of a run: JSON Lines that are only appended to, in one order."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Journal:
    """Writes records with a number that only grows; each is in the file when :meth:`write` returns.

    A piece that resumes a run continues after the last number of the piece before.

    Args:
        path: of the file, which must not exist.
        first: number of the first record.
    """

    def __init__(self, path: Path, *, first: int = 1) -> None:
        self._file = path.open("x", encoding="utf-8")
        self._numbers = itertools.count(first)
        self._lock = threading.Lock()

    def write(self, kind: str, **fields: Any) -> int:
        """Append a record, and return its number."""
        with self._lock:
            number = next(self._numbers)
            record: Mapping[str, Any] = {"n": number, "at": time.time(), "kind": kind, **fields}
            self._file.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")
            self._file.flush()
        return number

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def last_number(folder: Path) -> int:
    """Return the number of the last record of all pieces in a folder; 0: there is none."""
    last = 0
    for path in sorted(folder.glob("records*.jsonl")):
        with path.open(encoding="utf-8") as file:
            for line in file:
                if line.endswith("\n"):
                    last = json.loads(line)["n"]
    return last
