"""The lines of a batch: read twice, and never held together in memory."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from orchestrator.jobs.rows import Row, read_row
from orchestrator.settings import Settings
from posology.errors import InvalidQuery

#: rows of one batch
MAX_ROWS = 100_000
#: rows that are read, or written to the store, in one go
CHUNK = 500
#: bytes of lines that are read in one go
_CHUNK_BYTES = 1024 * 1024
#: bytes that Redis needs for a row's place in its batch
_ENTRY = 150

#: lines of a batch; they are read more than once
Lines = Sequence[str | bytes] | AsyncIterable[str | bytes]


@dataclass(frozen=True, kw_only=True, slots=True)
class Survey:
    """Sums over the rows of a batch."""

    #: SHA-256 of the rows' contents, hexadecimal
    digest: str
    total: int
    rejected: int
    #: bytes of what is kept beside the jobs: ids, errors, places
    beside: int
    #: bytes of the requests
    requests: int
    models: frozenset[str]
    collections: frozenset[str | None]


class Reader:
    """Reads the lines of a batch.

    Args:
        settings: for what neither rows nor defaults say.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    async def survey(self, rows: Lines, defaults: Mapping[str, Any]) -> Survey:
        """Read all rows once, and keep none of them.

        Raises:
            InvalidQuery: there are too many.
        """
        digest, models, collections = hashlib.sha256(), set[str](), set[str | None]()
        total = rejected = beside = requests = 0
        async for some in self.read(rows, defaults):
            total += len(some)
            if total > MAX_ROWS:
                raise InvalidQuery(
                    f"the batch has more than {MAX_ROWS} rows: split it", field="rows"
                )
            for row in some:
                content = row.content
                digest.update(content)
                beside += _ENTRY + len(row.id or "")
                if row.request is None:
                    rejected += 1
                    beside += len(content)
                else:
                    requests += len(content)
                    models.add(str(row.request.model))
                    collections.add(row.request.collection)
        return Survey(
            digest=digest.hexdigest(),
            total=total,
            rejected=rejected,
            beside=beside,
            requests=requests,
            models=frozenset(models),
            collections=frozenset(collections),
        )

    async def read(self, rows: Lines, defaults: Mapping[str, Any]) -> AsyncIterator[list[Row]]:
        """Yield the rows, checked, a few at a time."""
        chunk: list[tuple[int, str | bytes]] = []
        line = first = size = 0

        async def read() -> list[Row]:
            nonlocal first, size
            # checking takes a while, in which the event loop has others to serve
            found = await to_thread.run_sync(
                lambda: [
                    read_row(first + i, line, raw, defaults, self._settings)
                    for i, (line, raw) in enumerate(chunk)
                ]
            )
            first, size = first + len(chunk), 0
            chunk.clear()
            return found

        async for raw in _each(rows):
            line += 1
            if raw.strip():
                chunk.append((line, raw))
                size += len(raw)
            if len(chunk) == CHUNK or size >= _CHUNK_BYTES:
                yield await read()
        if chunk:
            yield await read()


async def _each(rows: Lines) -> AsyncIterator[str | bytes]:
    if isinstance(rows, AsyncIterable):
        async for row in rows:
            yield row
    else:
        for row in rows:
            yield row
