"""Every provider's batch endpoint, over a real socket to a provider that keeps batches."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

import pytest
from anthropic.types.messages import MessageBatch
from anthropic.types.messages.batch_create_params import Request
from anthropic.types.messages.message_batch_individual_response import (
    MessageBatchIndividualResponse,
)
from openai.types.batch import Batch
from openai.types.batch_create_params import BatchCreateParams
from pydantic import BaseModel, TypeAdapter

from posology.errors import (
    MalformedReply,
    ModelNotFound,
    NotProcessed,
    ProviderError,
    ProviderOverloaded,
    ProviderUnreachable,
    RateLimited,
    RequestRejected,
    UnknownModel,
)
from posology.llm.providers.batches.base import APPEARS
from posology.llm.providers.table import PROVIDERS, ProviderOptions
from posology.llm.providers.vectors import unpack
from posology.seams.batches import BatchEndpoint, BatchFate, BatchLine, BatchResult
from posology.testing import (
    BatchBook,
    BatchFaults,
    Recorded,
    Reply,
    Status,
    Step,
    StubProvider,
    Vectors,
)
from posology.types import Call, Completion, Finish, Stage, Usage
from tests.support.calls import CALL, a_call, asks

pytestmark = pytest.mark.anyio

KEY = "sk-secret-0123456789"
MODELS = {"openai": "openai:gpt-5.4-mini", "anthropic": "anthropic:claude-haiku-4-5"}
USAGE = Usage(input=800, cache_read=200, output=60)
IDS = tuple(f"attempt{i:02d}" for i in range(40))
LABEL = "pb_1"


class Verdict(BaseModel):
    verdict: Literal["yes", "no"]


class Rig:
    """A provider, and our endpoint of it."""

    def __init__(self, provider: str, stub: StubProvider) -> None:
        self.provider = provider
        self.model = MODELS[provider]
        self.stub = stub
        self.url: str = getattr(stub, f"{provider}_url")
        options = ProviderOptions(api_key=KEY, base_url=self.url, timeout=30.0)
        row = PROVIDERS[provider]
        assert row.batches is not None
        assert row.connect is not None
        self.endpoint: BatchEndpoint = row.batches(options)
        self.live = row.connect(options)

    @property
    def book(self) -> BatchBook:
        return self.stub.batches

    def call(self, words: str = "Does it work?", **changed: Any) -> Call:
        given = {
            "model": self.model,
            "messages": (CALL.messages[0], *asks(words)),
            "tier": "batch",
            "max_tokens": 100,
        }
        return a_call(**given | changed)

    def lines(self, count: int = len(IDS)) -> dict[str, BatchLine]:
        return {one: self.endpoint.line(self.call(f"Row {one}?")) for one in IDS[:count]}

    async def create(self, count: int = len(IDS), label: str = LABEL) -> str:
        return await self.endpoint.create(self.lines(count), label=label)

    async def results(self, batch: str, ids: tuple[str, ...] = IDS) -> list[BatchResult]:
        return [one async for one in self.endpoint.results(batch, model=self.model, ids=ids)]

    async def finished(self, batch: str, ids: tuple[str, ...] = IDS) -> dict[str, BatchResult]:
        """Poll until a batch has ended, and read its results."""
        while not (await self.endpoint.status(batch, model=self.model)).ended:
            pass
        return {one.id: one for one in await self.results(batch, ids)}

    async def find(
        self, *, ago: float = 0.0, ids: tuple[str, ...] = IDS, known: tuple[str, ...] = ()
    ) -> tuple[str | None, bool]:
        since = datetime.fromtimestamp(datetime.now(UTC).timestamp() - ago, UTC)
        found = await self.endpoint.find(LABEL, model=self.model, ids=ids, since=since, known=known)
        return found.batch, found.sure


@contextlib.asynccontextmanager
async def _rig(provider: str, book: BatchBook) -> AsyncIterator[Rig]:
    with StubProvider(_live, batches=book) as stub:
        rig = Rig(provider, stub)
        try:
            yield rig
        finally:
            await rig.endpoint.aclose()
            await rig.live.aclose()


def _live(_: Recorded) -> Step:
    return Reply(text="yes", usage=USAGE)


def _book(**faults: Any) -> BatchBook:
    def answer(row: Recorded) -> Step:
        return Reply(text=row.headers["x-client-request-id"], usage=USAGE)

    return BatchBook(answer, BatchFaults(**faults))


@pytest.fixture(params=list(MODELS))
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _fates(results: Mapping[str, BatchResult]) -> dict[BatchFate, int]:
    found = [one.fate for one in results.values()]
    return {fate: found.count(fate) for fate in BatchFate if fate in found}


def _billed(rig: Rig) -> set[str]:
    return {entry["client_id"] for entry in rig.book.ledger.entries()}


async def test_each_line_gets_its_own_reply(provider: str) -> None:
    async with _rig(provider, _book(polls=3)) as rig:
        batch = await rig.create()
        states = [await rig.endpoint.status(batch, model=rig.model) for _ in range(3)]
        assert [state.ended for state in states] == [False, False, True]
        assert (states[2].succeeded, states[2].failed) == (len(IDS), 0)
        assert states[0].expires is not None
        results = await rig.finished(batch)
        assert set(results) == set(IDS)
        for one, result in results.items():
            assert result.error is None
            assert result.completion == Completion(
                text=one,
                usage=USAGE,
                finish=Finish.STOP,
                served_model=rig.model.partition(":")[2],
                request_id=f"req_{one}" if provider == "openai" else None,
                served="batch",
            )


async def test_a_line_is_the_body_of_a_live_call(provider: str) -> None:
    async with _rig(provider, _book()) as rig:
        calls = [
            rig.call('Ünïcode, a line\u2028separator\x85 and "quotes"\n'),
            rig.call(schema=Verdict, effort="low"),
            rig.call(stage=Stage.EXTRACT, temperature=0.5),
        ]
        if provider == "openai":
            calls.append(rig.call(stage=Stage.EMBED, dimensions=8))
        for call in calls:
            with contextlib.suppress(MalformedReply):
                await rig.live(replace(call, tier="standard"))
            sent = rig.stub.requests[-1]
            line = rig.endpoint.line(call)
            # a batch has no tier to ask for, and is not streamed
            for name in ("service_tier", "stream", "stream_options", "return_progress"):
                sent.json.pop(name, None)
            assert json.loads(line.body) == sent.json
            assert line.path == sent.path
            assert len(line.body.splitlines()) == 1


async def test_requests_are_what_the_sdk_would_send(provider: str) -> None:
    async with _rig(provider, _book()) as rig:
        await rig.create(3)
        asked = rig.stub.requests
        if provider == "anthropic":
            (create,) = asked
            assert create.path == "POST /v1/messages/batches"
            TypeAdapter(list[Request]).validate_python(create.json["requests"])
            assert [one["custom_id"] for one in create.json["requests"]] == list(IDS[:3])
            return
        upload, create = asked
        assert (upload.path, create.path) == ("POST /v1/files", "POST /v1/batches")
        for part in ('name="purpose"\r\n\r\nbatch', 'filename="pb_1.jsonl"',
                     'name="expires_after[anchor]"\r\n\r\ncreated_at',
                     'name="expires_after[seconds]"\r\n\r\n1209600'):  # fmt: skip
            assert part in upload.json
        ((name, content),) = rig.book.files.values()
        assert name == "pb_1.jsonl"
        rows = [json.loads(line) for line in content.splitlines()]
        assert [row["custom_id"] for row in rows] == list(IDS[:3])
        assert {(row["method"], row["url"]) for row in rows} == {("POST", "/v1/chat/completions")}
        TypeAdapter(BatchCreateParams).validate_python(create.json, strict=True)
        assert create.json["metadata"] == {"posology": LABEL}


async def test_the_stub_speaks_the_sdks_types(provider: str) -> None:
    faults = {"expired": 0.2, "errored": 0.2}
    async with _rig(provider, _book(**faults)) as rig:
        batch = await rig.create()
        await rig.finished(batch)
        http = rig.endpoint._http._sdk  # type: ignore[attr-defined]
        if provider == "openai":
            found = await http.batches.retrieve(batch)
            assert Batch.model_validate(found.model_dump(), strict=True).status == "expired"
            return
        found = await http.messages.batches.retrieve(batch)
        assert MessageBatch.model_validate(found.model_dump()).processing_status == "ended"
        path = f"/v1/messages/batches/{batch}/results"
        rows = [json.loads(line) async for line in rig.endpoint._http.lines(path, model="")]  # type: ignore[attr-defined]
        assert len(TypeAdapter(list[MessageBatchIndividualResponse]).validate_python(rows)) == len(
            IDS
        )


async def test_lines_that_fail_or_expire_are_not_billed(provider: str) -> None:
    async with _rig(provider, _book(expired=0.3, errored=0.3)) as rig:
        results = await rig.finished(await rig.create())
        assert set(_fates(results)) == {
            BatchFate.SUCCEEDED,
            BatchFate.ERRORED,
            BatchFate.EXPIRED,
        }
        assert {one for one, result in results.items() if result.completion} == _billed(rig)
        for result in results.values():
            if result.fate is BatchFate.ERRORED:
                assert isinstance(result.error, ProviderOverloaded)
            elif result.fate is BatchFate.EXPIRED:
                assert isinstance(result.error, NotProcessed)
            if result.error is not None:
                assert result.error.usage == Usage()
                assert KEY not in str(result.error)


async def test_a_line_that_the_provider_refuses_says_why(provider: str) -> None:
    kind = "context_length_exceeded" if provider == "openai" else "invalid_request_error"
    book = BatchBook(lambda _: Status(code=400, kind=kind, message="prompt is too long"))
    async with _rig(provider, book) as rig:
        results = await rig.finished(await rig.create(2), IDS[:2])
        for result in results.values():
            assert result.fate is BatchFate.ERRORED
            assert isinstance(result.error, RequestRejected)
            assert result.error.usage == Usage()


async def test_a_usage_of_zeros_is_unknown(provider: str) -> None:
    book = BatchBook(lambda _: Reply(text="yes", usage=USAGE, zeros=True))
    async with _rig(provider, book) as rig:
        results = await rig.finished(await rig.create(2), IDS[:2])
        assert [one.completion and one.completion.text for one in results.values()] == ["yes"] * 2
        assert [one.completion and one.completion.usage for one in results.values()] == [None] * 2


async def test_vectors_of_zero_tokens_have_unknown_usage() -> None:
    async with _rig("openai", BatchBook(lambda _: Vectors(usage=Usage()))) as rig:
        line = rig.endpoint.line(rig.call(stage=Stage.EMBED))
        batch = await rig.endpoint.create({IDS[0]: line}, label=LABEL)
        (result,) = (await rig.finished(batch, IDS[:1])).values()
        assert result.completion is not None
        assert result.completion.usage is None


@pytest.mark.parametrize(
    ("code", "kind", "usage"), [(429, RateLimited, Usage()), (502, ProviderOverloaded, None)]
)
async def test_an_error_in_a_line_that_was_answered_is_of_its_own_kind(
    provider: str, code: int, kind: type[ProviderError], usage: Usage | None
) -> None:
    book = BatchBook(lambda _: Status(code=code, within=True, message="not now"))
    async with _rig(provider, book) as rig:
        results = await rig.finished(await rig.create(2), IDS[:2])
        for result in results.values():
            assert result.fate is BatchFate.ERRORED
            assert type(result.error) is kind
            assert result.error.usage == usage
            assert "not now" in str(result.error)
        assert _billed(rig) == set()


async def test_doubled_results_come_twice(provider: str) -> None:
    async with _rig(provider, _book(doubled=0.5)) as rig:
        batch = await rig.create()
        await rig.finished(batch)
        found = [one.id for one in await rig.results(batch)]
        assert len(IDS) < len(found) < 2 * len(IDS)
        assert set(found) == set(IDS)
        # the order is the provider's
        assert found != sorted(found)


async def test_a_line_that_cannot_be_read_may_have_been_billed(provider: str) -> None:
    async with _rig(provider, _book(broken=0.2, expired=0.2)) as rig:
        results = await rig.finished(await rig.create())
        unread = {one for one, found in results.items() if found.fate is BatchFate.UNREADABLE}
        assert unread
        for one in unread:
            error = results[one].error
            assert isinstance(error, MalformedReply)
            assert error.usage is None
        answered = {one for one, found in results.items() if found.completion is not None}
        assert answered | unread == _billed(rig)


async def test_ids_that_the_batch_never_had_may_have_been_billed(provider: str) -> None:
    async with _rig(provider, _book()) as rig:
        results = await rig.finished(await rig.create(3), (*IDS[1:3], "other"))
        assert [results[one].fate for one in (*IDS[1:3], "other")] == [
            BatchFate.SUCCEEDED,
            BatchFate.SUCCEEDED,
            BatchFate.UNREADABLE,
        ]
        assert IDS[0] not in results


async def test_reading_again_gets_all(provider: str) -> None:
    async with _rig(provider, _book(reads_failed=2)) as rig:
        batch = await rig.create()
        assert (await rig.endpoint.status(batch, model=rig.model)).ended
        with pytest.raises(ProviderOverloaded) as overloaded:
            await rig.results(batch)
        assert overloaded.value.usage is None
        with pytest.raises(ProviderUnreachable) as cut:
            await rig.results(batch)
        assert cut.value.usage is None
        assert len(await rig.results(batch)) == len(IDS)


async def test_a_record_that_cannot_be_read_loses_no_results(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _rig(provider, _book()) as rig:
        batch = await rig.create()
        assert (await rig.endpoint.status(batch, model=rig.model)).ended

        async def garbled(_: Any, batch: str, model: str) -> Any:
            raise MalformedReply(f"{batch} is no JSON", provider=provider, model=model)

        with monkeypatch.context() as patch:
            patch.setattr(type(rig.endpoint), "_batch", garbled)
            with pytest.raises(ProviderUnreachable):
                await rig.results(batch)
        assert len(await rig.results(batch)) == len(IDS)


async def test_lost_results_are_told_from_late_ones(provider: str) -> None:
    async with _rig(provider, _book(results_lost=1.0, polls=2)) as rig:
        batch = await rig.create()
        with pytest.raises(ProviderOverloaded):
            await rig.results(batch)
        await rig.endpoint.status(batch, model=rig.model)
        await rig.endpoint.status(batch, model=rig.model)
        with pytest.raises(MalformedReply) as lost:
            await rig.results(batch)
        assert lost.value.usage is None


async def test_a_cancelled_batch_keeps_what_was_answered(provider: str) -> None:
    async with _rig(provider, _book(polls=None)) as rig:
        batch = await rig.create()
        await rig.endpoint.cancel(batch, model=rig.model)
        assert (await rig.endpoint.status(batch, model=rig.model)).cancelling
        results = await rig.finished(batch)
        assert set(_fates(results)) == {BatchFate.SUCCEEDED, BatchFate.CANCELLED}
        assert {one for one, result in results.items() if result.completion} == _billed(rig)
        # once more, after its end
        await rig.endpoint.cancel(batch, model=rig.model)


@pytest.mark.parametrize("broken", [0.0, 1.0])
async def test_a_batch_whose_creation_was_not_confirmed_is_found(
    provider: str, broken: float
) -> None:
    async with _rig(provider, _book(creates_lost=1.0, broken=broken, polls=2)) as rig:
        with pytest.raises(ProviderUnreachable) as lost:
            await rig.create()
        assert lost.value.usage is None
        (batch,) = rig.book.batches
        if provider == "anthropic":
            # whose it is shows in its results alone, also where they are cut off
            assert await rig.find() == (None, False)
            rig.book.end_all()
        assert await rig.find() == (batch, True)


async def test_no_batch_is_surely_none_after_a_while(provider: str) -> None:
    async with _rig(provider, _book()) as rig:
        assert await rig.find() == (None, False)
        assert await rig.find(ago=APPEARS + 1) == (None, True)


async def test_batches_of_others_are_not_ours(provider: str) -> None:
    async with _rig(provider, _book()) as rig:
        others = [await rig.create(count, label=f"other{count}") for count in (2, len(IDS))]
        rig.book.end_all()
        mine = tuple(f"{one}x" for one in IDS)
        assert await rig.find(ids=mine, ago=APPEARS + 1) == (None, True)
        assert await rig.find(ids=mine, ago=APPEARS + 1, known=tuple(others)) == (None, True)


async def test_many_batches_are_listed_by_pages(provider: str) -> None:
    async with _rig(provider, _book()) as rig:
        batch = await rig.create()
        rig.book.end_all()
        for place in range(120):
            rig.book.create(provider, path="/", rows={f"x{place}": {}})
        rig.book.end_all()
        assert await rig.find() == (batch, True)


async def test_what_was_uploaded_for_no_batch_is_deleted() -> None:
    async with _rig("openai", _book()) as rig:
        rig.book.files["file-1"] = (f"{LABEL}.jsonl", "{}")
        rig.book.files["file-2"] = ("other.jsonl", "{}")
        assert await rig.find(ago=APPEARS + 1) == (None, True)
        assert list(rig.book.files) == ["file-2"]


async def test_a_batch_is_deleted_with_questions_and_replies(provider: str) -> None:
    async with _rig(provider, _book(expired=0.3)) as rig:
        batch = await rig.create()
        await rig.finished(batch)
        await rig.endpoint.discard(batch, model=rig.model)
        assert not rig.book.files
        assert not rig.book.batches[batch].results
        # once more: a crash may have come between
        await rig.endpoint.discard(batch, model=rig.model)


async def test_errors_of_requests_are_typed(provider: str) -> None:
    async with _rig(provider, _book()) as rig:
        with pytest.raises(ModelNotFound):
            await rig.endpoint.status("no/such?batch", model=rig.model)
        with pytest.raises(UnknownModel):
            rig.endpoint.line(rig.call(model="other:x"))
        with pytest.raises(RequestRejected):
            rig.endpoint.line(rig.call("\ud800"))


async def test_a_batch_that_was_not_created_is_known_not_to_be(provider: str) -> None:
    async with _rig(provider, _book()) as rig:
        pass
    # the provider is down now
    row = PROVIDERS[provider]
    assert row.batches is not None
    endpoint = row.batches(ProviderOptions(api_key=KEY, base_url=rig.url, timeout=30.0))
    with pytest.raises(ProviderUnreachable) as refused:
        await endpoint.create(rig.lines(), label=LABEL)
    assert refused.value.usage == Usage()
    await endpoint.aclose()


@pytest.mark.parametrize("label", ["", "a b", "x" * 65])
async def test_lines_that_are_no_batch_are_refused(provider: str, label: str) -> None:
    async with _rig(provider, _book()) as rig:
        with pytest.raises(ValueError, match="label"):
            await rig.create(label=label)
        mixed = rig.lines(2)
        mixed[IDS[0]] = replace(mixed[IDS[0]], model="openai:other")
        with pytest.raises(ValueError, match="one model"):
            await rig.endpoint.create(mixed, label=LABEL)
        assert not rig.stub.requests


async def test_a_batch_that_fails_validation_says_why() -> None:
    async with _rig("openai", _book()) as rig:
        lines = rig.lines(2)
        body = json.loads(lines[IDS[0]].body) | {"model": "another"}
        lines[IDS[0]] = replace(lines[IDS[0]], body=json.dumps(body))
        batch = await rig.endpoint.create(lines, label=LABEL)
        results = await rig.finished(batch, IDS[:2])
        for result in results.values():
            assert result.fate is BatchFate.ERRORED
            assert isinstance(result.error, RequestRejected)
            assert result.error.usage == Usage()
            assert "mismatched_model" in str(result.error)
        rig.book.batches[batch].refused = "token_limit_exceeded"
        (first, _) = (await rig.finished(batch, IDS[:2])).values()
        assert isinstance(first.error, RateLimited)
        assert first.error.usage == Usage()


async def test_embeddings_in_a_batch() -> None:
    async with _rig("openai", BatchBook(lambda _: Vectors(dim=8))) as rig:
        call = rig.call(stage=Stage.EMBED, model="openai:text-embedding-3-small", dimensions=8)
        batch = await rig.endpoint.create({"a": rig.endpoint.line(call)}, label=LABEL)
        (result,) = (await rig.finished(batch, ("a",))).values()
        assert result.completion is not None
        assert unpack(result.completion.text).shape == (2, 8)
        assert result.completion.served == "batch"


async def test_results_that_are_no_replies_are_not_read(provider: str) -> None:
    book = _book()
    async with _rig(provider, book) as rig:
        batch = await rig.create(2)
        assert (await rig.endpoint.status(batch, model=rig.model)).ended
        for result in book.batches[batch].results:
            if result.custom_id == IDS[0]:
                del result.body["choices" if provider == "openai" else "content"]
        results = await rig.finished(batch, IDS[:2])
        bad = results[IDS[0]]
        assert bad.fate is BatchFate.UNREADABLE
        assert isinstance(bad.error, ProviderError)
        # the reply was billed, and says how much
        assert bad.error.usage == USAGE
        assert results[IDS[1]].fate is BatchFate.SUCCEEDED


def test_providers_without_batches_have_no_endpoint() -> None:
    assert PROVIDERS["offline"].batches is None
