"""Requests to one literature service: paced, repeated after failures that pass, and bounded."""

from __future__ import annotations

import random
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import anyio
import httpx2
from anyio import to_thread
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt

from posology.corpus.live.pace import Pace
from posology.errors import ConfigurationError, FetchFailed
from posology.network.clients import http_client
from posology.network.failures import reason
from posology.version import __version__

T = TypeVar("T")

#: bytes of a reply, unpacked; 200 records of PubMed have a few millions
MAX_BODY = 128 * 1024 * 1024
#: attempts at one request, the first included
ATTEMPTS = 6
#: maximum of the first wait between attempts, and of every one, seconds
_BASE, _CAP = 1.0, 60.0
#: seconds of silence after which a request is given up
_TIMEOUT = 60.0
#: seconds for a whole reply: one that drips is never silent, and keeps the process from others
_WHOLE = 300.0
#: statuses that another attempt may cure
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
#: characters of a service's own words that an error repeats
_SAID = 200
_UNPRINTABLE = re.compile(r"[^\x20-\x7e\xa0-\uffff]+")
_TAG = re.compile(r"<[^<>]*>")


class Unusable(Exception):
    """A reply that cannot be used and may be better the next time: cut short, or an error within a success.

    Args:
        reason: what is wrong with it.
        after: seconds that the service asks to wait; ``None``: it does not say.
    """

    def __init__(self, reason: str, *, after: float | None = None) -> None:
        super().__init__(reason)
        self.after = after


class Wire:
    """Sends requests to the host of one base address and to no other; redirects are refused.

    Parameters travel in the body, so that no key stands in an address, which logs and proxies keep.

    Args:
        service: its name, for errors.
        base_url: its address.
        pace: waits until the next request may be sent.
        fixed: parameters of every request.
        transport: for tests; ``None``: the network.
        sleep: waits between attempts.
        whole: seconds for a whole reply.

    Raises:
        ConfigurationError: the address is not one of HTTP, or a variable for a proxy or for certificates cannot be used.
    """

    def __init__(
        self,
        service: str,
        base_url: str,
        *,
        pace: Pace,
        fixed: Mapping[str, str],
        transport: httpx2.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        whole: float = _WHOLE,
    ) -> None:
        self.service = service
        self.base_url = _checked(service, base_url)
        self._pace = pace
        self._fixed = dict(fixed)
        self._sleep = sleep
        self._whole = whole
        self._http = http_client(
            self.base_url,
            base_url=self.base_url,
            headers={"User-Agent": f"posology/{__version__}"},
            timeout=_TIMEOUT,
            transport=transport,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def post(self, path: str, form: Mapping[str, str], read: Callable[[bytes], T]) -> T:
        """Send a form, and return what is read of the reply; see :meth:`get`."""
        return await self._request(path, read, method="POST", data={**self._fixed, **form})

    async def get(self, path: str, read: Callable[[bytes], T], **form: str) -> T:
        """Return what is read of a reply.

        Args:
            path: below the base address.
            read: reads the body, in a thread; raises :class:`Unusable` if another attempt may bring a better one.
            form: parameters, which stand in the address.

        Raises:
            FetchFailed: no attempt brought a usable reply, or the service refused; ``status`` says how.
        """
        return await self._request(path, read, method="GET", params={**self._fixed, **form})

    async def _request(self, path: str, read: Callable[[bytes], T], **request: Any) -> T:
        retrying = AsyncRetrying(
            stop=stop_after_attempt(ATTEMPTS),
            retry=retry_if_exception_type((Unusable, httpx2.TransportError, httpx2.DecodingError)),
            wait=_wait,
            sleep=self._sleep,
            reraise=True,
        )

        async def attempt() -> T:
            await self._pace()
            body = await self._body(path, **request)
            return await to_thread.run_sync(read, body)

        try:
            found: T = await retrying(attempt)
        except (Unusable, httpx2.HTTPError, httpx2.InvalidURL) as error:
            # no cause: a transport's error holds the request, and that the key
            why = str(error) if isinstance(error, Unusable) else reason(error, self.base_url)
            raise FetchFailed(
                f"{self.service} gave no usable reply in {ATTEMPTS} attempts ({why}): try again later",
                service=self.service,
            ) from None
        return found

    async def _body(self, path: str, **request: Any) -> bytes:
        try:
            with anyio.fail_after(self._whole):
                return await self._received(path, **request)
        except TimeoutError:
            raise FetchFailed(
                f"{self.service} sent no whole reply within {self._whole:g} s: try again later",
                service=self.service,
            ) from None

    async def _received(self, path: str, **request: Any) -> bytes:
        method = request.pop("method")
        async with self._http.stream(method, path, **request) as reply:
            if reply.status_code in _PASSING:
                raise Unusable(f"status {reply.status_code}", after=_after(reply))
            if reply.is_redirect:
                host = urlsplit(reply.headers.get("location", "")).hostname or "another address"
                raise FetchFailed(
                    f"{self.service} redirects to {said(host)}: only the configured address is called",
                    service=self.service,
                    status=reply.status_code,
                )
            body = bytearray()
            async for piece in reply.aiter_bytes():
                body += piece
                if len(body) > MAX_BODY:
                    raise FetchFailed(
                        f"a reply of {self.service} has more than {MAX_BODY:,} bytes: fetch fewer records",
                        service=self.service,
                    )
        if not reply.is_success:
            raise FetchFailed(
                f"{self.service} refused the request ({reply.status_code}): {said(body) or 'no reason given'}",
                service=self.service,
                status=reply.status_code,
            )
        return bytes(body)


def said(words: bytes | bytearray | str) -> str:
    """Return the beginning of a service's words, printable and without tags."""
    begun = words[:2_000]
    text = begun if isinstance(begun, str) else bytes(begun).decode("utf-8", "replace")
    return " ".join(_UNPRINTABLE.sub(" ", _TAG.sub(" ", text)).split())[:_SAID]


def _wait(retry: RetryCallState) -> float:
    """Exponential backoff with full jitter, and at least as long as the service asks for."""
    error = retry.outcome.exception() if retry.outcome else None
    after = error.after if isinstance(error, Unusable) else None
    backoff = random.random() * min(_CAP, _BASE * 2.0 ** (retry.attempt_number - 1))  # noqa: S311 - jitter
    return max(backoff, min(after or 0.0, _CAP))


def _after(reply: httpx2.Response) -> float | None:
    given = reply.headers.get("retry-after", "").strip()
    return float(given) if given.isascii() and given.isdigit() else None


def _checked(service: str, url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = None
    if not usable or parts.username or parts.query or parts.fragment:
        raise ConfigurationError(
            f"the address of {service} must be http(s)://HOST/PATH, without user, query or fragment"
        )
    return url.rstrip("/") + "/"
