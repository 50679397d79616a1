"""HTTP requests through a vendor's SDK: the base of adapters, and what they check."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Mapping
from itertools import pairwise
from typing import Any, Literal

import anyio
import httpx2

from posology.errors import (
    AuthenticationFailed,
    ConfigurationError,
    MissingKey,
    ProviderError,
    ProviderTimeout,
    ProviderUnreachable,
    UnknownModel,
)
from posology.llm import switch
from posology.llm.pace import allowed, generation
from posology.llm.providers.headers import allowance, retry_after
from posology.llm.providers.places import Allowance
from posology.llm.providers.replies.reader import Reply, ReplyReader
from posology.llm.providers.translation import Vendor
from posology.network.clients import checked_url, http_client
from posology.network.streams import check_quickly
from posology.types import Call, Completion, Finish, Served, Tier, Usage

#: maximum seconds to connect
MAX_CONNECT = 10.0
#: number of reply schemas that an adapter caches; there is one for each set of choices
MAX_SCHEMAS = 256
#: header with our id of an attempt; OpenAI logs it, and others ignore it
ATTEMPT_HEADER = "X-Client-Request-Id"
#: methods of HTTP
Method = Literal["get", "post", "delete"]
#: errors that an HTTP library may raise although its SDK wraps most of them
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


class SdkAdapter(ReplyReader):
    """The base of adapters over a vendor's SDK: sends requests, and raises only :mod:`posology.errors`.

    Args:
        vendor: names, addresses and errors of the SDK.
        client: the SDK's class of clients.
        api_key: the account's key; may be empty if the vendor has credentials of another kind.
        base_url: ``None``: the vendor's own.
        timeout: seconds of silence, before and within a streamed reply; of any other request, seconds as a whole.
        min_tokens_per_second: floor, see :func:`~posology.llm.pace.generation`.
        http: an HTTP client of the caller's, which the caller closes; ``None``: one of the adapter's own.
        options: more options of the SDK's client.

    Raises:
        MissingKey: ``api_key`` is empty, and the vendor takes nothing else.
        ConfigurationError: the key or the base URL is malformed, or a variable for a proxy or for certificates.
    """

    def __init__(
        self,
        vendor: Vendor,
        client: Callable[..., Any],
        *,
        api_key: str | None,
        base_url: str | None,
        timeout: float,
        min_tokens_per_second: float | None,
        http: httpx2.AsyncClient | None,
        **options: Any,
    ) -> None:
        keyless = vendor.other_credentials and not (api_key or "").strip()
        super().__init__(
            vendor,
            ""
            if keyless
            else checked_key(api_key, variable=vendor.key_variable, provider=vendor.provider),
        )
        self._base_url = checked_url(base_url or vendor.base_url, variable=vendor.url_variable)
        #: see :class:`~posology.llm.providers.table.Stating`
        self.heard: Callable[[Allowance], None] | None = None
        self._timeout = timeout
        self._floor = min_tokens_per_second
        self._owned = _pool(self._base_url, timeout=timeout) if http is None else None
        self._sdk = client(
            **({} if keyless else {"api_key": self._key}),
            base_url=self._base_url,
            timeout=timeouts(timeout),
            max_retries=0,
            http_client=http or self._owned,
            **options,
        )
        # the SDK fills it from the environment, which only our settings may read; there is no public
        # way, and a test watches it
        self._sdk._custom_headers = {}  # noqa: SLF001

    async def aclose(self) -> None:
        """Close the connections, unless they are the caller's."""
        if self._owned is not None:
            await self._owned.aclose()

    @property
    def provider(self) -> str:
        """Name of the provider."""
        return self._vendor.provider

    def _name(self, model: str) -> str:
        """Return the model's name as the provider knows it.

        Raises:
            UnknownModel: the model is of another provider.
        """
        provider, _, name = model.strip().partition(":")
        if provider != self._vendor.provider or not name:
            raise UnknownModel(
                f"{model!r} was sent to the {self._vendor.provider} adapter", model=model
            )
        return name

    async def _send(
        self, call: Call, path: str, body: Mapping[str, Any], attempt_id: str | None
    ) -> Reply:
        """Send one call and read the body of its reply.

        The request does not go through the SDK's methods for messages: they walk every message and schema, and
        Anthropic's has no temperature any more and insists on streaming when the time-out is long. The time limit
        is on the whole request: an HTTP library's time-outs start anew with every byte, so a slow server could
        block a caller for ever.

        Raises:
            ProviderError: in its kinds; without a cause, since the vendors' errors contain the
                request, and with it the key.
            ConfigurationError: the request may not leave this machine.
        """
        return await self.request(
            "post",
            path,
            model=call.model,
            seconds=allowed(call.tier, self._timeout) + generation(call.max_tokens, self._floor),
            headers=named(attempt_id),
            body=body,
        )

    async def request(self, method: Method, path: str, *, model: str, **content: Any) -> Reply:
        """Make one request and read its body.

        Args:
            method: of HTTP.
            path: below the base URL.
            model: for messages.
            content: ``seconds``, the limit of the whole request, ``headers``, and what the SDK's method takes.

        Raises:
            ProviderError: see :meth:`_send`.
            ConfigurationError: the request may not leave this machine.
        """
        started = time.perf_counter()
        response = await self._respond(method, path, model=model, **content)
        heard = self._heard(response)
        return Reply(
            body=self.body_of(response.content, model=model, request_id=heard["request_id"]),
            latency=time.perf_counter() - started,
            **heard,
        )

    def _heard(self, response: httpx2.Response) -> dict[str, Any]:
        """Return what a response's headers say of its reply, and pass on what they say of the provider's limits."""
        if self.heard is not None and (allowed := allowance(response.headers)) is not None:
            self.heard(allowed)
        return {
            "request_id": response.headers.get(self._vendor.id_header),
            "retry_after": retry_after(response.headers, now=time.time()),
        }

    async def lines(self, path: str, *, model: str) -> AsyncGenerator[bytes]:
        """Read the lines of a file, without their ends, and skip empty ones.

        Only a line feed ends a line: strings in JSON may contain other separators.

        Raises:
            ProviderError: see :meth:`_send`; the last line may be missing, or cut.
            ConfigurationError: the request may not leave this machine.
        """
        response = await self._respond("get", path, model=model, stream=True)
        failure: ProviderError | None = None
        rest = b""
        try:
            async for piece in response.aiter_bytes():
                *whole, rest = (rest + piece).split(b"\n")
                for line in filter(None, whole):
                    yield line
        except (self._vendor.error, *TRANSPORT_ERRORS) as error:
            failure = self._translate(error, model)
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()
        if failure is not None:
            raise failure
        if rest:
            yield rest

    async def _respond(
        self,
        method: Method,
        path: str,
        *,
        model: str,
        seconds: float | None = None,
        headers: Mapping[str, str] | None = None,
        **content: Any,
    ) -> httpx2.Response:
        switch.check(self._base_url)
        timeout = seconds or self._timeout
        expected: tuple[type[Exception], ...] = (self._vendor.error, *TRANSPORT_ERRORS)
        options: dict[str, Any] = {"headers": headers or {}}
        if timeout != self._timeout:
            options["timeout"] = timeouts(timeout)
        failure: ProviderError | None = None
        response: httpx2.Response | None = None
        send = getattr(self._sdk, method)
        with anyio.move_on_after(timeout) as scope:
            try:
                response = await send(path, cast_to=httpx2.Response, options=options, **content)
            except expected as error:
                failure = self._translate(error, model)
            except Exception as error:
                failure = self._no_credentials(error, model)
                if failure is None:
                    raise
        if scope.cancelled_caught:
            failure = self._silence(model, timeout)
        if failure is not None:
            raise failure
        assert response is not None
        return response

    def _silence(self, model: str, seconds: float) -> ProviderTimeout:
        provider = self._vendor.provider
        return ProviderTimeout(
            f"{provider} sent nothing for {model} within {seconds:g} s: for a slow server set "
            "POSOLOGY_MIN_TOKENS_PER_SECOND or a longer POSOLOGY_CALL_TIMEOUT",
            provider=provider,
            model=model,
        )

    def _translate(self, error: Exception, model: str) -> ProviderError:
        # a client of the caller's has proxies of its own
        address = None if self._owned is None else self._base_url
        return self._vendor.translate(error, model, secret=self._key, address=address)

    def _no_credentials(self, error: Exception, model: str) -> ProviderError | None:
        """Return the error of a request that was not sent for want of credentials; ``None``: that was not it.

        The libraries that find credentials raise errors of their own through the SDK, which may quote them.
        """
        vendor = self._vendor
        module = type(error).__module__
        if not vendor.other_credentials or not (
            module.startswith(("botocore.", "google.auth."))
            or (isinstance(error, RuntimeError) and "Could not resolve" in str(error))
        ):
            return None
        known: dict[str, Any] = {
            "provider": vendor.provider,
            "model": model,
            "usage": Usage(),
        }
        name = type(error).__name__
        if getattr(error, "retryable", False):
            return ProviderUnreachable(f"no token for {vendor.provider} now ({name})", **known)
        return AuthenticationFailed(
            f"no credentials for {vendor.provider} ({name}): {vendor.other_credentials}", **known
        )

    def _completion(
        self,
        reply: Reply,
        *,
        model: str,
        text: str,
        usage: Usage | None,
        finish: Finish,
        served: Served,
    ) -> Completion:
        name = reply.body.get("model")
        return Completion(
            text=text,
            usage=usage,
            finish=finish,
            served_model=name if isinstance(name, str) else self._name(model),
            request_id=reply.request_id,
            latency=reply.latency,
            served=served,
        )


