"""Output of a child process: written to a rotated file, line by line, and passed on."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Thread

from orchestrator.logs.rotated import PrivateFile

#: takes the name of a process and a line of its output; called on a thread of the process's own
Hear = Callable[[str, str], None]
#: bytes of a line; a longer one is broken
_LINE = 256_000
#: seconds for the rest of the output of a process that has ended
_REST = 2.0


class Output:
    """Output of one process over all of its starts.

    Args:
        name: of the process.
        path: of the file; readable by its owner alone, since a worker's output may contain questions.
        limit: maximum bytes of the file; then it is rotated.
        kept: number of rotated files.
        hear: takes every line; ``None``: only the file does.
    """

    def __init__(
        self, name: str, path: Path, *, limit: int, kept: int, hear: Hear | None = None
    ) -> None:
        self._name = name
        self._path = path
        self._limit = limit
        self._kept = kept
        self._hear = hear
        self._thread: Thread | None = None
        self._last = deque[str](maxlen=100)

    def begin(self) -> int:
        """Return a descriptor for the output of a process that starts; the caller closes its copy.

        Raises:
            OSError: the file cannot be written.
        """
        self._last.clear()
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = PrivateFile(self._path, maxBytes=self._limit, backupCount=self._kept)
        reading, writing = os.pipe()
        self._thread = Thread(
            target=self._pump, args=(reading, file), name=f"output of {self._name}", daemon=True
        )
        self._thread.start()
        return writing

    def end(self) -> None:
        """Wait for the rest of the output of a process that has ended."""
        if self._thread is not None:
            self._thread.join(_REST)

    def last(self, count: int) -> tuple[str, ...]:
        """Return the last lines since the last start."""
        return tuple(self._last)[-count:]

    def _pump(self, reading: int, file: PrivateFile) -> None:
        with os.fdopen(reading, "rb") as pipe:
            for raw in iter(partial(pipe.readline, _LINE), b""):
                text = raw.decode("utf-8", errors="replace").rstrip("\r\n")
                if text.strip():
                    self._last.append(text.strip())
                file.write(text)
                if self._hear is not None:
                    self._hear(self._name, text)
        file.close()
