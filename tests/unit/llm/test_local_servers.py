"""Local servers, by stubs of what they document: found, asked once, never sent what does not fit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from posology.errors import (
    ConfigurationError,
    ContextTooLong,
    MalformedReply,
    ModelNotFound,
    ProviderError,
    ProviderOverloaded,
    ProviderUnreachable,
    UnusableReply,
)
from posology.llm.calls import ReplyProgress
from posology.llm.providers.anthropic import AnthropicAdapter
from posology.llm.providers.clouds.azure import AzureAdapter
from posology.llm.providers.local.adapter import LocalAdapter
from posology.llm.providers.local.kinds import KINDS
from posology.llm.providers.local.servers import Served, root_of, running, served
from posology.llm.providers.openai import OpenAIAdapter
from posology.llm.providers.places import Places
from posology.llm.providers.table import PROVIDERS, ProviderOptions
from posology.testing import Malformed, NoSuchModel, Reply, Status, Step, StubProvider
from posology.testing.local_servers import (
    llamacpp_documents,
    lmstudio_documents,
    ollama_documents,
    vllm_documents,
)
from posology.testing.provider.steps import Broken
from posology.types import Finish, Message, Role, Usage
from tests.support.calls import a_call

pytestmark = pytest.mark.anyio
NOWHERE = "http://127.0.0.1:9"
DOCUMENTS: Mapping[str, Callable[..., Mapping[str, Any]]] = {
    "ollama": ollama_documents,
    "lmstudio": lmstudio_documents,
    "llamacpp": llamacpp_documents,
    "vllm": vllm_documents,
}
#: about 9,000 tokens of English
LONG = "Low-dose aspirin reduces the risk of preeclampsia in women at high risk. " * 545
USAGE = Usage(input=2_000, output=10)


class Answered(BaseModel):
    answer: str


GOOD = '{"answer": "yes"}'


@asynccontextmanager
async def connected(kind: str, stub: StubProvider, **options: Any) -> AsyncIterator[LocalAdapter]:
    connection = PROVIDERS[kind].connect
    assert connection is not None
    adapter = connection(ProviderOptions(base_url=stub.url, **options))
    assert isinstance(adapter, LocalAdapter)
    yield adapter
    await adapter.aclose()


def asking(kind: str, text: str = "Does it?", **changes: Any) -> Any:
    given = {"model": f"{kind}:qwen3:8b", "schema": Answered, **changes}
    return a_call(messages=(Message(role=Role.USER, content=text),), **given)


@pytest.mark.parametrize("kind", DOCUMENTS)
async def test_a_server_says_what_it_serves(kind: str) -> None:
    with StubProvider(documents=DOCUMENTS[kind]("qwen3:8b")) as stub:
        server = await served(KINDS[kind], stub.url)
    (model,) = server.models
    assert model.name == "qwen3:8b"
    assert model.window == (None if kind == "ollama" else 8_192)
    assert server.slots == (1 if kind == "llamacpp" else None)
    assert server.address == stub.url


@pytest.mark.parametrize("kind", DOCUMENTS)
async def test_one_call_is_answered_and_the_server_asked_once(kind: str) -> None:
    replies = [Reply(text=GOOD, usage=USAGE), Reply(text=GOOD, usage=USAGE)]
    with StubProvider(replies, documents=DOCUMENTS[kind]("qwen3:8b")) as stub:
        async with connected(kind, stub) as adapter:
            for _ in range(2):
                completion = await adapter(asking(kind))
    paths = [request.path for request in stub.requests]
    assert completion.text == GOOD
    assert completion.usage == USAGE
    assert completion.finish is Finish.STOP
    assert sum("models" in path or path.endswith(("/tags", "/props")) for path in paths) <= 2
    assert len(paths) == len(set(paths)) + 1
    sent = stub.requests[-1].json
    assert sent["model"] == "qwen3:8b"
    if kind == "ollama":
        assert sent["format"]["required"] == ["answer"]
        assert sent["options"] == {"num_ctx": 8_192, "num_predict": 200, "temperature": 0}
        assert (sent["stream"], sent["truncate"], sent["shift"]) == (True, False, False)
        assert "think" not in sent
    else:
        assert sent["response_format"]["json_schema"]["schema"]["required"] == ["answer"]
        assert (sent["max_tokens"], sent["temperature"]) == (200, 0)
        assert stub.requests[-1].headers["authorization"] == "Bearer none"


async def test_a_server_at_its_default_address_is_streamed_without_a_floor() -> None:
    reply = Reply(text=GOOD, usage=USAGE)
    with StubProvider([reply], documents=llamacpp_documents("qwen3:8b")) as stub:
        kind = replace(KINDS["llamacpp"], address=stub.url)
        adapter = LocalAdapter(kind, api_key=None, base_url=None, min_tokens_per_second=None)
        await adapter(asking("llamacpp"))
        await adapter.aclose()
    assert stub.requests[-1].json["stream"] is True


@pytest.mark.parametrize("kind", DOCUMENTS)
async def test_an_unknown_model_names_those_that_are_served(kind: str) -> None:
    with StubProvider(documents=DOCUMENTS[kind]("qwen3:8b")) as stub:
        async with connected(kind, stub) as adapter:
            with pytest.raises(ModelNotFound, match=f"serves {kind}:qwen3:8b") as caught:
                await adapter(asking(kind, model=f"{kind}:llama"))
    assert caught.value.usage == Usage()
    assert not any(request.json for request in stub.requests)


@pytest.mark.parametrize("kind", DOCUMENTS)
async def test_nothing_that_does_not_fit_is_sent(kind: str) -> None:
    with StubProvider(documents=DOCUMENTS[kind]("qwen3:8b")) as stub:
        async with connected(kind, stub) as adapter:
            with pytest.raises(ContextTooLong, match=r"the window of .*, 8,192 tokens: use fewer"):
                await adapter(asking(kind, LONG * 2))
    asked = [request.path for request in stub.requests]
    assert not any(path.endswith(("/chat", "/completions")) for path in asked)


@pytest.mark.parametrize("kind", ["ollama", "lmstudio", "vllm", "llamacpp"])
async def test_a_prompt_that_was_cut_in_silence_is_no_answer(kind: str) -> None:
    """The server says it has room for 16,384 tokens, and reads 4,096 of 9,000."""
    more: dict[str, Any] = {"loaded": 16_384} if kind == "ollama" else {"window": 16_384}
    cut = Reply(text=GOOD, usage=Usage(input=4_096, output=10))
    with StubProvider(lambda _: cut, documents=DOCUMENTS[kind]("qwen3:8b", **more)) as stub:
        async with connected(kind, stub) as adapter:
            with pytest.raises(
                ContextTooLong, match="read 4,096 tokens of at least 5,232"
            ) as caught:
                await adapter(asking(kind, LONG))
    assert caught.value.usage == Usage(input=4_096, output=10)


async def test_a_model_that_is_not_loaded_has_an_unknown_window_until_it_is() -> None:
    documents = dict(lmstudio_documents("qwen3:8b", window=None))
    with StubProvider([Reply(text=GOOD), Reply(text=GOOD)], documents=documents) as stub:
        async with connected("lmstudio", stub) as adapter:
            await adapter(asking("lmstudio"))
            documents |= lmstudio_documents("qwen3:8b", window=4_096)
            with pytest.raises(ContextTooLong, match="4,096 tokens"):
                await adapter(asking("lmstudio", LONG))


@pytest.mark.parametrize(
    ("documents", "configured", "window"),
    [
        ({}, None, 8_192),
        ({"loaded": 4_096}, None, 8_192),
        ({"loaded": 32_768}, None, 32_768),
        ({"parameters": "stop <|end|>\nnum_ctx                        16384"}, None, 16_384),
        ({"loaded": 4_096, "parameters": "num_ctx 16384"}, 12_000, 12_000),
        ({"trained": 2_048}, 12_000, 2_048),
    ],
)
async def test_ollama_s_window_is_named_in_each_call(
    documents: dict[str, Any], configured: int | None, window: int
) -> None:
    with StubProvider([Reply(text=GOOD)], documents=ollama_documents("m", **documents)) as stub:
        async with connected("ollama", stub, window=configured) as adapter:
            await adapter(asking("ollama", model="ollama:m"))
    assert stub.requests[-1].json["options"]["num_ctx"] == window


@pytest.mark.parametrize(
    ("effort", "thinks", "sent"),
    [("none", True, False), ("low", True, "low"), ("max", True, True), ("none", False, None)],
)
async def test_reasoning_is_turned_off_where_the_model_has_any(
    effort: str, thinks: bool, sent: object
) -> None:
    documents = ollama_documents("m", thinks=thinks)
    with StubProvider([Reply(text=GOOD)], documents=documents) as stub:
        async with connected("ollama", stub) as adapter:
            await adapter(asking("ollama", model="ollama:m", effort=effort))
    assert stub.requests[-1].json.get("think") == sent


async def test_the_server_counts_what_its_bound_says_may_not_fit() -> None:
    counted = {"input_tokens": 7_900, "object": "response.input_tokens"}
    documents = llamacpp_documents("qwen3:8b") | {"/v1/chat/completions/input_tokens": counted}
    reply = Reply(text=GOOD, usage=Usage(input=7_900, output=10))
    with StubProvider([reply], documents=documents) as stub:
        async with connected("llamacpp", stub) as adapter:
            completion = await adapter(asking("llamacpp", LONG[:-9_000], max_tokens=768))
    assert completion.text == GOOD
    assert stub.requests[-1].json["max_tokens"] == 292


async def test_a_server_is_asked_anew_after_a_failure() -> None:
    documents = dict(llamacpp_documents("old"))
    with StubProvider([Status(code=503), Reply(text=GOOD)], documents=documents) as stub:
        async with connected("llamacpp", stub) as adapter:
            with pytest.raises(Exception, match="503"):
                await adapter(asking("llamacpp", model="llamacpp:old"))
            documents |= llamacpp_documents("new")
            completion = await adapter(asking("llamacpp", model="llamacpp:new"))
    assert completion.text == GOOD


@pytest.mark.parametrize(
    ("step", "error", "says"),
    [
        (
            Status(code=400, message="the input length exceeds the context length"),
            ContextTooLong,
            "use fewer or shorter passages",
        ),
        (NoSuchModel(), ModelNotFound, "model 'qwen3:8b' not found"),
        (
            Status(
                code=500, message="model requires more system memory (9.1 GiB) than is available"
            ),
            ProviderOverloaded,
            "more system memory",
        ),
        (Status(code=200, within=True, message="an error was encountered"), UnusableReply, "error"),
        (Broken(of=Reply(text=GOOD), by="end"), MalformedReply, "in the middle of the reply"),
        (Malformed(body=b'{"done": true}'), MalformedReply, "it has no message"),
    ],
    ids=["too long", "no model", "no memory", "failed", "broken", "empty"],
)
async def test_ollama_s_failures_are_told_apart(
    step: Step, error: type[ProviderError], says: str
) -> None:
    with StubProvider([step], documents=ollama_documents("qwen3:8b")) as stub:
        async with connected("ollama", stub) as adapter:
            with pytest.raises(error, match=says):
                await adapter(asking("ollama"))


async def test_ollama_s_reply_that_was_cut_and_its_progress() -> None:
    reply = Reply(text=GOOD * 5, usage=USAGE, finish=Finish.LENGTH)
    seen: list[ReplyProgress] = []
    with StubProvider([reply], documents=ollama_documents("qwen3:8b")) as stub:
        async with connected("ollama", stub) as adapter:
            tell = adapter.telling(lambda _, progress: seen.append(progress))
            completion = await tell(asking("ollama"))
    assert completion.finish is Finish.LENGTH
    assert completion.text == GOOD * 5
    assert seen[-1].written > 1


def test_only_a_server_of_one_s_own_is_cut_short() -> None:
    """What a provider's service spent on a reply would stay unknown."""
    assert LocalAdapter.CUTS
    assert not any(one.CUTS for one in (OpenAIAdapter, AnthropicAdapter, AzureAdapter))


