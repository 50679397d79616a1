"""Errors by the provider's words: their kind, and whether they are charged. The rule is written once, as it is tabled here."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology import errors
from posology.llm.providers.replies.faults import Fault, billed_nothing, kind_of

#: status of a response, its error, and whether nothing was billed for certain
BILLED = [
    # refused before any work
    (400, {}, True),
    (401, {}, True),
    (402, {}, True),
    (403, {}, True),
    (404, {}, True),
    (405, {}, True),
    (413, {}, True),
    (422, {}, True),
    (429, {}, True),
    (503, {"message": "Loading model", "type": "unavailable_error"}, True),
    (503, {"message": "Model m is currently loading"}, True),
    (503, {"message": "The engine is currently overloaded, please try again later"}, True),
    (503, {"message": "no healthy upstream"}, True),
    (503, {"message": "There is no available model provider"}, True),
    (529, {"type": "overloaded_error"}, True),
    # the work may have been done
    (408, {}, False),
    (424, {}, False),
    (499, {}, False),
    (500, {}, False),
    (500, {"message": "Internal server error"}, False),
    (502, {"message": "Upstream idle timeout"}, False),
    (503, {}, False),
    (503, {"message": "upstream connect error or disconnect/reset before headers"}, False),
    (504, {"message": "timed out"}, False),
    (529, {}, False),
    # it was done
    (400, {"code": "content_filter"}, False),
    (400, {"code": "json_validate_failed"}, False),
    (500, {"message": "The model produced output that does not match the format"}, False),
    # an error of a good reply that tells no status
    (200, {"message": "something went wrong"}, False),
]


@pytest.mark.parametrize(("status", "error", "nothing"), BILLED)
def test_only_what_was_refused_before_any_work_is_not_charged(
    status: int, error: dict[str, Any], nothing: bool
) -> None:
    assert billed_nothing(status, Fault.of({"error": error})) is nothing


#: body of a reply of status 200, the status that its error has, the kind, and whether nothing was billed for certain
WITHIN: list[tuple[Any, int, type[errors.ProviderError], bool]] = [
    ({"error": {"code": 429, "message": "x"}}, 429, errors.RateLimited, True),
    ({"error": {"code": "429", "message": "x"}}, 429, errors.RateLimited, True),
    ({"error": {"message": "upstream rate limit exceeded"}}, 429, errors.RateLimited, True),
    ({"error": "Too Many Requests"}, 429, errors.RateLimited, True),
    ({"error": {"type": "rate_limit_error"}}, 429, errors.RateLimited, True),
    ({"message": "Too many tokens", "__type": "a#ThrottlingException"}, 429, errors.RateLimited, True),
    ({"base_resp": {"status_code": 1002, "status_msg": "rate limit"}}, 429, errors.RateLimited, True),
    ({"error": {"code": 429, "type": "insufficient_quota"}}, 429, errors.QuotaExhausted, True),
    ({"error": "You exceeded your current quota"}, 402, errors.QuotaExhausted, True),
    ({"error": {"code": 502, "message": "Bad gateway"}}, 502, errors.ProviderOverloaded, False),
    ({"error": {"message": "Upstream idle timeout"}}, 504, errors.ProviderOverloaded, False),
    ({"error": {"code": 503, "message": "x"}}, 503, errors.ProviderOverloaded, False),
    ({"error": "Model is overloaded", "error_type": "overloaded"}, 503, errors.ProviderOverloaded, True),
    ({"error": {"message": "Loading model"}}, 503, errors.ProviderOverloaded, True),
    ({"error": {"code": 408, "message": "x"}}, 408, errors.ProviderTimeout, False),
    ({"error": {"message": "Internal Server Error"}}, 500, errors.ProviderOverloaded, False),
    ({"error": "Unexpected endpoint or method. (POST /x)"}, 404, errors.ModelNotFound, True),
    ({"detail": "Not Found"}, 404, errors.ModelNotFound, True),
    ({"message": "Cannot POST /chat/completions", "error": "Not Found"}, 404, errors.ModelNotFound, True),
    ({"statusCode": 404, "message": "Resource not found"}, 404, errors.ModelNotFound, True),
    ({"detail": "Method Not Allowed"}, 404, errors.ModelNotFound, True),
    ({"error": {"message": "The model `m` does not exist"}}, 404, errors.ModelNotFound, True),
    ({"error": {"message": "Invalid API key"}}, 401, errors.AuthenticationFailed, True),
    ({"error": {"status": "PERMISSION_DENIED", "message": "x"}}, 403, errors.PermissionRefused, True),
    ({"error": {"type": "invalid_request_error", "message": "x"}}, 400, errors.RequestRejected, True),
    ({"error": {"message": "maximum context length is 9 tokens"}}, 400, errors.ContextTooLong, True),
    ({"error": {"type": "request_too_large", "message": "x"}}, 400, errors.RequestRejected, True),
    ({"error": {"type": "timeout_error", "message": "x"}}, 504, errors.ProviderOverloaded, False),
    ({"error": {"type": "authentication_error", "message": "x"}}, 401, errors.AuthenticationFailed, True),
    ({"error": {"type": "billing_error", "message": "x"}}, 402, errors.QuotaExhausted, True),
    ({"code": 500, "msg": "x", "data": None}, 500, errors.ProviderOverloaded, False),
    ({"errorMessage": "x", "errorType": "y"}, 200, errors.UnusableReply, False),
    ({"error": {"code": "content_filter", "message": "x"}}, 400, errors.RequestRejected, False),
    ({"error": {"code": "json_validate_failed", "message": "x"}}, 400, errors.UnusableReply, False),
    ({"errors": [{"code": 7003, "message": "Could not route"}]}, 200, errors.UnusableReply, False),
    ({"error": {"message": "something went wrong"}}, 200, errors.UnusableReply, False),
    ({"error": {"error": {"message": "tool not found in the model's output"}}}, 200, errors.UnusableReply, False),
    ([{"error": {"code": 429, "message": "x"}}], 429, errors.RateLimited, True),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status", "kind", "nothing"), WITHIN)
def test_an_error_in_a_good_reply_is_of_the_kind_that_it_tells(
    body: Any, status: int, kind: type[errors.ProviderError], nothing: bool
) -> None:
    fault = Fault.of(body)
    assert fault.status == status
    assert kind_of(status, fault) is kind
    assert billed_nothing(status, fault) is nothing
    assert fault.words or fault.codes
    if isinstance(body, dict):
        assert Fault.within(body) == fault


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"choices": []},
        {"error": None},
        {"error": ""},
        {"error": {}},
        {"error": {"message": "", "code": None}},
        {"error": {"code": 0, "message": "ok"}},
        {"error": {"code": "200", "message": "success"}},
        {"code": 0, "message": "success", "data": {}},
        {"base_resp": {"status_code": 0, "status_msg": "success"}},
        {"object": "response", "status": "completed", "error": None},
        {"model": "m", "message": {"role": "assistant", "content": "yes"}, "done": True},
    ],
)
def test_a_reply_without_an_error_holds_none(body: dict[str, Any]) -> None:
    assert Fault.within(body) is None


def test_beside_an_answer_only_a_field_for_errors_holds_one() -> None:
    assert Fault.within({"message": "thank you"}, answered=True) is None
    assert Fault.within({"message": "thank you", "error": "no"}, answered=True) is not None


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "Provider returned error", "metadata": {"raw": "no"}}}, "Provider returned error (no)"),
        ({"error": {"metadata": {"raw": "no"}}}, "no"),
        ({"detail": [{"loc": ["body"], "msg": "one"}, {"msg": "two"}]}, "one; two"),
        ({"message": {"detail": [{"msg": "one"}]}}, "one"),
        ({"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs"}]}, "stream_options: Extra inputs"),
        ({"detail": [{"loc": ["body", "messages", 0], "msg": "one"}, {"msg": "two"}]}, "messages.0: one; two"),
        ({"error": {"message": "outer", "errors": [{"message": "inner"}]}}, "outer"),
        ({"error": {"message": "inner"}, "message": "outer"}, "inner"),
    ],
)  # fmt: skip
def test_the_words_are_kept(body: Any, words: str) -> None:
    assert Fault.of(body).words == words


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "error",
                    "errors",
                    "message",
                    "code",
                    "type",
                    "status",
                    "detail",
                    "metadata",
                    "raw",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
)


@given(json_values, st.integers(100, 599))
def test_no_body_is_an_obstacle(body: Any, status: int) -> None:
    fault = Fault.of(body)
    assert 200 <= fault.status < 600
    assert issubclass(kind_of(status, fault), errors.ProviderError)
    billed_nothing(status, fault)
    if isinstance(body, dict):
        Fault.within(body)
