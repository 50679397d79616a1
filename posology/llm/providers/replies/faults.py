"""A provider's own words on a request that failed: the kind of the failure, and whether it was billed.

Gateways and local servers put errors into replies of status 200, too. Then the error itself has to tell its status: by a
number, by a code, or else by its words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from posology.errors import (
    AuthenticationFailed,
    ContextTooLong,
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

_BY_STATUS: dict[int, type[ProviderError]] = {
    # an error in a good reply, of a kind that it does not tell
    200: UnusableReply,
    401: AuthenticationFailed,
    402: QuotaExhausted,
    403: PermissionRefused,
    404: ModelNotFound,
    405: ModelNotFound,
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
#: Groq, of a reply that is not of the form that was asked for
_UNREADABLE_CODES = ("json_validate_failed", "tool_use_failed")
#: OpenAI, of a request in the tier flex: "429 Resource Unavailable" (developers.openai.com, guides/flex-processing)
_CAPACITY_CODES = ("resource_unavailable",)
_CAPACITY_WORDS = ("resource unavailable", "resource_unavailable")
#: refusals by a filter of content, which some providers bill
_FILTER_CODES = ("content_filter", "content_policy_violation")
#: LM Studio, llama.cpp, FastAPI (vLLM, SGLang), OpenAI, Azure, Express, gateways
_PATH = re.compile(
    r"unexpected endpoint|unknown endpoint|(?:invalid|unrecognized|unknown) (?:request )?url|cannot post"
    r"|no (?:matching )?route|(?:page|file|path|url|endpoint|route|resource) (?:was )?not found|unknownoperation"
    r"|method not allowed|^not found\W*$",
    re.IGNORECASE,
)
#: refusals by a busy server before any work: Anthropic, OpenAI, TGI; llama.cpp; Hugging Face, DeepSeek, gateways
_BUSY = re.compile(
    r"overloaded|\bloading\b.{0,40}\bmodel|\bmodel\b.{0,60}\bloading|too busy|at capacity|no (?:available|healthy) ",
    re.IGNORECASE,
)
_BUSY_CODES = ("overloaded_error", "overloaded", "engine_overloaded", "unavailable_error")
#: Statuses that errors in replies of status 200 have, by a code or by words; the first row that fits holds. Words are only
#: such as servers write of a request that they refused, since a refusal is not charged
_TOLD: Final[tuple[tuple[int, frozenset[str], re.Pattern[str]], ...]] = tuple(
    (status, frozenset(codes), re.compile(words, re.IGNORECASE))
    for status, codes, words in (
        (
            402,
            _QUOTA_CODES,
            "|".join((*_QUOTA_WORDS, "insufficient (?:credit|balance|quota|funds)", "your current quota")),
        ),
        (429, ("resource_exhausted", *_CAPACITY_CODES),
         r"rate.?limit|too many requests|throttl|(?:requests|tokens) per minute"),
        (503, ("unavailable", *_BUSY_CODES), rf"{_BUSY.pattern}|(?:temporarily|service).?unavailable"),
        (404, ("not_found", "not_found_error", "model_not_found"),
         rf"{_PATH.pattern}|\bmodel\b.{{0,100}}\b(?:not found|does not exist)|no endpoints found"),
        (401, ("unauthenticated",), r"\bapi.?key|unauthori[sz]ed|authentication"),
        (403, ("permission_error",), r"permission.?denied|forbidden|access.?denied"),
        (504, (), r"time-?out|timed out|deadline.?exceeded"),
        (400, ("invalid_argument", "validation", "request_too_large", *_LENGTH_CODES, *_FILTER_CODES, *_UNREADABLE_CODES),
         "|".join((*_LENGTH_WORDS, "invalid.?request", "(?:input|request) validation error", "bad.?request"))),
        (500, ("server_error", "internal", "api_error"), r"internal.?(?:server.?)?error|bad.?gateway"),
    )
)  # fmt: skip
#: where errors keep what they say of themselves
_INNER = ("error", "errors", "base_resp", "Output")
_WORDS = ("message", "msg", "detail", "error_message", "errorMessage", "error_msg", "error_description", "status_msg")  # fmt: skip
_CODES = ("code", "error_code", "type", "status", "error_type", "__type")
_NUMBERS = ("code", "status", "status_code", "statusCode", "raw_status_code", "error_code")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """A provider's description of a failed request."""

    #: the provider's message; empty: none
    words: str = ""
    #: codes of the cause: OpenAI's ``code``, Anthropic's ``error_code``, and the ``type`` of both
    codes: tuple[str, ...] = ()
    #: HTTP status that it gives as a number; ``None``: none
    number: int | None = None

    @classmethod
    def of(cls, body: object) -> Fault:
        """Read an error's body, or its ``error`` field."""
        inner = _inner(body)
        if not isinstance(inner, Mapping):
            return cls(words=_words(inner))
        words = _words(inner)
        # OpenRouter's: the words of the provider behind it
        behind = _words(_section(inner, "metadata").get("raw"))
        fine = _section(inner, "details").get("error_code")
        named = [inner.get(_CODES[0]), fine, *(inner.get(key) for key in _CODES[1:])]
        codes = (
            code.rpartition("#")[2] for code in named if isinstance(code, str) and code != "None"
        )
        numbers = (_number(inner.get(key)) for key in _NUMBERS)
        return cls(
            words=f"{words} ({behind})" if words and behind else words or behind,
            codes=tuple(dict.fromkeys(code for code in codes if code and _number(code) is None)),
            number=next((n for n in numbers if n is not None), None),
        )

    @classmethod
    def within(cls, body: Mapping[str, Any], *, answered: bool = False) -> Fault | None:
        """Read the error in the body of a reply of status 200; ``None``: there is none.

        Args:
            body: of the reply. Some gateways send an empty error, or one of code 0, with every reply.
            answered: whether it has an answer as well: then only a field for errors holds one.
        """
        named = any(body.get(key) for key in _INNER)
        fault = cls.of(body)
        fine = fault.number is not None and (fault.number == 0 or 200 <= fault.number < 300)
        if fine or not (named or (fault.words and not answered)):
            return None
        return fault if fault.words or fault.codes or fault.number is not None else None

    @property
    def status(self) -> int:
        """HTTP status that an error in a reply of status 200 has by its own words; 200: it does not tell."""
        if self.number is not None and 400 <= self.number < 600:
            return self.number
        codes = {code.lower() for code in self.codes}
        for status, named, words in _TOLD:
            if codes & named or any(map(words.search, self._said)):
                return status
        return 200

    @property
    def _said(self) -> tuple[str, ...]:
        return (self.words, *self.codes)

    def misses_path(self, status: int) -> bool:
        """Return whether the server has nothing at the path of the request: its base URL is wrong."""
        return status == 405 or (status == 404 and any(map(_PATH.search, self._said)))


