"""Important lines of a stack's processes for its terminal."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.logs.files import Line

#: seconds until a notice of the same kind is shown again
PAUSE = 60.0
#: kinds of notices that are remembered
_KINDS = 1_000


@dataclass(kw_only=True, slots=True)
class _Kind:
    shown: float
    #: lines that were not shown since then
    more: int = 0


class Notices:
    """Shows warnings and errors, each kind of event once in a while. Threads may share it.

    Args:
        tell: takes a line for people.
        pause: seconds until the same kind is shown again; the number in between is shown with it.
        clock: seconds, from any origin.
    """

    def __init__(
        self,
        tell: Callable[[str], None],
        *,
        pause: float = PAUSE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tell = tell
        self._pause = pause
        self._clock = clock
        self._kinds: dict[tuple[str, ...], _Kind] = {}
        self._lock = threading.Lock()

    def __call__(self, process: str, text: str) -> None:
        """Take a line of a process's output; text that is no line of JSON is left to its file."""
        line = Line.of(process, text)
        if not line.fields or line.level < logging.WARNING:
            return
        kind = tuple(str(line.fields.get(name)) for name in ("event", "tenant", "error"))
        with self._lock:
            now = self._clock()
            known = self._kinds.get(kind)
            if known is not None and now - known.shown < self._pause:
                known.more += 1
                return
            if len(self._kinds) >= _KINDS:
                self._kinds.clear()
            self._kinds[kind] = _Kind(shown=now)
        more = f" ({known.more} more since then)" if known is not None and known.more else ""
        self._tell(f"{line.plain}{more}")
