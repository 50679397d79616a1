"""Batches of a service."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
from anyio import to_thread

from posology.client.rows import Row, packed
from posology.client.wire import Base, new_key, read
from posology.published.jobs import BatchOutput, BatchPage, BatchRow, BatchRowPage
from posology.types import BatchState

#: seconds of silence that a batch bears: it is answered when all of its rows are in the queue
_BATCH_SILENCE = 600.0
#: seconds after which the service answers the cancellation of a large batch before it is complete
_CANCELLATION = 10.0


class Batches(Base):
    """Submits many questions under one id."""

    async def submit_batch(
        self,
        rows: str | Path | Iterable[Row],
        *,
        key: str | None = None,
        **defaults: Any,
    ) -> BatchOutput:
        """Put many questions into the queue.

        Args:
            rows: the path of a file of JSON Lines, or the rows themselves, as mappings or as lines. Each
                is a request with an optional ``id`` of its own that stands again in its output.
            key: an idempotency key: the same key and rows give the same batch and jobs.
            defaults: values of the fields that a row omits, such as ``model``, ``k`` or ``since``.

        Raises:
            IdempotencyConflict: the key stands for other rows.
            BadFile: the file cannot be read.
        """
        reply = await self._wire.request(
            "POST",
            "/v1/batches",
            repeatable=True,
            content=await to_thread.run_sync(packed, rows),
            timeout=max(self._timeout, _BATCH_SILENCE),
            params={name: value for name, value in defaults.items() if value is not None},
            headers={
                **new_key(key),
                "Content-Type": "application/x-ndjson",
                "Content-Encoding": "gzip",
            },
        )
        return read(BatchOutput, reply.content)

    async def batch(self, batch: str) -> BatchOutput:
        """A batch as it is now.

        Raises:
            BatchNotFound: there is none of that id, or its record has expired.
        """
        reply = await self._wire.request("GET", _batch(batch), repeatable=True)
        return read(BatchOutput, reply.content)

    async def batches(
        self, *, state: BatchState | str | None = None, page: int = 100
    ) -> AsyncGenerator[BatchOutput]:
        """All batches, newest first, fetched page by page.

        Args:
            state: only batches in it: ``running``, ``ended`` or ``cancelled``.
            page: batches fetched at once.

        Raises:
            InvalidQuery: there is no such state, or a page cannot be as long.
        """
        query = {"limit": page} | ({} if state is None else {"state": str(state)})
        async for found in self._pages("/v1/batches", BatchPage, query):
            for batch in found.batches:
                yield batch

    async def cancel_batch(self, batch: str) -> BatchOutput:
        """Cancel the jobs of a batch that have not ended, and submit no more of its rows.

        Once this returns, no further model call of the batch is admitted. Jobs that have ended stay as they are. A
        large batch takes several requests; repeat a cancellation that was interrupted.

        Raises:
            BatchNotFound: there is none of that id, or its record has expired.
        """
        while True:
            reply = await self._wire.request(
                "DELETE", _batch(batch), repeatable=True, **self._patient(_CANCELLATION)
            )
            if reply.status_code != httpx2.codes.ACCEPTED:
                return read(BatchOutput, reply.content)

    async def batch_rows(self, batch: str, *, page: int = 100) -> AsyncGenerator[BatchRow]:
        """All rows of a batch in the order of the input, each as it is when it is fetched.

        Args:
            batch: its id.
            page: rows fetched at once.

        Raises:
            BatchNotFound: there is none of that id, or its record has expired.
        """
        path, query = f"{_batch(batch)}/rows", {"after": -1, "limit": page}
        async for found in self._pages(path, BatchRowPage, query, cursor="after"):
            for row in found.rows:
                yield row


def _batch(batch: str) -> str:
    return f"/v1/batches/{quote(batch, safe='')}"