def kind_of(status: int, fault: Fault) -> type[ProviderError]:
    """Return the error type of a failed request."""
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
    if any(code in _UNREADABLE_CODES for code in fault.codes) or (
        status >= 500 and any(w in words for w in _UNREADABLE_WORDS)
    ):
        return UnusableReply
    return ProviderOverloaded if status >= 500 else RequestRejected


def billed_nothing(status: int, fault: Fault) -> bool:
    """Whether the provider certainly billed nothing: it refused the request before any work.

    A timeout or a server's error may come after the work, some providers bill a content filter's refusal, and a reply that
    a server cannot read itself was written.

    Args:
        status: of the response; of an error in a reply of status 200, the one that it tells.
        fault: the error.
    """
    if 400 <= status < 500:
        worked = {*_FILTER_CODES, *_UNREADABLE_CODES}
        return status not in (408, 424, 499) and worked.isdisjoint(fault.codes)
    return status >= 500 and (
        any(code in _BUSY_CODES for code in fault.codes) or _BUSY.search(fault.words) is not None
    )


def _inner(body: object) -> object:
    """Return the innermost error of a body, which some servers wrap more than once."""
    while True:
        if isinstance(body, list):
            body = body[0] if body else None
        elif isinstance(body, Mapping):
            held = next((body[key] for key in _INNER if body.get(key)), None)
            if held is None or (
                isinstance(body.get("message"), str) and not isinstance(held, Mapping)
            ):
                return body
            body = held
        else:
            return body


def _words(said: object) -> str:
    if isinstance(said, str):
        return said
    return "; ".join(_parts(said))


def _parts(said: object) -> Iterator[str]:
    """Yield the words of an error that is no text: those of a field, or of each of a list."""
    if isinstance(said, list):
        yield from filter(None, map(_words, said))
    elif isinstance(said, Mapping):
        where = _place(said.get("loc"))
        found = filter(None, (_words(said[key]) for key in _WORDS if said.get(key)))
        yield from (f"{where}{words}" for words in found)


def _place(loc: object) -> str:
    """Return the field of the request that FastAPI finds wrong, as a prefix (vLLM, SGLang, Mistral)."""
    names = loc[1:] if isinstance(loc, list) else ()
    return f"{'.'.join(map(str, names))}: " if names else ""


def _section(body: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = body.get(key)
    return value if isinstance(value, Mapping) else {}


def _number(value: object) -> int | None:
    """Return a code that is a number, or a text of one."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
