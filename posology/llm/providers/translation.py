"""Translation of HTTP and SDK errors to :mod:`posology.errors`, common to all vendors."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from posology.errors import (
    AuthenticationFailed,
    ContextTooLong,
    MalformedReply,
    ModelNotFound,
    NoCapacity,
    PermissionRefused,
    ProviderError,
    ProviderOverloaded,
    ProviderTimeout,
    ProviderUnreachable,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    UnusableReply,
)
from posology.llm.providers.headers import retry_after
from posology.types import Usage

#: maximum characters of a provider's message in ours
MAX_QUOTE = 300
#: minimum length of a key to remove; a shorter one is a placeholder for a server without keys
MIN_SECRET = 8

_BY_STATUS: dict[int, type[ProviderError]] = {
    401: AuthenticationFailed,
    402: QuotaExhausted,
    403: PermissionRefused,
    404: ModelNotFound,
    408: ProviderTimeout,
    # Bedrock's for an error within the model
    424: ProviderOverloaded,
    429: RateLimited,
    # a proxy's status for a connection that closed before the response
    499: ProviderUnreachable,
}
_QUOTA_CODES = (
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_error",
    "contract_spend_limit_reached",
    "enforced_spend_limit_reached",
    "linked_organization_billing_unavailable",
    "linked_organization_spend_limit_reached",
)
_QUOTA_WORDS = ("credit balance is too low",)
#: OpenAI and vLLM; llama.cpp's server
_LENGTH_CODES = ("context_length_exceeded", "exceed_context_size_error")
#: Anthropic; OpenAI and vLLM; llama.cpp; Ollama; LM Studio; Bedrock
_LENGTH_WORDS = (
    "prompt is too long",
    "maximum context length",
    "exceed context limit",
    "exceeds the context window",
    "exceeds the available context size",
    "exceeds the context length",
    "greater than the context length",
    "when context the overflows",
    "input is too long for requested model",
)
#: llama.cpp, of a finished reply that it cannot read itself, such as one with bytes that are no UTF-8. A second attempt
#: at temperature 0 writes the same.
_UNREADABLE_WORDS = ("the model produced output that does not match",)
#: OpenAI, of a request in the tier flex: "429 Resource Unavailable" (developers.openai.com, guides/flex-processing)
_CAPACITY_CODES = ("resource_unavailable",)
_CAPACITY_WORDS = ("resource unavailable", "resource_unavailable")
_ADVICE: dict[type[ProviderError], str] = {
    AuthenticationFailed: "check the API key",
    PermissionRefused: "check the permissions of the API key",
    QuotaExhausted: "add credit to the account",
    ModelNotFound: "check the model's name and the base URL",
    ContextTooLong: "use fewer or shorter passages",
    RateLimited: "wait, or lower POSOLOGY_CONCURRENCY",
    NoCapacity: "try again later, or use the tier flex-then-standard",
    UnusableReply: "the server cannot read what its model wrote; use another model or quantization",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """A provider's description of a failed request."""

    #: the provider's message; empty: none
    words: str
    #: codes of the cause: OpenAI's ``code``, Anthropic's ``error_code``, and the ``type`` of both
    codes: tuple[str, ...]

    @classmethod
    def of(cls, body: object) -> Fault:
        """Read an error's body, or its ``error`` field."""
        inner = body.get("error", body) if isinstance(body, Mapping) else body
        if not isinstance(inner, Mapping):
            return cls(words=inner if isinstance(inner, str) else "", codes=())
        words, more = inner.get("message"), inner.get("details")
        fine = more.get("error_code") if isinstance(more, Mapping) else None
        codes = (inner.get("code"), fine, inner.get("type"))
        return cls(
            words=words if isinstance(words, str) else "",
            codes=tuple(code for code in codes if isinstance(code, str)),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Vendor:
    """A provider as its SDK knows it: names, addresses and classes of errors."""

    provider: str
    #: environment variable of the API key, for messages
    key_variable: str
    #: environment variable of the base URL, for messages
    url_variable: str
    #: the provider's own address
    base_url: str
    #: header that carries the provider's id of a request
    id_header: str
    #: base of the SDK's errors
    error: type[Exception]
    #: base of those that come from the API
    api_error: type[Exception]
    #: base of those for a response with an error status
    status_error: type[Exception]
    #: errors that no call of ours should lead to; by name, since releases of an SDK differ
    by_name: Mapping[str, type[ProviderError]]
    #: how to provide credentials other than a key, as advice; empty: only a key will do
    other_credentials: str = ""

    def translate(self, error: Exception, model: str, *, secret: str) -> ProviderError:
        """Return our error for one of the SDK's, or of its HTTP library's.

        Args:
            error: as it was raised.
            model: ``provider:name``.
            secret: the key, which is removed from the provider's words.
        """
        if isinstance(error, self.status_error):
            failed: Any = error
            return from_response(
                provider=self.provider,
                model=model,
                status=failed.status_code,
                headers=failed.response.headers,
                body=failed.body,
                request_id=failed.request_id,
                secret=secret,
            )
        if isinstance(error, self.error) and not isinstance(error, self.api_error):
            kind = _named(error, self.by_name) or ProviderError
            return kind(
                f"{self.provider} failed for {model} ({type(error).__name__})",
                provider=self.provider,
                model=model,
            )
        return from_transport(error, provider=self.provider, model=model)


def kind_of(status: int, fault: Fault) -> type[ProviderError]:
    """Return the error type of a response with an error status."""
    words = fault.words.lower()
    rejected = 400 <= status < 500
    if rejected and (
        any(code in _QUOTA_CODES for code in fault.codes) or any(w in words for w in _QUOTA_WORDS)
    ):
        return QuotaExhausted
    if status in (400, 413, 422) and (
        any(code in _LENGTH_CODES for code in fault.codes) or any(w in words for w in _LENGTH_WORDS)
    ):
        return ContextTooLong
    if status == 429 and (
        any(code in _CAPACITY_CODES for code in fault.codes)
        or any(w in words for w in _CAPACITY_WORDS)
    ):
        return NoCapacity
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500 and any(w in words for w in _UNREADABLE_WORDS):
        return UnusableReply
    return ProviderOverloaded if status >= 500 else RequestRejected


def billed_nothing(status: int, fault: Fault) -> bool:
    """Whether the provider certainly billed nothing: it rejected the request.

    A timeout or a server error may come after the work, and some providers bill a content filter's
    refusal.
    """
    return (
        400 <= status < 500
        and status not in (408, 424, 499)
        and "content_filter" not in fault.codes
    )


def from_response(
    *,
    provider: str,
    model: str,
    status: int,
    headers: Mapping[str, str],
    body: object,
    request_id: str | None,
    secret: str,
) -> ProviderError:
    """Return the error for a response with an error status.

    ``body`` is decoded JSON, or text. ``secret`` is the key, which is removed from the provider's
    message, since some servers repeat it.
    """
    fault = Fault.of(body)
    kind = kind_of(status, fault)
    said = ": ".join(
        part for part in (", ".join(fault.codes), quote(scrub(fault.words, secret))) if part
    )
    message = f"{provider} answered {status} for {model}" + (f" ({said})" if said else "")
    if kind in _ADVICE:
        message += f": {_ADVICE[kind]}"
    return kind(
        message,
        provider=provider,
        model=model,
        status=status,
        request_id=request_id,
        retry_after=retry_after(headers, now=time.time()),
        usage=Usage() if billed_nothing(status, fault) else None,
    )


def from_transport(error: BaseException, *, provider: str, model: str) -> ProviderError:
    """Return the error for a failed connection, vendors' wrappers included.

    Types are compared by name: both SDKs accept either of two HTTP libraries with the same names.
    """
    names = {kind.__name__ for link in _causes(error) for kind in type(link).__mro__}
    if "UnicodeEncodeError" in names:
        return RequestRejected(
            f"the messages for {model} are not valid Unicode",
            provider=provider,
            model=model,
            usage=Usage(),
        )
    if names & {"DecodingError", "APIResponseValidationError", "JSONDecodeError"}:
        return MalformedReply(
            f"{provider}'s reply for {model} cannot be decoded", provider=provider, model=model
        )
    if names & {"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError"}:
        # nothing was sent, so nothing was billed
        return ProviderUnreachable(
            f"no connection to {provider} for {model}: check the network and the base URL",
            provider=provider,
            model=model,
            usage=Usage(),
        )
    if names & {"TimeoutException", "APITimeoutError", "TimeoutError"}:
        return ProviderTimeout(
            f"{provider} did not answer for {model} in time", provider=provider, model=model
        )
    return ProviderUnreachable(
        f"the connection to {provider} for {model} was cut ({type(error).__name__})",
        provider=provider,
        model=model,
    )


def scrub(words: str, secret: str) -> str:
    """Return words without the key."""
    return words.replace(secret, "***") if len(secret) >= MIN_SECRET else words


def _named(
    error: BaseException, table: Mapping[str, type[ProviderError]]
) -> type[ProviderError] | None:
    """Return a table's entry for an error's class, or for the nearest of its bases."""
    return next((table[k.__name__] for k in type(error).__mro__ if k.__name__ in table), None)


def quote(words: str) -> str:
    """Return a provider's words on one line, of bounded length."""
    line = " ".join(words.split())
    return line if len(line) <= MAX_QUOTE else line[: MAX_QUOTE - 1] + "…"


def _causes(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__
    return chain
