"""Replays what Redis does to a tenant's counters, across a restart of Redis."""

from __future__ import annotations

import threading
import time
import uuid
from collections import Counter
from types import TracebackType
from typing import Any, Self

import redis

from posology.store import keys

#: the window that has the cap, and its counters
_COUNTERS = ("spent:total", "reserved:total")
#: seconds for a Redis that was stopped to answer again, and for all commands to be replayed
_PATIENCE = 90.0


class Watch:
    """Listens to a Redis by ``MONITOR``, and checks the cap after every command that changes a counter.

    After a restart of Redis it goes on from the counters as they are once it listens again. What happens in between is
    in the ledger alone.

    Args:
        url: of the Redis.
        tenant: whose counters.
        cap: of the total, nano-dollars.
    """

    def __init__(self, url: str, *, tenant: str, cap: int) -> None:
        self._url = url
        self._key = f"{keys.prefix(tenant)}money"
        self._cap = cap
        self._end = uuid.uuid4().hex
        self._listens = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._counters: Counter[str] = Counter()
        #: changes of counters so far
        self.steps = 0
        #: most that was spent and reserved at once, nano-dollars
        self.peak = 0
        self.wrong: list[str] = []

    def __enter__(self) -> Self:
        """Begin to listen."""
        self._thread.start()
        if not self._listens.wait(_PATIENCE):
            raise TimeoutError("Redis does not answer")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Replay what is left, and compare the sums with the counters."""
        if kind is not None:
            return
        with redis.Redis.from_url(self._url, decode_responses=True) as client:
            found = self._snapshot(client, self._end)
        self._thread.join(_PATIENCE)
        if self._thread.is_alive():
            self.wrong.append("the commands were not replayed to the end")
        for name, value in found.items():
            if self._counters[name] != value:
                self.wrong.append(f"{name} is {value}, and {self._counters[name]} by the commands")

    def _run(self) -> None:
        over = False
        while not over:
            try:
                with redis.Redis.from_url(self._url, decode_responses=True) as client:
                    over = self._listen(client)
            except (redis.ConnectionError, OSError):
                time.sleep(0.01)

    def _listen(self, client: Any) -> bool:
        """Replay commands until the last one; Redis may end before."""
        with client.monitor() as monitor:
            start = uuid.uuid4().hex
            counters = self._snapshot(client, start)
            known = False
            for heard in monitor.listen():
                command = heard["command"]
                if start in command:
                    self._counters, known = Counter(counters), True
                    self._check()
                    self._listens.set()
                elif self._end in command:
                    return True
                elif known and self._key in command:
                    self._step(command.split(" "), heard["client_type"])
        return False

    def _step(self, words: list[str], client: str) -> None:
        if len(words) != 4 or words[0].upper() != "HINCRBY" or words[1] != self._key:
            return
        if client != "lua":
            self.wrong.append(f"no script changed {words[2]}")
        if words[2] in _COUNTERS:
            self.steps += 1
            self._counters[words[2]] += int(words[3])
            self._check()

    def _check(self) -> None:
        taken = sum(self._counters[name] for name in _COUNTERS)
        self.peak = max(self.peak, taken)
        if taken > self._cap or min(self._counters.values(), default=0) < 0:
            self.wrong.append(f"step {self.steps}: {dict(self._counters)} of {self._cap}")

    def _snapshot(self, client: Any, marker: str) -> dict[str, int]:
        """Read the counters at a place that is heard."""
        with client.pipeline(transaction=True) as both:
            both.echo(marker)
            both.hmget(self._key, _COUNTERS)
            _, values = both.execute()
        return {name: int(value or 0) for name, value in zip(_COUNTERS, values, strict=True)}
