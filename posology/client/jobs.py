"""Jobs of a service."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import anyio
import httpx2

from posology.client.errors import from_body
from posology.client.events import TooLong, parse
from posology.client.wire import Base, Passing, asked, new_key, read
from posology.errors import ApiError, JobCancelled, StoreUnavailable
from posology.published.answers import AskOutput
from posology.published.jobs import JobEvent, JobOutput, JobPage, JobSummary
from posology.published.watches.forms import WatchList, WatchOutput, WatchSummary
from posology.types import JobState

#: seconds between looks at a job that cannot be watched: the first and the longest
_POLL, _POLL_CAP = 0.25, 5.0
#: seconds for which the service holds a request that waits for an answer
_WAIT = 30.0
#: what may break a stream of events although the job is well
_CUT = (httpx2.TransportError, httpx2.StreamError, TooLong, Passing)


class Jobs(Base):
    """Submits questions, and watches what becomes of them."""

    async def submit(
        self,
        question: str | Mapping[str, Any],
        *,
        key: str | None = None,
        wait: float = 0.0,
        **request: Any,
    ) -> JobOutput:
        """Put a question into the queue.

        Args:
            question: its text, or a whole request.
            key: an idempotency key: the same key and request give the same job.
            wait: seconds to wait for the end of the job, 0 to 300; the job may still not have ended.
            request: further fields of the request, such as ``form``, ``k`` or ``model``.

        Raises:
            InvalidQuery: the question cannot be asked.
            IdempotencyConflict: the key stands for another request.
        """
        reply = await self._submitted(question, new_key(key), wait, request)
        return read(JobOutput, reply.content)

    async def submit_or_find(
        self,
        question: str | Mapping[str, Any],
        *,
        key: str | None,
        wait: float = 0.0,
        **request: Any,
    ) -> tuple[JobOutput, bool]:
        """Put a question into the queue as :meth:`submit` does; return its job, and whether it is new."""
        named = new_key(key)
        # with a wait, the status says whether the job has ended
        reply = await self._submitted(question, named, 0.0, request)
        created = reply.status_code != HTTPStatus.OK
        if wait and not read(JobOutput, reply.content).state.over:
            reply = await self._submitted(question, named, wait, request)
        return read(JobOutput, reply.content), created

    async def _submitted(
        self,
        question: str | Mapping[str, Any],
        named: Mapping[str, str],
        wait: float,
        request: Mapping[str, Any],
    ) -> httpx2.Response:
        asked_for = {"question": question} if isinstance(question, str) else dict(question)
        return await self._wire.request(
            "POST",
            "/v1/jobs",
            repeatable=True,
            json={**asked_for, **request},
            headers=named,
            **({"params": {"wait": wait}} if wait else {}),
            **self._patient(wait),
        )

    async def ask(
        self, question: str | Mapping[str, Any], *, key: str | None = None, **request: Any
    ) -> AskOutput:
        """Put a question into the queue, wait for the end of its job, and return the answer or refusal.

        It waits until the job's deadline at the latest; bound the time with :func:`anyio.fail_after`.

        Args:
            question: its text, or a whole request.
            key: an idempotency key: the same key and request give the same job.
            request: further fields of the request, such as ``form``, ``k`` or ``model``.

        Raises:
            InvalidQuery: the question cannot be asked.
            JobCancelled: the job was cancelled meanwhile.
            PosologyError: the error of the job, if it failed or expired.
        """
        job = await self.submit(question, key=key, wait=_WAIT, **request)
        if not job.state.over:
            job = await self.wait(job.id)
        if job.result is not None:
            return job.result
        if job.error is not None:
            raise from_body(job.error)
        raise JobCancelled(f"job {job.id} was cancelled", job=job.id)

    async def get(self, job: str) -> JobOutput:
        """A job as it is now.

        Raises:
            JobNotFound: there is none of that id, or its record has expired.
        """
        reply = await self._wire.request("GET", _job(job), repeatable=True)
        return read(JobOutput, reply.content)

    async def jobs(
        self, *, state: JobState | str | None = None, page: int = 100
    ) -> AsyncGenerator[JobSummary]:
        """All jobs, newest first, fetched page by page.

        Args:
            state: only jobs in it, such as ``failed``, the dead-letter list.
            page: jobs fetched at once.

        Raises:
            InvalidQuery: there is no such state, or a page cannot be as long.
        """
        query = {"limit": page} | ({} if state is None else {"state": str(state)})
        async for found in self._pages("/v1/jobs", JobPage, query):
            for job in found.jobs:
                yield job

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


class Watches(Base):
    """Watches questions, which the service asks anew when the index has changed."""

    async def create_watch(
        self, question: str | Mapping[str, Any], *, every: str | int = "week", **request: Any
    ) -> WatchOutput:
        """Watch a question. The same request again makes no second watch.

        Args:
            question: its text, or a whole request.
            every: time from one check to the next: ``hour``, ``day``, ``week``, ``month``, or seconds.
            request: further fields of the request, such as ``form``, ``model`` or ``max_cost_usd``.

        Raises:
            InvalidQuery: the question cannot be asked, or the tenant has 100 watches.
        """
        asked_for = {"question": question} if isinstance(question, str) else dict(question)
        body = {**asked_for, **request, "every": every}
        reply = await self._wire.request("POST", "/v1/watches", repeatable=True, json=body)
        return read(WatchOutput, reply.content)

    async def watch(self, watch: str) -> WatchOutput:
        """Return a watch with its last answer and its changes.

        Raises:
            WatchNotFound: there is none of that id, or its record has expired.
        """
        return await self._watch("GET", watch)

    async def watches(self) -> tuple[WatchSummary, ...]:
        """Return the watches, oldest first."""
        reply = await self._wire.request("GET", "/v1/watches", repeatable=True)
        return read(WatchList, reply.content).watches

    async def pause_watch(self, watch: str) -> WatchOutput:
        """Check a watch no more until it is resumed.

        Raises:
            WatchNotFound: there is none of that id, or its record has expired.
            WatchEnded: it has ended.
        """
        return await self._watch("POST", watch, "/pause")

    async def resume_watch(self, watch: str) -> WatchOutput:
        """Check a paused watch again, at once if a check was missed.

        Raises:
            WatchNotFound: there is none of that id, or its record has expired.
            WatchEnded: it has ended.
        """
        return await self._watch("POST", watch, "/resume")

    async def end_watch(self, watch: str) -> WatchOutput:
        """End a watch; one that has ended stays as it is.

        Raises:
            WatchNotFound: there is none of that id, or its record has expired.
        """
        return await self._watch("DELETE", watch)

    async def _watch(self, method: str, watch: str, part: str = "") -> WatchOutput:
        path = f"/v1/watches/{quote(watch, safe='')}{part}"
        return read(WatchOutput, (await self._wire.request(method, path, repeatable=True)).content)


def _job(job: str) -> str:
    return f"/v1/jobs/{quote(job, safe='')}"


def _expect_events(reply: httpx2.Response) -> None:
    given = reply.headers.get("content-type", "")
    if not given.startswith("text/event-stream"):
        raise ApiError(
            f"expected events, got {given or 'no Content-Type'}: check that the address is Posology's",
            status=reply.status_code,
        )
