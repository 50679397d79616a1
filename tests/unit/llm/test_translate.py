from __future__ import annotations

import importlib
import json
import pickle
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from posology import errors
from posology.llm.providers import anthropic as anthropic_adapter
from posology.llm.providers import openai as openai_adapter
from posology.llm.providers.replies.faults import Fault, kind_of
from posology.llm.providers.translation import MAX_QUOTE
from posology.types import Usage

KEY = "sk-secret-0123456789"
REQUEST = httpx2.Request("POST", "https://example.org", headers={"authorization": f"Bearer {KEY}"})
ADAPTERS: dict[str, Any] = {"openai": openai_adapter.VENDOR, "anthropic": anthropic_adapter.VENDOR}
BASES: dict[str, type[Exception]] = {
    "openai": openai.OpenAIError,
    "anthropic": anthropic.AnthropicError,
}


def subclasses(base: type[Exception]) -> Iterator[type[Exception]]:
    for kind in base.__subclasses__():
        yield kind
        yield from subclasses(kind)


def load_errors(package: ModuleType) -> None:
    """Import the modules of an SDK that define errors, so that `__subclasses__` knows them."""
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if found.name.rsplit(".", 1)[1] in ("_exceptions", "_streaming", "_legacy_response", "lib"):
            importlib.import_module(found.name)


def construct(kind: Any) -> Any:
    status = getattr(kind, "status_code", None)
    if issubclass(kind, openai.APIStatusError | anthropic.APIStatusError):
        response = httpx2.Response(status if isinstance(status, int) else 500, request=REQUEST)
        message = () if kind is openai.OAuthError else ("no",)
        return kind(*message, response=response, body=None)
    if issubclass(kind, openai.APIResponseValidationError | anthropic.APIResponseValidationError):
        return kind(httpx2.Response(200, request=REQUEST), None)
    if issubclass(kind, openai.APITimeoutError | anthropic.APITimeoutError):
        return kind(REQUEST)
    if issubclass(kind, openai.APIConnectionError | anthropic.APIConnectionError):
        return kind(request=REQUEST)
    if issubclass(kind, openai.APIError | anthropic.APIError):
        return kind("no", REQUEST, body=None)
    error = kind.__new__(kind)
    Exception.__init__(error, "no")
    return error


EXPECTED: dict[str, type[errors.ProviderError]] = {
    "AnthropicError": errors.ProviderError,
    "OpenAIError": errors.ProviderError,
    "APIConnectionError": errors.ProviderUnreachable,
    "APIError": errors.ProviderUnreachable,
    "APIResponseValidationError": errors.MalformedReply,
    "APIStatusError": errors.ProviderOverloaded,
    "APITimeoutError": errors.ProviderTimeout,
    "APIWebhookValidationError": errors.ProviderUnreachable,
    "AuthenticationError": errors.AuthenticationFailed,
    "BadRequestError": errors.RequestRejected,
    "ClientClosedRequestError": errors.ProviderUnreachable,
    "ConflictError": errors.RequestRejected,
    "ContentFilterFinishReasonError": errors.UnusableReply,
    "ContentTooLargeError": errors.RequestRejected,
    "CredentialsError": errors.AuthenticationFailed,
    "GatewayTimeoutError": errors.ProviderOverloaded,
    "HTTPNotImplementedError": errors.ProviderOverloaded,
    "IdentityTokenFileError": errors.AuthenticationFailed,
    "InternalServerError": errors.ProviderOverloaded,
    "LengthFinishReasonError": errors.TruncatedReply,
    "NotFoundError": errors.ModelNotFound,
    "OAuthError": errors.AuthenticationFailed,
    "OverloadedError": errors.ProviderOverloaded,
    "PaymentRequiredError": errors.QuotaExhausted,
    "PermissionDeniedError": errors.PermissionRefused,
    "PreconditionFailedError": errors.RequestRejected,
    "RateLimitError": errors.RateLimited,
    "RequestHeaderFieldsTooLargeError": errors.RequestRejected,
    "RequestTimeoutError": errors.ProviderTimeout,
    "RetryableError": errors.ProviderUnreachable,
    "ServiceUnavailableError": errors.ProviderOverloaded,
    "_AmbiguousModuleClientUsageError": errors.ProviderError,
    "StreamAlreadyConsumed": errors.ProviderError,
    "SubjectTokenProviderError": errors.AuthenticationFailed,
    "UnprocessableEntityError": errors.RequestRejected,
    "WebSocketConnectionClosedError": errors.ProviderUnreachable,
    "WebSocketQueueFullError": errors.ProviderUnreachable,
}


