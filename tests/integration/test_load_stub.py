"""The stub for load: real processes, real sockets, both SDKs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import pytest

from posology.budget.prices.book import packaged
from posology.errors import ProviderUnreachable
from posology.llm.accounting import Account
from posology.llm.providers.anthropic import AnthropicAdapter
from posology.llm.providers.openai import OpenAIAdapter
from posology.llm.providers.places import Places
from posology.llm.retry import RetryPolicy
from posology.llm.stack import build
from posology.testing import (
    Cut,
    Faults,
    LoadStub,
    Malformed,
    Recorded,
    Reply,
    Status,
    Step,
    by_bytes,
)
from posology.testing.provider.server import LoadServer
from posology.types import Call, Outcome, Usage
from tests.support.calls import call_to

pytestmark = pytest.mark.anyio

MODELS = {"openai": "openai:gpt-4o-mini", "anthropic": "anthropic:claude-haiku-4-5"}
# so many that chance cannot fail a call
QUICK = RetryPolicy(attempts=20, base=0.001, cap=0.002, deadline=20.0)
FENCED = "[[P1 ab12]]\ntitle: A trial\ntext: Aspirin lowered the risk. It did.\n[[/P1 ab12]]"


def a_call(provider: str, content: str = FENCED) -> Call:
    return call_to(MODELS[provider], content)


def adapter_to(provider: str, stub: LoadStub) -> OpenAIAdapter | AnthropicAdapter:
    if provider == "openai":
        return OpenAIAdapter(api_key="any", base_url=stub.openai_url)
    return AnthropicAdapter(api_key="any", base_url=stub.anthropic_url)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_what_an_account_lacks_stands_in_the_ledger(provider: str) -> None:
    faults = Faults(rate_limited=0.1, retry_after=0.001, errors=0.1, cuts=0.2)
    with LoadStub(faults, seed=7) as stub:
        adapter = adapter_to(provider, stub)
        account = Account()
        complete = build(
            adapter,
            journal=account,
            prices=packaged(),
            bound=by_bytes,
            retry=QUICK,
            limit=Places(20),
        )
        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(complete, a_call(provider))
        await adapter.aclose()
        ledger, stats = stub.ledger(), stub.stats()
    outcomes = account.outcomes
    assert outcomes[Outcome.OK] == 100
    assert len(ledger) == len(account.attempts) == stats["requests"]
    assert set(stats["played"]) == {
        "reply",
        "status 429",
        "status 500",
        "cut before the work",
        "cut before the reply",
        "cut within the reply",
    }
    # what was delivered is in the account, by the provider's own id, and with the same usage
    delivered = {e["id"]: Usage(**e["usage"]) for e in ledger if e["delivered"] and e["finished"]}
    entered = {a.request_id: a.usage for a in account.attempts if a.outcome is Outcome.OK}
    assert delivered == entered
    lost = [e for e in ledger if e["finished"] and not e["delivered"]]
    assert len(lost) == stats["lost"] > 0
    # the account knows that it does not know
    assert account.unknown >= len(lost)
    assert len({e["id"] for e in ledger}) == len(ledger)


async def test_a_lost_reply_is_found_by_the_id_that_was_chosen_for_it() -> None:
    with LoadStub(Faults(cuts=1.0, cuts_after_work=1.0)) as stub:
        adapter = adapter_to("openai", stub)
        with pytest.raises(ProviderUnreachable):
            await adapter(a_call("openai"), attempt_id="chosen-1")
        await adapter.aclose()
        (entry,) = stub.ledger()
        assert (entry["client_id"], entry["finished"], entry["delivered"]) == (
            "chosen-1",
            True,
            False,
        )
        assert entry["usage"]["input"] > 0
        stub.reset()
        assert stub.ledger() == []


async def test_a_replier_of_ones_own() -> None:
    with LoadStub(reply=json.dumps) as stub:
        adapter = adapter_to("openai", stub)
        completion = await adapter(a_call("openai"))
        await adapter.aclose()
    assert json.loads(completion.text)["messages"][0]["content"] == FENCED


def test_a_replier_must_be_one_that_another_process_can_import() -> None:
    with pytest.raises(ValueError, match="lambda"):
        LoadStub(reply=lambda asked: "")


def test_a_stub_that_cannot_start_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    with LoadStub() as stub:
        port = int(stub.url.rpartition(":")[2])
        with pytest.raises(RuntimeError, match="did not start"), LoadStub(port=port):
            pass
    assert "address already in use" in capfd.readouterr().err


@asynccontextmanager
async def serving(
    answer: Callable[[Recorded], Step],
) -> AsyncIterator[tuple[LoadServer, asyncio.StreamReader, asyncio.StreamWriter]]:
    server = LoadServer(answer)
    listening = await server.start()
    reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname()[:2])
    try:
        yield server, reader, writer
    finally:
        writer.close()
        await writer.wait_closed()
        listening.close()
        await listening.wait_closed()


def request(body: bytes = b'{"model": "m"}', path: str = "/v1/messages", **headers: str) -> bytes:
    given = {"content-length": str(len(body)), **headers}
    lines = [f"POST {path} HTTP/1.1", *(f"{n.replace('_', '-')}: {v}" for n, v in given.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def response(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in head[1:] if line)
    return (
        int(head[0].split(" ")[1]),
        headers,
        await reader.readexactly(int(headers["content-length"])),
    )


async def test_a_connection_serves_requests_one_after_another() -> None:
    async with serving(lambda _: Reply(text="yes", latency=0.01)) as (server, reader, writer):
        sent = request(x_client_request_id="a") + request(x_client_request_id="b")
        # in pieces, and the second before the first is answered
        writer.write(sent[:30])
        await asyncio.sleep(0.01)
        writer.write(sent[30:])
        replies = [await response(reader) for _ in range(2)]
        ids = [headers["request-id"] for _, headers, _ in replies]
        assert [e["id"] for e in server.ledger.entries()] == ids
        assert [e["client_id"] for e in server.ledger.entries()] == ["a", "b"]
        assert server.ledger.stats()["peak_in_flight"] == 1


async def test_requests_on_many_connections_are_under_way_at_once() -> None:
    async with serving(lambda _: Reply(text="yes", latency=0.01)) as (server, reader, writer):
        host, port = writer.get_extra_info("peername")[:2]
        streams = [(reader, writer)]
        streams += [await asyncio.open_connection(host, port) for _ in range(29)]
        # what is sent in one turn of the loop is all there before the first reply is due
        for _, out in streams:
            out.write(request())
        assert {(await response(one))[0] for one, _ in streams} == {200}
        stats = server.ledger.stats()
        for _, out in streams[1:]:
            out.close()
    assert (stats["finished"], stats["peak_in_flight"], stats["connections"]) == (30, 30, 30)


async def test_a_reply_drips_and_the_next_one_waits_for_it() -> None:
    async with serving(lambda _: Reply(text="yes" * 50, drip=0.2)) as (server, reader, writer):
        body = b'{"model": "m", "max_tokens": 9}'
        writer.write(
            request(body, x_client_request_id="a") + request(body, x_client_request_id="b")
        )
        bodies = [json.loads((await response(reader))[2]) for _ in range(2)]
        assert [body["content"][0]["text"] for body in bodies] == ["yes" * 50] * 2
        entries = server.ledger.entries()
        assert [entry["client_id"] for entry in entries] == ["a", "b"]


async def test_a_client_that_leaves_while_a_reply_drips_is_billed_and_has_no_reply() -> None:
    async with serving(lambda _: Reply(text="yes" * 50, drip=2.0)) as (server, reader, writer):
        writer.write(request())
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(1)
        writer.close()
        with anyio.fail_after(90):
            while not (entries := server.ledger.entries())[0]["ended"]:  # noqa: ASYNC110 - the server has no event for it
                await anyio.sleep(0.02)
        assert (entries[0]["finished"], entries[0]["delivered"]) == (True, False)


async def test_a_client_that_left_is_billed_all_the_same() -> None:
    async with serving(lambda _: Reply(text="yes", latency=2.0)) as (server, _, writer):
        writer.write(request())
        while not server.ledger.entries():  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(0.01)
        (entry,) = server.ledger.entries()
        assert (entry["finished"], entry["ended"]) == (False, None)
        assert server.ledger.stats()["in_flight"] == 1
        writer.close()
        while entry["ended"] is None:
            await asyncio.sleep(0.01)
            (entry,) = server.ledger.entries()
        assert (entry["finished"], entry["delivered"]) == (True, False)
        assert server.ledger.stats()["lost"] == 1


@pytest.mark.parametrize(
    ("step", "played", "finished", "sent"),
    [
        (Cut(), "cut before the work", False, 0),
        (Cut(of=Reply(text="yes")), "cut before the reply", True, 0),
        (Cut(after_bytes=5), "cut within the reply", True, 5),
        (Cut(after_bytes=7, of=Reply(text="yes")), "cut within the reply", True, 7),
    ],
)
async def test_cuts(step: Step, played: str, finished: bool, sent: int) -> None:
    async with serving(lambda _: step) as (server, reader, writer):
        writer.write(request())
        received = await reader.read()
        assert len(received.partition(b"\r\n\r\n")[2]) == sent
        assert bool(received) == bool(sent)
        (entry,) = server.ledger.entries()
        assert (entry["played"], entry["finished"]) == (played, finished)
        assert entry["delivered"] is False


@pytest.mark.parametrize(
    ("step", "code", "body"),
    [
        (Status(code=529), 529, b"overloaded_error"),
        (Malformed(body=b"<html>"), 200, b"<html>"),
    ],
)
async def test_what_is_not_a_success_is_not_billed(step: Step, code: int, body: bytes) -> None:
    async with serving(lambda _: step) as (server, reader, writer):
        writer.write(request())
        got, headers, text = await response(reader)
        assert got == code
        assert body in text
        (entry,) = server.ledger.entries()
        assert (entry["id"], entry["finished"], entry["delivered"]) == (
            headers["request-id"],
            False,
            True,
        )
        assert entry["usage"] is None


async def test_its_own_paths() -> None:
    async with serving(lambda _: Reply(text="yes")) as (_, reader, writer):
        writer.write(request() * 2 + request(path="/v1/models"))
        codes = [(await response(reader))[0] for _ in range(3)]
        assert codes == [200, 200, 404]
        writer.write(b"GET /_ledger?start=1 HTTP/1.1\r\n\r\n")
        _, _, body = await response(reader)
        assert [e["provider"] for e in json.loads(body)] == ["anthropic", None]
        writer.write(request(path="/_reset") + b"GET /_stats HTTP/1.1\r\n\r\n")
        await response(reader)
        _, _, body = await response(reader)
        assert json.loads(body)["requests"] == 0


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"hello\r\n\r\n", 400),
        (request(b"not json"), 400),
        (request(content_length="many"), 400),
        (request(content_length="99999999999"), 413),
        (request(transfer_encoding="chunked"), 411),
        (b"x" * 70_000, 431),
    ],
)
async def test_what_it_does_not_read_is_refused(sent: bytes, code: int) -> None:
    async with serving(lambda _: Reply(text="yes")) as (server, reader, writer):
        writer.write(sent)
        assert (await response(reader))[0] == code
        assert await reader.read() == b""
        assert server.ledger.entries() == []
