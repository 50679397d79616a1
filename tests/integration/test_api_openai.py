"""Chat completions and models: OpenAI's own client against the API on a real Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import anyio
import openai
import pytest
from fastapi import FastAPI
from markdown_it import MarkdownIt
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from orchestrator.api.app import create_app
from orchestrator.api.context import Limits
from orchestrator.jobs.store import JobStore
from orchestrator.settings import Settings
from posology.budget.tenants.store import TenantStore
from posology.published.answers import AskOutput, Evidence, Source, Status, SupportOutput
from posology.published.answers import SentenceSupportOutput as Support
from posology.published.jobs import JobOutput
from posology.store import keys
from posology.store.connection import connect
from posology.types import Backing
from posology.types import Limits as Money
from tests.integration.conftest import Serve
from tests.integration.jobs_store.helpers import DIRECT, ERROR, answer
from workers.engine.claims import WorkStore

pytestmark = pytest.mark.anyio

MODEL = "openai:gpt-4o-mini"
QUESTION = "Does aspirin reduce the risk of preeclampsia?"
ASKED: Any = [{"role": "user", "content": QUESTION}]
FREE = Money()
#: no retries: each error is seen
PLAIN = {"max_retries": 0, "timeout": 90.0}
TRIAL = Source(
    id="x [[1]](<http://evil.example/>)", pmid="7", title="Aspirin [a] trial](https://evil.example)", journal="J Trials", year=2015,
    publication_types=(), retracted=True, source=None,
)  # fmt: skip
TEXT = "Aspirin reduced it. See ![x](https://evil.example/?q=1) <img src=x>."
QUOTE = "Aspirin reduced the risk."
ANSWER = answer(TEXT).model_copy(
    update={
        "status": Status.ANSWERED,
        "evidence": (Evidence(passage=TRIAL, start=0, end=25, quote=QUOTE, context_start=0, context=QUOTE, page=3),),
        "support": SupportOutput(
            judge=None, unsupported=0, removed=0,
            sentences=(Support(start=0, end=19, backing=Backing.SUPPORTED, probability=None, evidence=(0,), failed=(), disagrees=False),),
        ),
    }
)  # fmt: skip
REFUSAL = answer().model_copy(
    update={"status": Status.REFUSED, "answer": None, "refusal": "The passages do not say."}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Chat:
    """OpenAI's client with a tenant's key, and the jobs behind it."""

    app: FastAPI
    url: str
    key: str
    tenant: str
    store: JobStore

    def client(self, **given: Any) -> AsyncOpenAI:
        return AsyncOpenAI(base_url=f"{self.url}/v1", api_key=self.key, **{**PLAIN, **given})

    async def jobs(self) -> list[str]:
        return [job.id for job in (await self.store.page(tenant=self.tenant)).jobs]

    async def job(self) -> JobOutput:
        (job,) = await self.jobs()
        return await self.store.get(job, tenant=self.tenant)

    async def work(self, end: AskOutput | None) -> None:
        """End the next job as a worker does; ``None``: it fails."""
        work = WorkStore(self.store, worker=keys.worker(1))
        with anyio.fail_after(90):
            while (unit := await work.take(self.tenant)) is None:  # noqa: ASYNC110 - the client's doing
                await anyio.sleep(0.01)
        held = await work.claim(unit, delivery=keys.new_id("delivery"))
        assert held is not None
        await work.decide(held, replace(DIRECT, reason="Both \x1b[31mrankings agree."), calls=1)
        if end is None:
            await work.fail(held, ERROR)
        else:
            await work.succeed(held, end)


@asynccontextmanager
async def chat(
    url: str, tenant: str, serve: Serve, *, money: Money = FREE, limits: Limits | None = None
) -> AsyncIterator[Chat]:
    redis = connect(url)
    issued = await TenantStore(redis, url).create(tenant, money)
    settings = {"POSOLOGY_REDIS_URL": url, "POSOLOGY_AUTH": "keys", "POSOLOGY_MODEL": MODEL}
    app = create_app(Settings.model_validate(settings), limits=limits)
    try:
        with serve(app) as address:
            yield Chat(
                app=app, url=address, key=issued.key, tenant=tenant, store=JobStore(redis, url)
            )
    finally:
        await redis.aclose()


@pytest.fixture
async def one(redis_url: str, tenant: str, serve: Serve) -> AsyncIterator[Chat]:
    async with chat(redis_url, tenant, serve) as opened:
        yield opened


@pytest.fixture
async def client(one: Chat) -> AsyncIterator[AsyncOpenAI]:
    async with one.client() as opened:
        yield opened


async def while_working(one: Chat, end: AskOutput | None, ask: Callable[[], Awaitable[Any]]) -> Any:
    """Return what a request returns or raises while a worker ends its job."""
    found: list[Any] = []

    async def asking() -> None:
        try:
            found.append(await ask())
        except openai.OpenAIError as error:
            found.append(error)

    async with anyio.create_task_group() as group:
        group.start_soon(asking)
        await one.work(end)
    return found[0]


async def test_an_answer_is_a_completion_with_its_citations(one: Chat, client: AsyncOpenAI) -> None:
    sent = [{"role": "system", "content": "Be brief."}, *ASKED]
    own = {"k": 4, "max_cost_usd": "0.5", "filters": {"since": 1990}}
    found = await while_working(
        one,
        ANSWER,
        lambda: client.chat.completions.create(
            model="posology/router:start=2",
            messages=sent,
            temperature=0.2,
            max_completion_tokens=900,
            extra_body={"posology": own},
        ),
    )
    job = await one.job()
    assert isinstance(found, ChatCompletion)
    assert (found.id, found.object, found.model) == (
        job.id,
        "chat.completion",
        "posology/router:start=2",
    )
    assert job.question == QUESTION
    request = {name: job.request[name] for name in ("k", "policy", "max_tokens", "max_cost_usd")}
    assert request == {"k": 4, "policy": "router:start=2", "max_tokens": 900, "max_cost_usd": "0.5"}
    assert job.request["filters"]["since"] == 1990
    (choice,) = found.choices
    assert (choice.finish_reason, choice.message.role, choice.message.refusal) == (
        "stop",
        "assistant",
        None,
    )
    text, notes = choice.message.content or "", choice.message.annotations or []
    address = "https://pubmed.ncbi.nlm.nih.gov/7/"
    assert text.startswith(f"Aspirin reduced it. [[1]](<{address}>)")
    assert QUOTE in text
    assert "**RETRACTED**" in text
    links = [one.url_citation for one in notes]
    assert [(link.url, text[link.start_index : link.end_index].endswith(f"](<{address}>)")) for link in links] == [
        (address, True)
    ] * 2  # fmt: skip
    assert text[links[0].start_index : links[0].end_index] == f"[[1]](<{address}>)"
    # hostile text is no markup
    parsed = MarkdownIt("commonmark").parse(text)
    inner = [token for block in parsed for token in (block, *(block.children or ()))]
    assert {token.attrGet("href") for token in inner if token.type == "link_open"} == {address}
    assert not [token for token in inner if token.type in ("image", "html_inline", "html_block")]
    extra: Any = found.to_dict()["posology"]
    assert (extra["job"], extra["status"], extra["charged_usd"]) == (job.id, "answered", "0")
    assert extra["ignored"] == ["messages", "temperature"]
    assert extra["question"] is None
    assert found.usage is not None
    assert found.usage.total_tokens == 0


@pytest.mark.parametrize("stream", [False, True])
async def test_a_question_that_continues_one_is_asked_with_it(
    one: Chat, client: AsyncOpenAI, stream: bool
) -> None:
    turns: Any = [
        *ASKED,
        {"role": "assistant", "content": "It does."},
        {"role": "user", "content": "And in <b>twins</b>?"},
    ]

    async def reply() -> tuple[str, Any]:
        found: Any = await client.chat.completions.create(
            model="posology", messages=turns, stream=stream
        )
        if not stream:
            return found.choices[0].message.content, found.to_dict()["posology"]
        chunks = [chunk async for chunk in found]
        text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        return text, chunks[-1].to_dict()["posology"]

    text, outcome = await while_working(one, ANSWER, reply)
    job = await one.job()
    assert job.question == outcome["question"] == f"{QUESTION} And in <b>twins</b>?"
    assert outcome["ignored"] == ["messages"], "the assistant's turn is not read"
    assert text.startswith(f"*Asked as: {QUESTION} And in ")
    assert "<b>" not in text
    assert "Aspirin reduced it. [[1]]" in text


async def test_a_refusal_is_an_answer(one: Chat, client: AsyncOpenAI) -> None:
    found = await while_working(
        one, REFUSAL, lambda: client.chat.completions.create(model="posology", messages=ASKED)
    )
    assert found.choices[0].message.content == "The passages do not say."
    assert found.to_dict()["posology"]["status"] == "refused"


async def test_a_stream_has_stages_and_then_the_verified_answer(
    one: Chat, client: AsyncOpenAI
) -> None:

    async def chunks() -> list[ChatCompletionChunk]:
        stream = await client.chat.completions.create(
            model="posology", messages=ASKED, stream=True, stream_options={"include_usage": True}
        )
        return [chunk async for chunk in stream]

    found = await while_working(one, ANSWER, chunks)
    job = await one.job()
    assert {chunk.id for chunk in found} == {job.id}
    deltas = [chunk.choices[0].delta.to_dict() for chunk in found if chunk.choices]
    stages = "".join(str(delta.get("reasoning_content", "")) for delta in deltas)
    assert stages.splitlines() == [
        "Waiting in the queue.",
        "Retrieving passages.",
        "Strategy direct: Both [31mrankings agree.",
    ]
    texts = [delta["content"] for delta in deltas if delta.get("content")]
    assert len(texts) == 1, "the answer comes whole, when it is verified"
    assert "reasoning_content" in deltas[-3]
    assert str(texts[0]).startswith("Aspirin reduced it. [[1]]")
    assert len(deltas[-2]["annotations"]) == 2
    assert [chunk.choices[0].finish_reason for chunk in found if chunk.choices][-1] == "stop"
    outcome: Any = found[-2].to_dict()["posology"]
    assert (outcome["job"], outcome["cost_usd"]) == (job.id, "0")
    assert found[-1].usage is not None
    assert not found[-1].choices


async def test_what_a_chat_interface_asks_on_its_own_costs_nothing(
    one: Chat, client: AsyncOpenAI
) -> None:
    history = f"<chat_history>\nUSER: {QUESTION}\nASSISTANT: Yes.\n</chat_history>"
    prompt: Any = [
        {
            "role": "user",
            "content": f'### Task:\nGenerate a concise, 3-5 word title.\n{{"title": ""}}\n{history}',
        }
    ]
    ping: Any = [{"role": "user", "content": "ping"}]
    create = client.chat.completions.create
    title = await create(model="posology", messages=prompt, max_completion_tokens=20)
    stream = await create(
        model="posology", messages=prompt, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    probe = await create(model="posology/direct", messages=ping, max_tokens=5)
    with pytest.raises(openai.NotFoundError):
        await create(model="gpt-4o", messages=ping, max_tokens=5)
    with pytest.raises(openai.BadRequestError, match="max_tokens"):
        await create(model="posology", messages=ASKED, max_tokens=5)
    with pytest.raises(openai.AuthenticationError):
        await client.with_options(api_key="none").chat.completions.create(
            model="posology", messages=ping, max_tokens=5
        )
    assert await one.jobs() == []
    wanted = '{"title": "Aspirin Reduce Risk Preeclampsia"}'
    assert title.choices[0].message.content == wanted
    assert title.usage is not None
    assert title.usage.total_tokens == 0
    extra: Any = title.to_dict()["posology"]
    assert (extra["task"], extra["cost_usd"], extra["job"]) == ("title", "0", None)
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == wanted
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].usage is not None
    assert probe.choices[0].message.content == "pong"


async def test_a_failed_job_is_an_error_that_is_not_repeated(
    redis_url: str, tenant: str, serve: Serve
) -> None:
    async with chat(redis_url, tenant, serve) as one, one.client(max_retries=2) as client:
        failed = await while_working(
            one, None, lambda: client.chat.completions.create(model="posology", messages=ASKED)
        )
        assert isinstance(failed, openai.InternalServerError)
        assert (failed.status_code, failed.code) == (502, "provider-unreachable")
        job = await one.job()
        assert failed.body["job"] == job.id  # type: ignore[index]

        async def stream() -> None:
            async for _ in await client.chat.completions.create(
                model="posology", messages=ASKED, stream=True
            ):
                pass

        cut = await while_working(one, None, stream)
        assert type(cut) is openai.APIError
        assert cut.code == "provider-unreachable"
        assert len(await one.jobs()) == 2


async def test_a_repeated_request_is_one_job(one: Chat, client: AsyncOpenAI) -> None:

    def ask(question: str = QUESTION) -> Any:
        return client.chat.completions.create(
            model="posology",
            messages=[{"role": "user", "content": question}],
            extra_headers={"Idempotency-Key": "7"},
        )

    first = await while_working(one, REFUSAL, ask)
    assert (await ask()).id == first.id == (await one.job()).id
    with pytest.raises(openai.ConflictError) as conflict:
        await ask("Is it another?")
    assert conflict.value.code == "idempotency-conflict"


async def test_budgets_and_keys_refuse_in_openais_form(
    redis_url: str, tenant: str, serve: Serve
) -> None:
    money = Money(day=Decimal("0.000000001"))
    async with chat(redis_url, tenant, serve, money=money) as one:
        async with one.client() as client:
            with pytest.raises(openai.APIStatusError) as spent:
                await client.chat.completions.create(model="posology", messages=ASKED)
            assert spent.value.status_code == 402
            assert (spent.value.type, spent.value.code) == (
                "insufficient_quota",
                "budget-exhausted",
            )
            assert spent.value.body["scope"] == "day"  # type: ignore[index]
        async with AsyncOpenAI(
            base_url=f"{one.url}/v1", api_key="psl_x", max_retries=0
        ) as stranger:
            for asking in (
                stranger.models.list,
                lambda: stranger.chat.completions.create(model="posology", messages=ASKED),
            ):
                with pytest.raises(openai.AuthenticationError) as refused:
                    await asking()
                assert refused.value.code == "key-refused"
        assert await one.jobs() == []


async def test_a_full_queue_is_a_rate_limit(redis_url: str, tenant: str, serve: Serve) -> None:
    money, limits = Money(queued=1), Limits(completion=0.2)
    async with (
        chat(redis_url, tenant, serve, money=money, limits=limits) as one,
        one.client() as client,
    ):
        with pytest.raises(openai.InternalServerError) as late:
            await client.chat.completions.create(model="posology", messages=ASKED)
        assert (late.value.status_code, late.value.code) == (504, "not-answered-in-time")
        assert late.value.response.headers["x-should-retry"] == "false"
        assert late.value.body["job"] == (await one.job()).id  # type: ignore[index]
        with pytest.raises(openai.RateLimitError) as full:
            await client.chat.completions.create(model="posology", messages=ASKED)
        assert (full.value.type, full.value.code) == ("rate_limit_error", "queue-full")
        assert int(full.value.response.headers["retry-after"]) > 0


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "plain"])
async def test_a_client_that_leaves_frees_its_place_and_its_job_remains(
    redis_url: str, tenant: str, serve: Serve, stream: bool
) -> None:
    async with (
        chat(redis_url, tenant, serve, limits=Limits(waits=1)) as one,
        one.client() as client,
    ):
        waits = one.app.state.context.waits

        async def ask() -> None:
            found = await client.chat.completions.create(
                model="posology", messages=ASKED, stream=stream
            )
            if not isinstance(found, ChatCompletion):
                async for _ in found:
                    pass

        with anyio.fail_after(90):
            async with anyio.create_task_group() as group:
                group.start_soon(ask)
                while not await one.jobs():  # noqa: ASYNC110 - the client's doing
                    await anyio.sleep(0.01)
                with pytest.raises(openai.InternalServerError) as full:
                    await client.chat.completions.create(model="posology", messages=ASKED)
                assert (full.value.status_code, full.value.code) == (503, "too-many-waits")
                group.cancel_scope.cancel()
            while waits.taken:  # noqa: ASYNC110 - the server's doing
                await anyio.sleep(0.01)
        assert (await one.job()).state == "queued"


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"messages": []}, 400, "messages"),
        ({"messages": [{"role": "assistant", "content": "?"}]}, 400, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400, "messages"),
        ({"n": 2}, 400, "n"),
        ({"response_format": {"type": "json_object"}}, 400, "response_format"),
        ({"tool_choice": "required"}, 400, "tool_choice"),
        ({"max_tokens": 5}, 400, "max_completion_tokens"),
        ({"reasoning_effort": "huge"}, 400, "reasoning_effort"),
        ({"posology": {"k": "8"}}, 400, "posology.k"),
        ({"posology": {"question": "Why?"}}, 400, "posology"),
        ({"posology": {"tier": "batch"}}, 400, "posology.tier"),
        ({"posology": {"model": "nobody:x"}}, 404, None),
        ({"model": "gpt-4o"}, 404, "model"),
        ({"model": "posology/router:bogus=1"}, 400, "model"),
    ],
)
async def test_a_bad_request_is_named(
    served: Any, tenant: str, body: dict[str, Any], status: int, param: str | None
) -> None:
    async with AsyncOpenAI(
        base_url=f"{served.url}/v1",
        api_key="none",
        default_headers={"X-Posology-Tenant": tenant, "Authorization": ""},
        max_retries=0,
    ) as client:
        with pytest.raises(openai.APIStatusError) as refused:
            await client.post(
                "/chat/completions",
                cast_to=ChatCompletion,
                body={"model": "posology", "messages": ASKED, **body},
            )
    error = refused.value
    assert (error.status_code, error.param) == (status, param), error
    assert error.type == "invalid_request_error"
    assert error.code == ("model_not_found" if status == 404 else "invalid-query")


async def test_policies_and_strategies_are_models(client: AsyncOpenAI) -> None:
    found = [model.id async for model in client.models.list()]
    assert {"posology", "posology/router", "posology/doubling", "posology/briefcontext"} <= set(
        found
    )
    assert (await client.models.retrieve("posology/router:start=2")).id == "posology/router:start=2"
    with pytest.raises(openai.NotFoundError) as missing:
        await client.models.retrieve("gpt-4o")
    assert missing.value.code == "model_not_found"
