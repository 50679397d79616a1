"""Log files of a local stack: reading in the order of time, filtering and following."""

from __future__ import annotations

import heapq
import json
import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

#: how Redis begins a line: process, role and time
_REDIS = re.compile(r"\d+:[A-Z] (\d{2} [A-Z][a-z]{2} \d{4} [\d:.]+) ", re.ASCII)
#: fields of a line that no process of ours wrote
_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One line of a log."""

    #: process that wrote it, e.g. ``worker1``
    process: str
    #: as it is in the file
    text: str
    #: fields of a line of JSON; empty: it is another program's text
    fields: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    #: time, ISO 8601, UTC; of text that has none, that of the line before
    at: str = ""

    @classmethod
    def of(cls, process: str, text: str, *, at: str = "") -> Line:
        """Read a line.

        Args:
            process: that wrote it.
            text: of the line, without its end.
            at: time of the line before.
        """
        try:
            found = json.loads(text) if text.startswith("{") else None
        except ValueError:
            found = None
        if not isinstance(found, dict):
            return cls(process=process, text=text, at=_time_of_redis(text) or at)
        return cls(process=process, text=text, fields=found, at=str(found.get("timestamp", at)))

    @property
    def level(self) -> int:
        """Level of the standard library; other programs' text counts as information."""
        known = logging.getLevelNamesMapping()
        return known.get(str(self.fields.get("level", "info")).upper(), logging.INFO)

    @property
    def plain(self) -> str:
        """The line for people: time, level, process, event and fields."""
        if not self.fields:
            return f"{self.at[11:23]:12} {'':8}{self.process:8} {self.text}"
        level = str(self.fields.get("level", ""))
        return f"{self.at[11:23]:12} {level:8}{self.process:8} {self.said}"

    @property
    def said(self) -> str:
        """Event and fields of a line of JSON."""
        left = {k: v for k, v in self.fields.items() if k not in ("timestamp", "level", "event")}
        event = str(self.fields.get("event", ""))
        return " ".join([event, *(f"{name}={_short(value)}" for name, value in left.items())])


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """A filter of lines; a line passes if it meets every condition that is set."""

    #: lowest level
    level: int = logging.NOTSET
    #: fields by name, with their values
    fields: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, line: Line) -> bool:
        """Return whether a line passes."""
        return line.level >= self.level and all(
            str(line.fields.get(name)) == value for name, value in self.fields.items()
        )


class Reader:
    """Reads all log files of a folder; every :meth:`read` returns what was added since the last one.

    A file that is rotated meanwhile is read to its end first. Close it after use, by ``with``.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, _File] = {}

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.close()

    def read(self) -> Iterator[Line]:
        """Yield the new lines of all files, in the order of time."""
        for path in sorted(self._folder.glob("*.log")):
            self._open.setdefault(path.stem, _File(path))
        return heapq.merge(
            *(file.lines() for file in self._open.values()), key=lambda line: line.at
        )


class _File:
    """One process's log: its rotated files at first, then its current one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._current: IO[bytes] | None = None
        self._rest = b""
        self._at = ""
        self._begun = False

    def lines(self) -> Iterator[Line]:
        """Yield complete lines that were not read before."""
        if not self._begun:
            self._begun = True
            old = self._path.parent.glob(f"{self._path.name}.[0-9]*")
            for path in sorted(old, key=lambda one: int(one.suffix[1:]), reverse=True):
                with path.open("rb") as file:
                    yield from self._of(file)
        if self._current is not None:
            yield from self._of(self._current)
            if not self._is_replaced():
                return
            self.close()
        try:
            self._current = self._path.open("rb")
        except OSError:
            return
        yield from self._of(self._current)

    def close(self) -> None:
        """Close the file."""
        if self._current is not None:
            self._current.close()
            self._current = None

    def _is_replaced(self) -> bool:
        assert self._current is not None
        try:
            now = self._path.stat()
        except OSError:
            return False
        return now.st_ino != os.fstat(self._current.fileno()).st_ino

    def _of(self, file: IO[bytes]) -> Iterator[Line]:
        while raw := file.readline():
            self._rest += raw
            if not raw.endswith(b"\n"):
                # the rest is on its way
                return
            text = self._rest.decode("utf-8", errors="replace").rstrip("\r\n")
            self._rest = b""
            if not text.strip():
                continue
            line = Line.of(self._path.stem, text, at=self._at)
            self._at = line.at
            yield line


def _time_of_redis(text: str) -> str | None:
    """Return the time of a line of Redis, which writes local time; ``None``: it is another program's."""
    found = _REDIS.match(text)
    if found is None:
        return None
    with suppress(ValueError):
        at = datetime.strptime(found[1], "%d %b %Y %H:%M:%S.%f").astimezone(UTC)
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return None


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return json.dumps(text, ensure_ascii=False) if " " in text else text
