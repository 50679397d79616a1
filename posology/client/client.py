"""The client."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import anyio
import httpx2
from anyio import to_thread

from posology.client.events import TooLong, parse
from posology.client.rows import Row, packed
from posology.client.wire import Passing, Wire, asked, read
from posology.errors import ApiError, KeyRefused, StoreUnavailable
from posology.published.jobs import (
    BatchOutput,
    BatchRow,
    BatchRowPage,
    JobEvent,
    JobOutput,
    JobPage,
    JobSummary,
)
from posology.types import JobState

#: seconds between looks at a job that cannot be watched: the first and the longest
_POLL, _POLL_CAP = 0.25, 5.0
#: seconds of silence that a batch bears: it is answered when all of its rows are in the queue
_BATCH_SILENCE = 600.0
#: what may break a stream of events although the job is well
_CUT = (httpx2.TransportError, httpx2.StreamError, TooLong, Passing)


class Client:
    """Submits questions to a service, and watches what becomes of them.

    What may be repeated without doing more is repeated until it is answered: a submission without a key
    of yours gets one, so that no lost reply makes two jobs of one question.

    Args:
        base_url: where the API is.
        tenant: tenant of the jobs; ``None``: the key's, or ``default`` without a key.
        api_key: the tenant's key, where the service wants one.
        timeout: seconds of silence that one attempt bears.
        attempts: at one request, the first included.
        transport: what sends the requests; ``None``: the network.

    Every method raises :mod:`posology.errors` as the same call on the service's own machine would,
    :class:`ApiError` where the service has another reason, and :class:`ApiUnreachable` where it does
    not answer. A key that is none raises :class:`KeyRefused`, here or at the first request.
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8000",
        *,
        tenant: str | None = None,
        api_key: str | None = None,
        timeout: float = 30.0,
        attempts: int = 5,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._timeout = timeout
        self._wire = Wire(
            base_url,
            headers={"Accept": "application/json", **_whose(tenant, api_key)},
            timeout=timeout,
            attempts=attempts,
            transport=transport,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._wire.aclose()

    async def submit(
        self, question: str | Mapping[str, Any], *, key: str | None = None, **request: Any
    ) -> JobOutput:
        """Put a question into the queue.

        Args:
            question: its text, or a whole request.
            key: an idempotency key: the same key and request give the same job.
            request: further fields of the request, such as ``form``, ``k`` or ``model``.

        Raises:
            InvalidQuery: the question cannot be asked.
            IdempotencyConflict: the key stands for another request.
        """
        asked_for = {"question": question} if isinstance(question, str) else dict(question)
        reply = await self._wire.request(
            "POST",
            "/v1/jobs",
            repeatable=True,
            json={**asked_for, **request},
            headers=_key(key),
        )
        return read(JobOutput, reply.content)

    async def get(self, job: str) -> JobOutput:
        """A job as it is now.

        Raises:
            JobNotFound: there is none of that id, or its record has expired.
        """
        reply = await self._wire.request("GET", _job(job), repeatable=True)
        return read(JobOutput, reply.content)

    async def jobs(
        self, *, state: JobState | None = None, page: int = 100
    ) -> AsyncIterator[JobSummary]:
        """All jobs, newest first, fetched page by page.

        Args:
            state: only jobs in it; ``FAILED`` is the dead-letter list.
            page: jobs fetched at once.
        """
        query: dict[str, str | int] = {"limit": page}
        if state is not None:
            query["state"] = state.value
        while True:
            reply = await self._wire.request("GET", "/v1/jobs", repeatable=True, params=query)
            found = read(JobPage, reply.content)
            for job in found.jobs:
                yield job
            if found.next is None:
                return
            query["cursor"] = found.next

    async def cancel(self, job: str) -> JobOutput:
        """Cancel a job; once this returns, no further model call of it is admitted.

        Raises:
            JobNotFound: there is none of that id, or its record has expired.
            JobFinished: it is over.
        """
        reply = await self._wire.request("DELETE", _job(job), repeatable=True)
        return read(JobOutput, reply.content)

    async def retry(self, job: str) -> JobOutput:
        """Try a failed, expired or cancelled job again; what it paid for is replayed.

        It is sent once: a second time it would be refused, since the job is under way.

        Raises:
            JobNotFound: there is none of that id, or its record has expired.
            JobNotFailed: it has succeeded, or is under way.
        """
        reply = await self._wire.request("POST", f"{_job(job)}/retry", repeatable=False)
        return read(JobOutput, reply.content)

    async def feedback(self, job: str, *, score: float, comment: str | None = None) -> JobOutput:
        """Say how good a job's answer is; said again, it takes the place of what was said before.

        Args:
            job: its id.
            score: from 0 to 1.
            comment: why, in the user's words.

        Raises:
            InvalidQuery: the score is none, or the comment too long.
            JobNotFound: there is none of that id, or its record has expired.
            JobNotSucceeded: there is no answer to judge.
        """
        said = {"score": score, "comment": comment}
        reply = await self._wire.request(
            "POST", f"{_job(job)}/feedback", repeatable=True, json=said
        )
        return read(JobOutput, reply.content)

    async def events(self, job: str, *, after: str | None = None) -> AsyncGenerator[JobEvent]:
        """Yield past and new events of a job, each once, until it ends.

        An interrupted stream is resumed, as long as each connection brings a new event.

        Args:
            job: its id.
            after: id of the last known event.

        Raises:
            JobNotFound: there is none of that id, or its record has expired.
        """
        failures = 0
        while True:
            headers = {"Accept": "text/event-stream"}
            if after is not None:
                headers["Last-Event-ID"] = after
            failure: Exception | None = None
            try:
                async with self._wire.stream(f"{_job(job)}/events", headers) as reply:
                    if reply.status_code == httpx2.codes.NO_CONTENT:
                        return
                    _expect_events(reply)
                    async with aclosing(reply.aiter_bytes()) as pieces:
                        async for sent in parse(pieces):
                            event = read(JobEvent, sent.data)
                            after, failures = event.id, 0
                            yield event
            except _CUT as error:
                failure = error
            # a stream that ended properly is asked once more, which tells whether all has been told
            failures += 1
            if failures > self._wire.attempts:
                raise self._wire.error(failure or EOFError()) from None
            if failure is not None or failures > 1:
                wait = asked(failure) if isinstance(failure, Passing) else None
                await self._wire.pause(failures, wait)

    async def wait(self, job: str) -> JobOutput:
        """A job when it is over; bound the time with :func:`anyio.fail_after`.

        Where its events cannot be had, it is looked at from time to time.

        Raises:
            JobNotFound: there is none of that id, or its record has expired.
        """
        try:
            async with aclosing(self.events(job)) as events:
                async for _ in events:
                    pass
        except (ApiError, StoreUnavailable):
            pass
        pause = _POLL
        while not (found := await self.get(job)).state.over:
            await anyio.sleep(pause)
            pause = min(_POLL_CAP, pause * 1.5)
        return found

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
                **_key(key),
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

    async def batch_rows(self, batch: str, *, page: int = 100) -> AsyncIterator[BatchRow]:
        """All rows of a batch in the order of the input, each as it is when it is fetched.

        Args:
            batch: its id.
            page: rows fetched at once.

        Raises:
            BatchNotFound: there is none of that id, or its record has expired.
        """
        after = -1
        while True:
            reply = await self._wire.request(
                "GET",
                f"{_batch(batch)}/rows",
                repeatable=True,
                params={"after": after, "limit": page},
            )
            found = read(BatchRowPage, reply.content)
            for row in found.rows:
                yield row
            if found.next is None:
                return
            after = found.next


def _whose(tenant: str | None, api_key: str | None) -> dict[str, str]:
    headers = {} if tenant is None else {"X-Posology-Tenant": tenant}
    if api_key is None:
        return headers
    if not (api_key.isascii() and api_key.isprintable()):
        # as a header it could not be sent, and the error of that would show it
        raise KeyRefused(
            "the API key has characters that no key has: write psl_ and what follows it"
        )
    return headers | {"Authorization": f"Bearer {api_key}"}


def _key(key: str | None) -> dict[str, str]:
    return {"Idempotency-Key": uuid.uuid4().hex if key is None else key}


def _job(job: str) -> str:
    return f"/v1/jobs/{quote(job, safe='')}"


def _batch(batch: str) -> str:
    return f"/v1/batches/{quote(batch, safe='')}"


def _expect_events(reply: httpx2.Response) -> None:
    given = reply.headers.get("content-type", "")
    if not given.startswith("text/event-stream"):
        raise ApiError(f"{given or 'nothing'} came instead of events", status=reply.status_code)
