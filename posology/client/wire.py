"""Requests that are repeated until they are answered."""

from __future__ import annotations

import random
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import httpx2
from pydantic import BaseModel, ValidationError
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

from posology.client.errors import from_response
from posology.client.rows import written
from posology.errors import ApiError, ApiUnreachable, PosologyError
from posology.network.clients import checked_url, http_client
from posology.network.failures import reason
from posology.network.proxies import shown, through

if TYPE_CHECKING:
    from posology.published.affected import AffectedPage
    from posology.published.jobs import BatchPage, BatchRowPage, JobPage

M = TypeVar("M", bound=BaseModel)
#: a page of a list
P = TypeVar("P", "JobPage", "BatchPage", "BatchRowPage", "AffectedPage")

#: statuses that another attempt may cure
_PASSING = frozenset({429, 502, 503, 504})
#: seconds; the first wait is at most this long, each later one at most twice the one before
_BASE = 0.2
#: seconds; no wait is longer, whatever the service asks for
_CAP = 30.0
#: seconds that a first request may take while the service loads its encoder
LOADING = 120.0
#: seconds that a response may take beyond the time for which the service holds it
_MORE = 10.0
#: seconds without a byte after which an event stream is taken for dead; the service sends comments
_SILENCE = 45.0


class Passing(Exception):
    """A response that another attempt may cure."""

    def __init__(self, response: httpx2.Response) -> None:
        super().__init__(str(response.status_code))
        self.response = response


class Wire:
    """Sends requests to one service and lets nothing but :mod:`posology.errors` out.

    Args:
        base_url: the service.
        headers: of every request.
        timeout: seconds of silence that one attempt bears.
        attempts: at one request, the first included.
        transport: for tests; ``None``: the network.
        sleep: waits between attempts.

    Raises:
        ConfigurationError: the address is not one of HTTP, or a variable for a proxy or for certificates cannot be used.
    """

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str],
        timeout: float,
        attempts: int,
        transport: httpx2.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self.base_url = checked_url(base_url, variable="base_url")
        self.attempts = attempts
        self._sleep = sleep
        self._http = http_client(
            self.base_url,
            base_url=self.base_url,
            headers=dict(headers),
            timeout=timeout,
            transport=transport,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def request(
        self, method: str, path: str, *, repeatable: bool, **request: Any
    ) -> httpx2.Response:
        """One request, and its successful response.

        Args:
            method: of HTTP.
            path: below the base URL.
            repeatable: whether it does no more when it is sent twice.
            request: what :meth:`httpx2.AsyncClient.request` takes; ``json`` may hold decimals and any text.

        Raises:
            PosologyError: the error that the service tells of.
            ApiError: the service refused for another reason.
            ApiUnreachable: no response came.
        """
        retrying = AsyncRetrying(
            stop=stop_after_attempt(self.attempts if repeatable else 1),
            retry=retry_if_exception(lambda e: isinstance(e, Passing | httpx2.TransportError)),
            wait=backoff,
            sleep=self._sleep,
            reraise=True,
        )

        if "json" in request:
            request["content"] = written(request.pop("json")).encode()
            request["headers"] = {
                "Content-Type": "application/json",
                **request.get("headers", {}),
            }

        async def attempt() -> httpx2.Response:
            response = await self._http.request(method, path, **request)
            if response.status_code in _PASSING:
                raise Passing(response)
            return response

        try:
            response: httpx2.Response = await retrying(attempt)
        except (Passing, httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise self.error(error) from None
        if not response.is_success:
            raise self._refusal(response)
        return response

    @asynccontextmanager
    async def stream(self, path: str, headers: Mapping[str, str]) -> AsyncIterator[httpx2.Response]:
        """One successful response, to be read as it comes.

        Raises:
            PosologyError: as :meth:`request` does, but of one attempt.
            TransportError: it was cut.
        """
        timeout = httpx2.Timeout(self._http.timeout.connect, read=_SILENCE)
        async with self._http.stream("GET", path, headers=dict(headers), timeout=timeout) as reply:
            if not reply.is_success:
                await reply.aread()
                if reply.status_code in _PASSING:
                    raise Passing(reply)
                raise self._refusal(reply)
            yield reply

    async def pause(self, attempt: int, retry_after: float | None = None) -> None:
        """Wait as long as before another attempt."""
        await self._sleep(delay(attempt, retry_after))

    def error(self, error: Exception) -> PosologyError:
        """Return the error of the last failure. It has no cause: a transport's error holds the request."""
        if isinstance(error, Passing):
            return self._refusal(error.response)
        why = reason(error, self.base_url)
        return ApiUnreachable(
            f"{shown(self.base_url)} does not answer ({why}): see whether it runs"
        )

    def _refusal(self, response: httpx2.Response) -> PosologyError:
        return from_response(
            response.status_code,
            response.content,
            service=shown(self.base_url),
            route=through(self.base_url),
        )


class Base:
    """Holds the connection.

    Args:
        wire: sends requests.
        timeout: seconds of silence that one attempt bears.
    """

    def __init__(self, wire: Wire, timeout: float) -> None:
        self._wire = wire
        self._timeout = timeout

    async def _pages(
        self, path: str, form: type[P], query: dict[str, Any], *, cursor: str = "cursor"
    ) -> AsyncGenerator[P]:
        """Yield the pages of a list, each fetched when it is read."""
        while True:
            reply = await self._wire.request("GET", path, repeatable=True, params=query)
            page = read(form, reply.content)
            yield page
            if page.next is None:
                return
            query = query | {cursor: page.next}

    def _patient(self, wait: float) -> dict[str, Any]:
        """Return the arguments of a request that the service may hold for some seconds."""
        return {"timeout": max(self._timeout, wait + _MORE)} if wait else {}


def new_key(key: str | None) -> dict[str, str]:
    """Return the header of an idempotency key; without a key, of a new one."""
    return {"Idempotency-Key": uuid.uuid4().hex if key is None else key}


def read(model: type[M], content: str | bytes) -> M:
    """Parse a response; unknown fields of a newer service are ignored.

    Raises:
        ApiError: the response does not match.
    """
    try:
        return model.model_validate_json(content, extra="ignore")
    except ValidationError as error:
        raise ApiError(
            f"the response is not a valid {model.__name__} ({error.error_count()} errors): check that the address is "
            "Posology's, and that service and client have the same version",
            status=200,
        ) from None


def delay(attempt: int, retry_after: float | None) -> float:
    """Seconds after a failed attempt, counted from 1; never less than the service asks for."""
    backoff = random.random() * min(_CAP, _BASE * 2.0 ** min(attempt - 1, 60))  # noqa: S311
    return min(_CAP, max(backoff, retry_after or 0.0))


def backoff(state: RetryCallState) -> float:
    """The wait after an attempt, for tenacity."""
    error = state.outcome.exception() if state.outcome else None
    return delay(state.attempt_number, asked(error) if isinstance(error, Passing) else None)


def asked(passing: Passing) -> float | None:
    """Seconds that the service asked to wait."""
    value = passing.response.headers.get("retry-after", "")
    return float(value) if value.isdecimal() else None
