"""One HTTP request, and what both providers' adapters do around it."""

from __future__ import annotations

import functools
import json
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2

from posology.errors import (
    ConfigurationError,
    MalformedReply,
    MissingKey,
    ProviderError,
    ProviderTimeout,
    UnknownModel,
)
from posology.llm import series, switch
from posology.types import Usage

#: seconds for a connection, at most
MAX_CONNECT = 10.0
#: reply forms whose JSON schema an adapter keeps; there is one for each set of choices
MAX_SCHEMAS = 256
#: tokens; no call comes near it, and a figure beyond it would empty a budget by mistake
MAX_COUNT = 10**9
#: carries the id that we chose for an attempt; OpenAI logs it, and others pass over it
ATTEMPT_HEADER = "X-Client-Request-Id"
#: what an HTTP library may raise although its SDK wraps most of it
TRANSPORT_ERRORS: tuple[type[Exception], ...] = (
    httpx2.HTTPError,
    httpx2.InvalidURL,
    httpx2.StreamError,
    anyio.EndOfStream,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    OSError,
    ValueError,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """A successful response whose body is a JSON object; nothing else of it is believed yet."""

    body: Mapping[str, Any]
    request_id: str | None
    #: seconds from sending to the last byte
    latency: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Wire:
    """Sends requests to one provider and lets nothing but :mod:`posology.errors` out."""

    provider: str
    base_url: str
    #: seconds for one request as a whole
    timeout: float
    #: the header that carries the provider's id of a request
    id_header: str
    #: the base of the SDK's own errors
    vendor_errors: tuple[type[Exception], ...]
    #: from one of these, or of :data:`TRANSPORT_ERRORS`, and the model's name
    translate: Callable[[Exception, str], ProviderError]

    def name(self, model: str) -> str:
        """The model's name as the provider knows it.

        Raises:
            UnknownModel: the name is of another provider.
        """
        provider, _, name = model.strip().partition(":")
        if provider != self.provider or not name:
            raise UnknownModel(f"{model!r} was sent to the {self.provider} adapter", model=model)
        return name

    async def send(self, model: str, request: Callable[[], Awaitable[httpx2.Response]]) -> Reply:
        """Make one request and read its body.

        The time limit is on the whole: an HTTP library's own time-outs start again with every
        byte, so that a trickling server could hold a caller for ever.

        Raises:
            ProviderError: in its kinds; without a cause, since the vendors' errors hold the
                request, and with it the key.
            ConfigurationError: the request may not leave this machine.
        """
        switch.check(self.base_url)
        expected: tuple[type[Exception], ...] = (*self.vendor_errors, *TRANSPORT_ERRORS)
        failure: ProviderError | None = None
        response: httpx2.Response | None = None
        started = time.perf_counter()
        with anyio.move_on_after(self.timeout) as scope:
            try:
                response = await request()
            except expected as error:
                failure = self.translate(error, model)
        if scope.cancelled_caught:
            failure = ProviderTimeout(
                f"{self.provider} did not answer for {model} within {self.timeout:g} s",
                provider=self.provider,
                model=model,
            )
        if failure is not None:
            raise failure
        assert response is not None
        request_id: str | None = response.headers.get(self.id_header)
        return Reply(
            body=self._json(response, model, request_id),
            request_id=request_id,
            latency=time.perf_counter() - started,
        )

    def malformed(
        self, reason: str, *, model: str, request_id: str | None, usage: Usage | None = None
    ) -> MalformedReply:
        """The error for a reply that is not of the provider's own format."""
        return MalformedReply(
            f"{self.provider}'s reply for {model} cannot be used: {reason}",
            provider=self.provider,
            model=model,
            status=200,
            request_id=request_id,
            usage=usage,
        )

    def _json(self, response: Any, model: str, request_id: str | None) -> Mapping[str, Any]:
        try:
            body = json.loads(response.content)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise self.malformed(
                "its body is not a JSON object", model=model, request_id=request_id
            )
        return body


def checked_key(key: str | None, *, variable: str) -> str:
    """A key that can stand in a header.

    Raises:
        MissingKey: there is none.
        ConfigurationError: it holds characters that no key has. HTTP libraries would complain
            about those with the key in their message.
    """
    stripped = (key or "").strip()
    if not stripped:
        raise MissingKey(variable=variable)
    if not (stripped.isascii() and stripped.isprintable()):
        raise ConfigurationError(f"{variable} holds characters that no key has: copy it again")
    return stripped


def attempt_headers() -> dict[str, str] | None:
    """Headers by which an attempt can be found at the provider although its reply was lost."""
    chosen = series.attempt_id()
    return None if chosen is None else {ATTEMPT_HEADER: chosen}


def timeouts(timeout: float) -> httpx2.Timeout:
    """An HTTP library's time-outs for requests of ``timeout`` seconds as a whole.

    A connection has less than the whole: that it was never made is then known before time is over,
    and with it that nothing was billed.
    """
    return httpx2.Timeout(timeout, connect=min(MAX_CONNECT, timeout / 2))


@functools.cache
def _certificates(*, trust_env: bool) -> ssl.SSLContext:
    """Reading the certificates takes 40 ms, and they are the same for every provider."""
    return httpx2.create_ssl_context(trust_env=trust_env)


def http_client(base_url: str, *, timeout: float) -> httpx2.AsyncClient:
    """A connection pool for one provider.

    Redirects are not followed: they would carry the question, and a wrong base URL is better told.
    Proxies and certificates of the surroundings apply, but not to this machine. The number of
    connections is not bounded here: the limiter owns that, and a pool that queues looks like a
    slow provider. Nor is the number of idle ones, which end after a few seconds: with a bound, a wave
    of calls would close what the next wave has to open again.
    """
    trust_env = not switch.is_loopback(base_url)
    return httpx2.AsyncClient(
        timeout=timeouts(timeout),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
        follow_redirects=False,
        verify=_certificates(trust_env=trust_env),
        trust_env=trust_env,
    )


def checked_url(base_url: str, *, variable: str) -> str:
    """A base URL without a slash at its end.

    Raises:
        ConfigurationError: it is none for HTTP. The message leaves it out: it may hold a password.
    """
    try:
        parts = urlsplit(base_url)
        # reading the port checks it
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        httpx2.URL(base_url)
    except (ValueError, httpx2.InvalidURL):
        usable = False
    if not usable:
        raise ConfigurationError(
            f"{variable} holds no base URL: it starts with http:// or https:// and names a host, "
            "and a port only as a number"
        )
    return base_url.rstrip("/")


def count(value: object) -> int | None:
    """A token count, or ``None`` where the value is none, or is more than any call can have."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT:
        return value
    return None


def section(body: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object under a key; empty where there is none."""
    value = body.get(key)
    return value if isinstance(value, dict) else {}