GENERIC = ("AnthropicError", "OpenAIError", "APIError", "APIStatusError")


@pytest.mark.parametrize("sdk", [openai, anthropic])
def test_every_error_class_of_an_sdk_has_its_own_translation(sdk: ModuleType) -> None:
    load_errors(sdk)
    name = sdk.__name__
    kinds = set(subclasses(BASES[name]))
    exported = {
        kind
        for kind in list(vars(sdk).values())
        if isinstance(kind, type) and issubclass(kind, BASES[name]) and kind is not BASES[name]
    }
    assert len(exported) > 12
    assert exported <= kinds
    for kind in kinds:
        nearest = next(k.__name__ for k in kind.__mro__ if k.__name__ in EXPECTED)
        # single endpoints' errors are told by the status's error that they derive from, and
        # ``lib`` is clients and tools that we do not use
        known = nearest == kind.__name__ or nearest not in GENERIC or ".lib." in kind.__module__
        assert known, f"{name} has a new error: {kind}"
        found = ADAPTERS[name].translate(construct(kind), f"{name}:m", secret=KEY)
        assert type(found) is EXPECTED[nearest], kind
        assert (found.provider, found.model) == (name, f"{name}:m")


@pytest.mark.parametrize("name", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (302, errors.RequestRejected),
        (418, errors.RequestRejected),
        (500, errors.ProviderOverloaded),
        (529, errors.ProviderOverloaded),
        (599, errors.ProviderOverloaded),
    ],
)
def test_an_unknown_subclass_is_told_by_its_status(
    name: str, status: int, expected: type[errors.ProviderError]
) -> None:
    base: Any = {"openai": openai.APIStatusError, "anthropic": anthropic.APIStatusError}[name]
    kind = type("BrandNewError", (base,), {})
    error = kind("no", response=httpx2.Response(status, request=REQUEST), body=None)
    found = ADAPTERS[name].translate(error, f"{name}:m", secret=KEY)
    assert type(found) is expected
    assert found.status == status


