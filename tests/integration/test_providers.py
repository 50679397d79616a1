"""Both SDKs through the whole stack, over real sockets."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any, Literal

import anyio
import httpx2
import pytest
from pydantic import BaseModel

from posology import errors
from posology.budget.prices.book import packaged
from posology.llm.accounting import Account
from posology.llm.providers.anthropic import AnthropicAdapter
from posology.llm.providers.openai import OpenAIAdapter
from posology.llm.providers.places import Places
from posology.llm.providers.table import PROVIDERS, ProviderOptions
from posology.llm.retry import RetryPolicy
from posology.llm.stack import build
from posology.testing import (
    Cut,
    Malformed,
    NoSuchModel,
    Reply,
    Status,
    Step,
    StubProvider,
    by_bytes,
)
from posology.types import Call, Finish, Message, Outcome, Role, Usage
from tests.support.calls import ASKED, call_to
from tests.support.private_parts import HEADERS
from tests.support.rigs import Rig, rigs

pytestmark = pytest.mark.anyio

KEY = "sk-secret-0123456789"
USAGE = Usage(input=800, cache_read=200, output=60, reasoning=40)
#: at least as many bytes as USAGE has input tokens: a usage above its bound leaves no money for a repair
PASSAGES = "Aspirin lowered the risk of stroke in adults.\n" * 22
QUICK = RetryPolicy(attempts=3, base=0.01, cap=0.02, deadline=10.0)
MODELS = {"openai": "openai:gpt-4o-mini", "anthropic": "anthropic:claude-haiku-4-5"}
Adapter = OpenAIAdapter | AnthropicAdapter


class Verdict(BaseModel):
    verdict: Literal["yes", "no"]


def a_call(provider: str) -> Call:
    system = "Answer from the passages."
    return call_to(MODELS[provider], f"{PASSAGES}{ASKED}", system=system, max_tokens=321)


@pytest.fixture(params=["openai", "anthropic"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def adapter_to(provider: str, stub: StubProvider, **options: Any) -> Adapter:
    if provider == "openai":
        return OpenAIAdapter(api_key=KEY, base_url=stub.openai_url, **options)
    return AnthropicAdapter(api_key=KEY, base_url=stub.anthropic_url, **options)


def connect(provider: str, options: ProviderOptions) -> None:
    row = PROVIDERS[provider]
    assert row.connect is not None
    row.connect(options)


MakeRig = Callable[..., Rig]


@pytest.fixture
async def rig(provider: str) -> AsyncIterator[MakeRig]:
    async with rigs() as made:

        def make(script: Any, *, policy: RetryPolicy = QUICK, **options: Any) -> Rig:
            to = partial(adapter_to, provider, **{"timeout": 60.0, **options})
            return made(to, script, retry=policy, limit=Places(8))

        yield make


@pytest.fixture
def call(provider: str) -> Call:
    return a_call(provider)


async def test_a_success(rig: MakeRig, call: Call, provider: str) -> None:
    made = rig([Reply(text="Yes.", usage=USAGE)])
    completion = await made.complete(call)
    assert completion.text == "Yes."
    assert completion.usage == USAGE
    assert completion.finish is Finish.STOP
    assert completion.request_id == "req_1"
    assert completion.served_model == call.model.partition(":")[2]
    (attempt,) = made.account.attempts
    assert (attempt.call, attempt.attempt, attempt.outcome) == (1, 1, Outcome.OK)
    assert (attempt.usage, attempt.request_id) == (USAGE, "req_1")
    expected = {"openai": "0.000195", "anthropic": "0.00132"}[provider]
    assert made.account.cost == Decimal(expected)


async def test_what_is_sent(rig: MakeRig, call: Call, provider: str) -> None:
    made = rig([Reply(text='{"verdict": "yes"}'), Reply(text="yes")])
    await made.complete(replace(call, schema=Verdict, temperature=0.5))
    await made.complete(call)
    first, second = made.stub.requests
    assert first.headers["authorization"] == f"Bearer {KEY}"
    user = {"role": "user", "content": f"{PASSAGES}Does aspirin prevent stroke?"}
    if provider == "openai":
        assert first.path == "/v1/chat/completions"
        system = {"role": "system", "content": "Answer from the passages."}
        wanted = first.json.pop("response_format")
        assert wanted["type"] == "json_schema"
        assert wanted["json_schema"]["strict"] is True
        assert wanted["json_schema"]["name"] == "Verdict"
        schema = wanted["json_schema"]["schema"]
        expected = {
            "model": "gpt-4o-mini",
            "messages": [system, user],
            "max_completion_tokens": 321,
            "service_tier": "default",
            "stream_options": {"include_usage": True},
            # of a server on this machine
            "return_progress": True,
        }
    else:
        assert first.path == "/v1/messages"
        wanted = first.json.pop("output_config")["format"]
        assert wanted["type"] == "json_schema"
        schema = wanted["schema"]
        expected = {
            "model": "claude-haiku-4-5",
            "system": "Answer from the passages.",
            "messages": [user],
            "max_tokens": 321,
            "service_tier": "standard_only",
        }
    assert schema["required"] == ["verdict"]
    assert schema["additionalProperties"] is False
    assert first.json == {**expected, "temperature": 0.5, "stream": True}
    # one model takes a temperature, and 0 repeats best
    assert second.json == {**expected, "temperature": 0, "stream": True}


async def test_an_attempt_goes_out_under_the_id_that_was_chosen_for_it(
    rig: MakeRig, call: Call, provider: str
) -> None:
    made = rig([Reply(text="yes")] * 5)

    async def attempt(chosen: str) -> None:
        await made.adapter(call, attempt_id=chosen)
        # the next attempt at the same call has an id of its own
        await made.adapter(call, attempt_id=chosen + "-again")

    async with anyio.create_task_group() as group:
        group.start_soon(attempt, "one")
        group.start_soon(attempt, "two")
    await made.adapter(call)
    sent = [r.headers.get("x-client-request-id") for r in made.stub.requests]
    assert sorted(sent[:4], key=str) == ["one", "one-again", "two", "two-again"]
    assert sent[4] is None


async def test_options_for_servers_that_know_less(rig: MakeRig, call: Call, provider: str) -> None:
    options = {"legacy_max_tokens": True} if provider == "openai" else {}
    made = rig([Reply(text='{"verdict": "yes"}')], native_schema=False, **options)
    completion = await made.complete(replace(call, schema=Verdict))
    assert completion.parsed == Verdict(verdict="yes")
    (request,) = made.stub.requests
    assert request.json["max_tokens"] == 321
    assert not {"response_format", "output_config", "max_completion_tokens"} & set(request.json)


async def test_a_rate_limit_is_waited_for(rig: MakeRig, call: Call) -> None:
    made = rig([Status(code=429, headers={"retry-after": "0.2"}), Reply(text="yes", usage=USAGE)])
    started = time.perf_counter()
    completion = await made.complete(call)
    assert time.perf_counter() - started >= 0.2
    assert completion.text == "yes"
    assert made.outcomes == [
        (1, 1, Outcome.FAILED, "RateLimited"),
        (1, 2, Outcome.OK, None),
    ]
    # what was turned away is known to have cost nothing
    assert made.account.attempts[0].cost == Decimal(0)
    assert made.account.cost is not None


@pytest.mark.parametrize(
    ("step", "kind", "outcome"),
    [
        (Status(code=500), errors.ProviderOverloaded, Outcome.FAILED),
        (Status(code=503, body=b"<html>gateway</html>"), errors.ProviderOverloaded, Outcome.FAILED),
        (Status(code=529, kind="api_error"), errors.ProviderOverloaded, Outcome.FAILED),
        (Status(code=502, within=True), errors.ProviderOverloaded, Outcome.FAILED),
        (Status(code=408), errors.ProviderTimeout, Outcome.FAILED),
        (Cut(), errors.ProviderUnreachable, Outcome.FAILED),
        (Cut(after_bytes=0), errors.ProviderUnreachable, Outcome.FAILED),
        (Cut(after_bytes=25), errors.ProviderUnreachable, Outcome.FAILED),
        (Malformed(), errors.MalformedReply, Outcome.UNUSABLE),
        (Malformed(content_type="text/html"), errors.MalformedReply, Outcome.UNUSABLE),
        (Malformed(body=b""), errors.MalformedReply, Outcome.UNUSABLE),
        (Malformed(body=b"[]"), errors.MalformedReply, Outcome.UNUSABLE),
        (Malformed(body=b"{}"), errors.MalformedReply, Outcome.UNUSABLE),
        (Malformed(body=b"\xff\xfe{"), errors.MalformedReply, Outcome.UNUSABLE),
        (Malformed(body=b"[" * 100_000), errors.MalformedReply, Outcome.UNUSABLE),
        (
            Malformed(body=b'{"choices": [], "content": null}'),
            errors.MalformedReply,
            Outcome.UNUSABLE,
        ),
        (
            Malformed(body=b'{"choices": [{"message": {"content": [1]}}], "content": [1]}'),
            errors.MalformedReply,
            Outcome.UNUSABLE,
        ),
    ],
)
async def test_what_may_pass_is_tried_again_and_each_attempt_accounted_for(
    step: Step, kind: type[errors.ProviderError], outcome: Outcome, rig: MakeRig, call: Call
) -> None:
    made = rig([step, step, Reply(text="yes", usage=USAGE)])
    assert (await made.complete(call)).text == "yes"
    assert made.outcomes == [
        (1, 1, outcome, kind.__name__),
        (1, 2, outcome, kind.__name__),
        (1, 3, Outcome.OK, None),
    ]
    # the SDK made no request of its own
    assert len(made.stub.requests) == 3
    # the failed ones are not known to be free
    assert made.account.cost is None


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (NoSuchModel(), errors.ModelNotFound),
        (Status(code=401), errors.AuthenticationFailed),
        (
            Status(code=404, within=True, kind="not_found_error", message="Unknown endpoint"),
            errors.ModelNotFound,
        ),
        (
            Status(code=302, headers={"location": "http://127.0.0.1:9/"}, body=b""),
            errors.RequestRejected,
        ),
    ],
)
async def test_what_will_not_pass_is_not_tried_again(
    step: Step, kind: type[errors.ProviderError], rig: MakeRig, call: Call
) -> None:
    made = rig([step] * 2)
    with pytest.raises(errors.ProviderError) as caught:
        await made.complete(call)
    assert type(caught.value) is kind
    assert made.outcomes == [(1, 1, Outcome.FAILED, kind.__name__)]
    assert len(made.stub.requests) == 1


async def test_a_malformed_reply_that_was_billed_is_priced_and_not_asked_for_again(
    rig: MakeRig, call: Call, provider: str
) -> None:
    usage = {
        "openai": {"prompt_tokens": 1000, "completion_tokens": 0},
        "anthropic": {"input_tokens": 1000, "output_tokens": 0},
    }[provider]
    made = rig([Malformed(body=json.dumps({"usage": usage}).encode()), Reply(text="yes")])
    with pytest.raises(errors.MalformedReply, match="its fields are usage"):
        await made.complete(call)
    (first,) = made.account.attempts
    assert (first.outcome, first.usage) == (Outcome.UNUSABLE, Usage(input=1000))
    assert first.cost == packaged().cost(call.model, Usage(input=1000))


@pytest.mark.parametrize(
    "busy",
    [
        Status(code=503, message="Loading model"),
        Status(code=529, kind="overloaded_error"),
        Status(code=429, within=True),
    ],
)
async def test_a_refusal_before_any_work_is_tried_again_and_costs_nothing(
    busy: Status, rig: MakeRig, call: Call
) -> None:
    made = rig([busy, Reply(text="yes", usage=USAGE)])
    assert (await made.complete(call)).text == "yes"
    assert [a.cost == 0 for a in made.account.attempts] == [True, False]


async def test_an_error_in_a_reply_of_status_200_says_how_long_to_wait(
    rig: MakeRig, call: Call
) -> None:
    wait = Status(code=429, within=True, headers={"retry-after": "60"})
    made = rig([wait, Reply(text="yes")])
    with pytest.raises(errors.RateLimited) as caught:
        await made.complete(call)
    assert (caught.value.retry_after, caught.value.status) == (60.0, 429)


async def test_a_bad_structure_is_repaired_and_both_calls_accounted_for(
    rig: MakeRig, call: Call
) -> None:
    made = rig(
        [
            Reply(text='{"verdict": "perhaps"}', usage=USAGE),
            Status(code=500),
            Reply(text='```json\n{"verdict": "yes"}\n```', usage=USAGE),
        ]
    )
    completion = await made.complete(replace(call, schema=Verdict))
    assert completion.parsed == Verdict(verdict="yes")
    assert made.outcomes == [
        (1, 1, Outcome.UNUSABLE, "SchemaViolation"),
        (2, 1, Outcome.FAILED, "ProviderOverloaded"),
        (2, 2, Outcome.OK, None),
    ]
    assert made.account.usage == USAGE + USAGE
    said = made.stub.requests[2].json["messages"]
    assert said[-2] == {"role": "assistant", "content": '{"verdict": "perhaps"}'}
    assert "Input should be 'yes' or 'no'" in said[-1]["content"]


async def test_a_refusal_in_a_field_of_its_own_is_text(
    rig: MakeRig, call: Call, provider: str
) -> None:
    body: dict[str, Any] = {
        "model": "m",
        "choices": [
            {"message": {"content": None, "refusal": "I cannot."}, "finish_reason": "stop"}
        ],
        "content": [],
        "stop_reason": "refusal",
        "stop_details": {"type": "refusal", "explanation": "I cannot."},
    }
    made = rig([Malformed(body=json.dumps(body).encode())])
    completion = await made.complete(call)
    assert (completion.finish, completion.text) == (Finish.FILTERED, "I cannot.")
    assert completion.usage is None


class Drops(httpx2.AsyncByteStream):
    """The same, again and again."""

    def __init__(self, drop: bytes) -> None:
        self._drop = drop
        self.closed = False

    async def __aiter__(self) -> Any:
        while True:
            await anyio.sleep(0.02)
            yield self._drop

    async def aclose(self) -> None:
        self.closed = True


class Trickle(httpx2.AsyncBaseTransport):
    """Says nothing, and goes on saying it."""

    def __init__(self, kind: str, drop: bytes) -> None:
        self._headers = {"content-type": kind}
        self.drops = Drops(drop)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers=self._headers, stream=self.drops)


@pytest.mark.parametrize(
    ("kind", "drop"),
    [
        ("text/event-stream", b": ping\n\n"),
        ("text/event-stream", b'data: {"type": "ping"}\n\n'),
        ("text/event-stream", b"data: "),
        ("application/json", b" "),
    ],
)
async def test_a_trickling_provider_cannot_hold_a_call_beyond_its_deadline(
    provider: str, kind: str, drop: bytes
) -> None:
    """Signs of life are not silence, so only the deadline ends them; the provider may have done the work."""
    trickle, account = Trickle(kind, drop), Account()
    client = httpx2.AsyncClient(transport=trickle)
    with StubProvider([]) as stub:
        adapter = adapter_to(provider, stub, timeout=0.2, client=client)
    complete = build(
        adapter,
        journal=account,
        prices=packaged(),
        bound=by_bytes,
        retry=RetryPolicy(deadline=0.6),
    )
    with pytest.raises(errors.DeadlineExceeded):
        await complete(a_call(provider))
    (attempt,) = account.attempts
    assert (attempt.outcome, attempt.usage) == (Outcome.CANCELLED, None)
    # beyond the limit on silence
    assert attempt.latency > 0.25
    assert trickle.drops.closed
    await adapter.aclose()
    # a client that was handed in stays open, for its owner to close
    assert not client.is_closed
    await client.aclose()


async def test_a_reply_as_a_whole_has_a_time_limit_as_a_whole(provider: str) -> None:
    async with httpx2.AsyncClient(transport=Trickle("application/json", b" ")) as client:
        with StubProvider([]) as stub:
            adapter = adapter_to(provider, stub, timeout=0.2, client=client, stream=False)
        with pytest.raises(errors.ProviderTimeout, match=r"within 0\.2 s.*TOKENS_PER_SECOND"):
            await adapter(a_call(provider))


async def test_with_a_floor_the_timeout_grows_with_the_reply(provider: str) -> None:
    """Without one it is the same for every call."""
    given: list[dict[str, float]] = []

    class Never(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            given.append(request.extensions["timeout"])
            raise httpx2.ReadTimeout("never")

    client = httpx2.AsyncClient(transport=Never())
    call = replace(a_call(provider), max_tokens=500)
    with StubProvider([]) as stub:
        for floor in (None, 5.0):
            adapter = adapter_to(
                provider, stub, timeout=30.0, min_tokens_per_second=floor, client=client
            )
            with pytest.raises(errors.ProviderTimeout):
                await adapter(call)
    assert [one["read"] for one in given] == [30.0, 130.0]
    assert [one["connect"] for one in given] == [10.0, 10.0]
    await client.aclose()


async def test_a_connection_that_is_not_made_is_known_before_time_is_over(provider: str) -> None:
    given: list[dict[str, float]] = []

    class Nobody(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            given.append(request.extensions["timeout"])
            await anyio.sleep(given[0]["connect"])
            raise httpx2.ConnectTimeout("nobody")

    client = httpx2.AsyncClient(transport=Nobody())
    with StubProvider([]) as stub:
        adapter = adapter_to(provider, stub, timeout=3.0, client=client)
    with pytest.raises(errors.ProviderUnreachable) as caught:
        await adapter(a_call(provider))
    assert caught.value.usage == Usage()
    assert given == [{"connect": 1.5, "read": 3.0, "write": 3.0, "pool": 3.0}]
    await client.aclose()


async def test_text_that_is_not_unicode_is_rejected_unsent(rig: MakeRig, call: Call) -> None:
    made = rig([Reply(text="yes")])
    broken = replace(call, messages=(Message(role=Role.USER, content="\ud800"),))
    with pytest.raises(errors.RequestRejected, match="not valid Unicode"):
        await made.complete(broken)
    assert made.stub.requests == ()


async def test_a_call_to_another_provider_is_refused_unsent(
    rig: MakeRig, call: Call, provider: str
) -> None:
    made = rig([Reply(text="yes")])
    other = MODELS["anthropic" if provider == "openai" else "openai"]
    with pytest.raises(errors.UnknownModel):
        await made.complete(replace(call, model=other))
    assert made.stub.requests == ()


async def test_the_environment_is_not_asked(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for vendor in ("OPENAI", "ANTHROPIC"):
        for name in ("API_KEY", "ADMIN_KEY", "AUTH_TOKEN", "ORG_ID", "PROJECT_ID", "PROFILE"):
            monkeypatch.setenv(f"{vendor}_{name}", "ambient")
        monkeypatch.setenv(f"{vendor}_BASE_URL", "http://ambient.invalid")
        monkeypatch.setenv(f"{vendor}_CUSTOM_HEADERS", "x-ambient: ambient")
    monkeypatch.setenv("HTTP_PROXY", "http://ambient.invalid:1")
    with StubProvider([Reply(text="yes")]) as stub:
        adapter = adapter_to(provider, stub)
        await adapter(a_call(provider))
        await adapter.aclose()
        (request,) = stub.requests
    assert "ambient" not in str(request.headers), HEADERS[provider].changed
    assert request.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("adapter", [OpenAIAdapter, AnthropicAdapter])
async def test_without_a_base_url_it_is_the_providers_own(
    adapter: type[Adapter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://ambient.invalid")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://ambient.invalid")
    made = adapter(api_key=KEY)
    host = {"OpenAIAdapter": "api.openai.com", "AnthropicAdapter": "api.anthropic.com"}
    assert made._sdk.base_url.host == host[adapter.__name__]
    await made.aclose()


def test_a_missing_key_is_told_by_its_variable(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = f"{provider.upper()}_API_KEY"
    monkeypatch.setenv(variable, "ambient")
    with pytest.raises(errors.MissingKey, match=variable):
        connect(provider, ProviderOptions(api_key=" "))


@pytest.mark.parametrize("url", ["api.openai.com/v1", "ftp://example.org", "http://", "/v1"])
def test_a_base_url_that_cannot_be_one_is_told(url: str, provider: str) -> None:
    with pytest.raises(errors.ConfigurationError, match="no base URL"):
        connect(provider, ProviderOptions(api_key=KEY, base_url=url))


@pytest.mark.parametrize(
    "step",
    [
        Status(code=401, message=f"Incorrect API key provided: {KEY}"),
        Status(code=500, message=KEY),
        Status(code=500, body=KEY.encode()),
        Cut(),
        Malformed(body=KEY.encode()),
        # a key at the end of what a message shows
        Malformed(body=b"x" * 1990 + KEY.encode()),
        Malformed(body=b"x" * 290 + KEY.encode()),
        Status(code=401, message=f"Incorrect API key provided: {KEY}", within=True),
    ],
)
async def test_no_traceback_shows_the_key(step: Step, rig: MakeRig, call: Call) -> None:
    made = rig([step], policy=RetryPolicy(attempts=1))
    with pytest.raises(errors.ProviderError) as caught:
        await made.complete(call)
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert KEY not in repr(caught.value.details)
    assert KEY not in repr(ProviderOptions(api_key=KEY))
