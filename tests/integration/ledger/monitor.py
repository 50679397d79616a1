"""Reads what Redis does, command by command and within scripts too, and adds it up."""

from __future__ import annotations

import re
import socket
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from posology.store import keys

_HINCRBY = re.compile(
    r'^\+[\d.]+ \[\d+ (?P<by>[^\]]+)\] "hincrby" "(?P<key>[^"]+)" "(?P<field>[^"]+)" "(?P<n>-?\d+)"',
    re.IGNORECASE,
)


@dataclass(kw_only=True, slots=True)
class Seen:
    """The counters of a tenant after every command that changed one of them."""

    #: what the tenant may spend, by window, nano-dollars
    caps: Mapping[str, int]
    counters: Counter[str] = field(default_factory=Counter)
    #: the most that was spent and reserved at any step, by window
    peak: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    #: what was wrong, and after which step
    wrong: list[str] = field(default_factory=list)

    def step(self, name: str, n: int) -> None:
        """Take one change of a counter."""
        self.steps += 1
        self.counters[name] += n
        if self.counters[name] < 0:
            self.wrong.append(f"step {self.steps}: {name} is {self.counters[name]}")
        _, _, window = name.partition(":")
        cap = self.caps.get(window)
        taken = self.counters[f"spent:{window}"] + self.counters[f"reserved:{window}"]
        self.peak[window] = max(self.peak[window], taken)
        if cap is not None and taken > cap:
            self.wrong.append(f"step {self.steps}: {window} has {taken} of {cap}")


class Monitor:
    """Listens to a Redis until it hears a certain word.

    Args:
        url: of the Redis, ``unix://``.
        tenant: whose counters.
        caps: see :class:`Seen`.
        until: a word that somebody echoes after everything else.
    """

    def __init__(self, url: str, *, tenant: str, caps: Mapping[str, int], until: str) -> None:
        self.seen = Seen(caps=caps)
        self._key = f"{keys.prefix(tenant)}money"
        self._until = until
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(120)
        self._socket.connect(url.removeprefix("unix://"))
        self._socket.sendall(b"MONITOR\r\n")
        self._file = self._socket.makefile("r", encoding="utf-8", newline="\r\n")
        assert self._file.readline() == "+OK\r\n"
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def result(self) -> Seen:
        """What was seen until the word was heard."""
        self._thread.join(120)
        assert not self._thread.is_alive(), "the monitor did not hear the end"
        self._file.close()
        self._socket.close()
        return self.seen

    def _listen(self) -> None:
        for line in self._file:
            # most lines are none of ours
            if self._key not in line and self._until not in line:
                continue
            if '"ECHO"' in line and self._until in line:
                return
            found = _HINCRBY.match(line)
            if found is not None and found["key"] == self._key:
                if found["by"] != "lua":
                    self.seen.wrong.append(f"no script changed {found['field']}")
                self.seen.step(found["field"], int(found["n"]))