@pytest.mark.parametrize(
    ("error", "expected", "usage"),
    [
        (httpx2.ConnectError("no"), errors.ProviderUnreachable, Usage()),
        (httpx2.ConnectTimeout("no"), errors.ProviderUnreachable, Usage()),
        (httpx2.PoolTimeout("no"), errors.ProviderUnreachable, Usage()),
        (httpx2.ReadTimeout("no"), errors.ProviderTimeout, None),
        (httpx2.WriteTimeout("no"), errors.ProviderTimeout, None),
        (httpx2.ReadError("no"), errors.ProviderUnreachable, None),
        (httpx2.RemoteProtocolError("no"), errors.ProviderUnreachable, None),
        (httpx2.TooManyRedirects("no"), errors.ProviderUnreachable, None),
        (httpx2.DecodingError("no"), errors.MalformedReply, None),
        (json.JSONDecodeError("no", "", 0), errors.MalformedReply, None),
        (ConnectionResetError("no"), errors.ProviderUnreachable, None),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no"), errors.RequestRejected, Usage()),
    ],
)
@pytest.mark.parametrize("name", ["openai", "anthropic"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_what_the_http_library_raises_is_translated_bare_or_wrapped(
    name: str,
    error: Exception,
    expected: type[errors.ProviderError],
    usage: Usage | None,
    wrapped: bool,
) -> None:
    if wrapped:
        connection: Any = {
            "openai": openai.APIConnectionError,
            "anthropic": anthropic.APIConnectionError,
        }[name]
        outer = connection(request=REQUEST)
        outer.__cause__ = error
        error = outer
    found = ADAPTERS[name].translate(error, f"{name}:m", secret=KEY)
    assert type(found) is expected
    assert found.usage == usage


def status_error(name: str, status: int, body: Any, **headers: str) -> errors.ProviderError:
    base: Any = {"openai": openai.APIStatusError, "anthropic": anthropic.APIStatusError}[name]
    response = httpx2.Response(status, request=REQUEST, headers=headers)
    found: errors.ProviderError = ADAPTERS[name].translate(
        base("no", response=response, body=body), f"{name}:m", secret=KEY
    )
    return found


@pytest.mark.parametrize(
    ("name", "status", "error", "expected"),
    [
        ("openai", 429, {"code": "insufficient_quota"}, errors.QuotaExhausted),
        ("openai", 429, {"type": "insufficient_quota", "code": None}, errors.QuotaExhausted),
        ("openai", 429, {"code": "rate_limit_exceeded"}, errors.RateLimited),
        ("openai", 400, {"code": "context_length_exceeded"}, errors.ContextTooLong),
        # Ollama, LM Studio
        (
            "openai",
            400,
            {"message": "the input length exceeds the context length", "type": "api_error"},
            errors.ContextTooLong,
        ),
        (
            "openai",
            400,
            {
                "message": "Trying to keep the first 5120 tokens when context the overflows. However, the model is "
                "loaded with context length of only 4096 tokens"
            },
            errors.ContextTooLong,
        ),
        ("openai", 400, {"code": "invalid_value"}, errors.RequestRejected),
        # llama.cpp's server, of a reply that is no UTF-8
        (
            "openai",
            500,
            {
                "code": 500,
                "type": "server_error",
                "message": "The model produced output that does not match the expected peg-native format",
            },
            errors.UnusableReply,
        ),
        ("openai", 500, {"type": "server_error"}, errors.ProviderOverloaded),
        (
            "anthropic",
            400,
            {"type": "invalid_request_error", "message": "prompt is too long: 210000 > 200000"},
            errors.ContextTooLong,
        ),
        (
            "anthropic",
            400,
            {"type": "invalid_request_error", "message": "Your credit balance is too low to use"},
            errors.QuotaExhausted,
        ),
        ("anthropic", 403, {"type": "billing_error"}, errors.QuotaExhausted),
        (
            "anthropic",
            429,
            {
                "type": "rate_limit_error",
                "details": {"error_code": "contract_spend_limit_reached"},
            },
            errors.QuotaExhausted,
        ),
        ("anthropic", 413, {"type": "request_too_large"}, errors.RequestRejected),
        ("anthropic", 529, {"type": "overloaded_error"}, errors.ProviderOverloaded),
    ],
)
def test_the_body_says_what_the_status_does_not(
    name: str, status: int, error: dict[str, Any], expected: type[errors.ProviderError]
) -> None:
    body = error if name == "openai" else {"type": "error", "error": error}
    assert type(status_error(name, status, body)) is expected


@pytest.mark.parametrize("body", [None, "", "<html>", [], 7, {"error": 7}, {"error": {"code": 7}}])
def test_an_odd_body_is_no_obstacle(body: object) -> None:
    assert kind_of(503, Fault.of(body)) is errors.ProviderOverloaded


def test_the_waiting_time_and_the_request_id_are_kept() -> None:
    found = status_error(
        "openai", 429, {"code": "rate_limit_exceeded"}, **{"retry-after": "3", "x-request-id": "r"}
    )
    assert (found.retry_after, found.request_id, found.status) == (3.0, "r", 429)
    found = status_error("anthropic", 529, None, **{"retry-after-ms": "20", "request-id": "r"})
    assert (found.retry_after, found.request_id, found.status) == (0.02, "r", 529)


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_no_message_repeats_the_key_or_grows_without_bound(name: str) -> None:
    words = f"Incorrect API key provided: {KEY}. " + "x" * (MAX_QUOTE - 40) + KEY + "x" * 1000
    found = status_error(name, 401, {"error": {"message": words}})
    assert "sk-secret" not in str(found)
    assert "sk-secret" not in repr(found.details)
    assert len(str(found)) < MAX_QUOTE + 200


def test_a_translated_error_survives_pickling() -> None:
    found = status_error("openai", 429, {"code": "rate_limit_exceeded"}, **{"retry-after": "3"})
    again = pickle.loads(pickle.dumps(found))
    assert type(again) is type(found)
    assert again.details == found.details