def served_tier(tier: Tier, named: object, names: Mapping[str, Served]) -> Served:
    """Return the service tier that a call is billed at.

    Args:
        tier: tier that it was sent in. In a batch, the endpoint decides, whatever the reply names.
        named: the reply's tier; ``None``: without a name, the standard one.
        names: the provider's names of tiers.
    """
    if tier == "batch":
        return "batch"
    if named is None:
        return "standard"
    return names.get(named, "unknown") if isinstance(named, str) else "unknown"


def mark_prefixes(messages: list[dict[str, Any]], call: Call, mark: Mapping[str, Any]) -> None:
    """Divide the first user message of a body where prefixes that are to be cached end, and mark the ends.

    Args:
        messages: of the body.
        call: says where, see :attr:`~posology.types.Call.cached`.
        mark: fields of a content part that ends a prefix.
    """
    if not call.cached:
        return
    message = next(one for one in messages if one["role"] == "user")
    text = message["content"]
    ends = (0, *call.cached)
    parts = [{"type": "text", "text": text[a:b], **mark} for a, b in pairwise(ends)]
    if rest := text[ends[-1] :]:
        parts.append({"type": "text", "text": rest})
    message["content"] = parts


def checked_key(key: str | None, *, variable: str, provider: str) -> str:
    """Return a key without what is copied with it, fit for a header: white space, quotation marks, ``Bearer``.

    Raises:
        MissingKey: the key is empty.
        ConfigurationError: it contains characters that no key has. HTTP libraries would print the
            key in their error.
    """
    stripped = (key or "").strip()
    if len(stripped) > 1 and stripped[0] == stripped[-1] and stripped[0] in "\"'`":
        # Docker's files of variables keep them
        stripped = stripped[1:-1].strip()
    if stripped[:7].lower() == "bearer ":
        stripped = stripped[7:].strip()
    if not stripped:
        raise MissingKey(variable=variable, provider=provider)
    if not (stripped.isascii() and stripped.isprintable()):
        raise ConfigurationError(
            f"{variable} contains characters that no key has: copy the key again"
        )
    return stripped


def named(attempt_id: str | None) -> Mapping[str, str]:
    """Return the headers that name an attempt."""
    return {} if attempt_id is None else {ATTEMPT_HEADER: attempt_id}


def _pool(base_url: str, *, timeout: float) -> httpx2.AsyncClient:
    """Return a connection pool for one provider.

    The number of connections is not bounded here but by the limiter: a pool that queues looks like a slow provider. The
    number of idle connections, which close after a few seconds, is not bounded either: the next burst of calls would
    reopen them.
    """
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    return check_quickly(http_client(base_url, timeout=timeouts(timeout), limits=limits))


def timeouts(timeout: float) -> httpx2.Timeout:
    """Return an HTTP library's timeouts for requests of ``timeout`` seconds as a whole.

    Connecting has a shorter timeout, so that a failed connection, which is never billed, is known as
    one before the whole timeout.
    """
    return httpx2.Timeout(timeout, connect=min(MAX_CONNECT, timeout / 2))