async def test_no_server_at_the_address_says_what_to_set() -> None:
    connection = PROVIDERS["llamacpp"].connect
    assert connection is not None
    adapter = connection(ProviderOptions(base_url=NOWHERE))
    with pytest.raises(ProviderUnreachable, match=r"start it, or set LLAMACPP_BASE_URL") as caught:
        await adapter(asking("llamacpp"))
    await adapter.aclose()
    assert caught.value.usage == Usage()


async def test_calls_at_once_are_the_server_s_slots() -> None:
    async def slots() -> int:
        await anyio.lowlevel.checkpoint()
        return 3

    for configured, total in ((None, 3), (2, 2), (8, 3)):
        places = Places(configured, start=1, slots=slots)
        async with anyio.create_task_group() as group:
            for _ in range(3 if configured is None else 1):
                group.start_soon(places.acquire)
        assert places.total == total

    async def silent() -> None:
        return None

    places = Places(start=1, slots=silent)
    await places.acquire()
    assert places.total == 1


@pytest.mark.parametrize(
    ("kind", "given", "root"),
    [
        ("ollama", None, "http://127.0.0.1:11434"),
        ("ollama", "0.0.0.0:11500", "http://127.0.0.1:11500"),
        ("ollama", "gpu.lan", "http://gpu.lan:11434"),
        ("ollama", ":11500", "http://127.0.0.1:11500"),
        ("ollama", "[::1]", "http://[::1]:11434"),
        ("ollama", "https://gpu.lan/", "https://gpu.lan"),
        ("llamacpp", "http://10.0.0.2:8080/v1/", "http://10.0.0.2:8080"),
        ("vllm", None, "http://127.0.0.1:8000"),
    ],
)
def test_addresses(kind: str, given: str | None, root: str) -> None:
    assert root_of(KINDS[kind], given) == root


def test_a_bad_address_names_its_variable() -> None:
    with pytest.raises(ConfigurationError, match="OLLAMA_HOST"):
        root_of(KINDS["ollama"], "http://gpu lan")


async def test_running_servers_are_found_and_others_at_their_addresses_are_not() -> None:
    other = {"/v1/models": {"object": "list", "data": [{"id": "posology"}]}}
    with (
        StubProvider(documents=llamacpp_documents("/models/qwen.gguf")) as llama,
        StubProvider(documents=other) as api,
    ):
        found = await running({"ollama": NOWHERE, "llamacpp": llama.url, "vllm": api.url})
    (server,) = found
    assert server.kind is KINDS["llamacpp"]
    assert server.find("QWEN") == Served(name="/models/qwen.gguf", window=8_192)
    assert server.find("qwe") is None
