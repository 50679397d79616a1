"""Hears by ``MONITOR`` what scripts do to the counters of every tenant, and writes it down.

Effects of a script come as lines of the client ``lua``, after the script's own line and before any other client's: they
are written as one record, since nothing else runs meanwhile. After Redis was away, the counters are read as a whole, in a
transaction whose place among the commands is heard, too; what happened in between is in the ledger alone.
"""

from __future__ import annotations

import json
import re
import socket
import threading
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import redis

_LUA = b" lua] "
_CHANGE = re.compile(rb'"hincrby" "posology:\{(\w+)\}:money" "([^"]+)" "(-?\d+)"', re.IGNORECASE)
_ENTRY = re.compile(
    rb'"xadd" "posology:\{(\w+)\}:ledger" .*?"bound" "(\d+)" "charged" "(\d+)"', re.IGNORECASE
)
_LIMITS = re.compile(rb'"hset" "posology:\{(\w+)\}:tenant" (.*)$', re.IGNORECASE)
_LIMIT = re.compile(rb'"(total|month|day)" "(\d+)"')
_SCOPES = ("total", "month", "day")
#: seconds for Redis to be back, and for a place to be heard
_PATIENCE = 120.0


class Watch:
    """Writes changes of counters to a file until it is closed.

    Args:
        port: of Redis, without a proxy.
        tenants: whose counters.
        path: of the file.
    """

    def __init__(self, port: int, tenants: tuple[str, ...], path: Path) -> None:
        self._port, self._tenants = port, tenants
        self._file = path.open("x", encoding="utf-8")
        self._over = threading.Event()
        #: markers of snapshots: what was read at their places
        self._read: dict[str, list[Any]] = {}
        self._heard: dict[str, threading.Event] = {}
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        #: whether nothing was missed since the last snapshot
        self._gapless = False
        self._changes: dict[str, Counter[str]] = {}
        self._excess: Counter[str] = Counter()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Listen, and return once the counters are known."""
        self._thread.start()
        self.snapshot()

    def snapshot(self) -> None:
        """Read the counters as a whole, at a place that is heard.

        Raises:
            TimeoutError: Redis does not answer.
        """
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            try:
                if self._snapshot(deadline):
                    return
            except redis.RedisError:
                time.sleep(0.05)
        raise TimeoutError("Redis does not answer")

    def close(self) -> None:
        """Read the counters a last time, and end."""
        self.snapshot()
        self._over.set()
        if self._socket is not None:
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(_PATIENCE)
        self._file.close()

    def _snapshot(self, deadline: float) -> bool:
        """Return whether its place was heard; it is not if Redis ended meanwhile."""
        marker, heard = uuid.uuid4().hex, threading.Event()
        with self._lock:
            self._heard[marker] = heard
        client = redis.Redis(port=self._port, decode_responses=True, socket_timeout=10)
        with client, client.pipeline(transaction=True) as both:
            both.echo(marker)
            for tenant in self._tenants:
                both.hgetall(f"posology:{{{tenant}}}:money")
                both.xrevrange(f"posology:{{{tenant}}}:ledger", count=1)
                both.hmget(f"posology:{{{tenant}}}:tenant", _SCOPES)
            _, *found = both.execute()
        with self._lock:
            self._read[marker] = found
        return heard.wait(min(5.0, max(0.0, deadline - time.monotonic())))

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                self._listen()
            except OSError:
                time.sleep(0.02)
            self._gapless = False

    def _listen(self) -> None:
        with socket.create_connection(("127.0.0.1", self._port), timeout=None) as self._socket:
            self._socket.sendall(b"MONITOR\r\n")
            with self._socket.makefile("rb") as lines:
                if not lines.readline().startswith(b"+OK"):
                    time.sleep(0.05)
                    return
                # what was missed is read by another connection, whose place this one hears
                threading.Thread(target=self._catch_up, daemon=True).start()
                for line in lines:
                    self._line(line)

    def _catch_up(self) -> None:
        try:
            self._snapshot(time.monotonic() + 5.0)
        except redis.RedisError:
            return

    def _line(self, line: bytes) -> None:
        if _LUA in line[:48]:
            if found := _CHANGE.search(line):
                tenant, name = found[1].decode(), found[2].decode()
                self._changes.setdefault(tenant, Counter())[name] += int(found[3])
            elif entry := _ENTRY.search(line):
                self._excess[entry[1].decode()] += max(0, int(entry[3]) - int(entry[2]))
            elif limits := _LIMITS.search(line):
                self._limits(limits)
            return
        if self._changes:
            self._flush()
        if b'"ECHO"' in line or b'"echo"' in line:
            self._place(line)

    def _flush(self) -> None:
        for tenant, changes in self._changes.items():
            # in the order of scripts; tenants of one script have one place
            more = {"excess": self._excess[tenant]} if self._excess[tenant] else {}
            self._write("change", tenant, changes=dict(changes), **more)
        self._changes.clear()
        self._excess.clear()

    def _limits(self, found: re.Match[bytes]) -> None:
        caps = {name.decode(): int(value) for name, value in _LIMIT.findall(found[2])}
        if caps:
            self._write("caps", found[1].decode(), caps=caps)

    def _place(self, line: bytes) -> None:
        marker = line.rpartition(b'" "')[2].strip().strip(b'"').decode()
        with self._lock:
            heard = self._heard.get(marker)
        if heard is None:
            return
        found = None
        # the reply to the transaction may come later than its line
        deadline = time.monotonic() + 5.0
        while found is None and time.monotonic() < deadline:
            with self._lock:
                found = self._read.pop(marker, None)
            if found is None:
                time.sleep(0.005)
        if found is None:
            return
        for place, tenant in enumerate(self._tenants):
            counters, last, caps = found[3 * place : 3 * place + 3]
            self._write(
                "snapshot",
                tenant,
                counters={k: int(v) for k, v in counters.items() if ":" in k},
                upto=last[0][0] if last else None,
                caps={s: int(c) for s, c in zip(_SCOPES, caps, strict=True) if c},
                gapless=self._gapless,
            )
        self._gapless = True
        heard.set()

    def _write(self, kind: str, tenant: str, **fields: Any) -> None:
        record = {"kind": kind, "at": time.time(), "tenant": tenant, **fields}
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()
