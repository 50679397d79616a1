"""Vectors that are bought: each call reserved, sent, settled and listed, none paid for twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import anyio
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.budget.bounds.calls import CallBound
from posology.budget.ledger.journal import LedgerJournal
from posology.budget.ledger.memory import MemoryLedger
from posology.budget.prices.book import packaged
from posology.errors import (
    BudgetExhausted,
    ConfigurationError,
    EmbedderUnavailable,
    MalformedReply,
    RequestRejected,
    UnpricedModel,
)
from posology.index.embedders import load
from posology.index.embedders.paid import embedder as cutting
from posology.index.embedders.paid.embedder import Bought, OpenAIEmbedder
from posology.index.embedders.paid.models import parse
from posology.llm.accounting import Account
from posology.llm.memo import call_key
from posology.llm.providers.openai import OpenAIAdapter
from posology.llm.providers.vectors import BadVectors, pack, read_vectors, unpack
from posology.llm.retry import RetryPolicy
from posology.llm.stack import build
from posology.seams import Complete, Embedder, PaidEmbedder
from posology.store.memory import ProcessMemory
from posology.testing import Malformed, Recorded, Status, Step, StubProvider, Vectors
from posology.text.bounds import words_bound
from posology.text.sentences import split
from posology.types import Encoded, Limits, Outcome, Passage, Stage, Usage

pytestmark = pytest.mark.anyio

NAME = "openai:text-embedding-3-small@32"
TEXTS = ["Aspirin lowered the risk.", "The dose was 5 mg.", "Aspirin lowered the risk.", ""]


def embedder(name: str = NAME) -> OpenAIEmbedder:
    made = load(name)
    assert isinstance(made, OpenAIEmbedder)
    return made


class Till:
    """A tenant's money, and the stack that spends it at a stub."""

    def __init__(self, stub: StubProvider, limits: Limits | None = None) -> None:
        self.account = Account()
        self.ledger = MemoryLedger(tenant="clinic", limits=limits or Limits())
        self.adapter = OpenAIAdapter(api_key="any", base_url=stub.openai_url)

    def complete(self, cap: str | None = None) -> Complete:
        return build(
            self.adapter,
            journal=LedgerJournal(
                self.ledger, self.account, cap=None if cap is None else Decimal(cap)
            ),
            prices=packaged(),
            bound=CallBound(),
            retry=RetryPolicy(attempts=2, base=0.0),
        )


async def bought(
    script: Sequence[Step] | Callable[[Recorded], Step],
    texts: Sequence[str] = TEXTS,
    name: str = NAME,
) -> tuple[np.ndarray, Till, tuple[Recorded, ...]]:
    with StubProvider(script) as stub:
        till = Till(stub)
        vectors = await embedder(name).encode(texts, till.complete(), tenant="clinic")
        await till.adapter.aclose()
        return vectors, till, stub.requests


async def test_equal_texts_are_bought_once_and_come_in_the_order_of_the_texts() -> None:
    vectors, till, (request,) = await bought([Vectors()])
    assert vectors.shape == (4, 32)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(vectors[0], vectors[2])
    assert request.path == "/v1/embeddings"
    assert request.json == {
        "model": "text-embedding-3-small",
        "input": [TEXTS[0], TEXTS[1], cutting.EMPTY],
        "dimensions": 32,
    }
    (attempt,) = till.account.attempts
    words = sum(len(text.split()) + 2 for text in request.json["input"])
    assert attempt.stage is Stage.EMBED
    assert attempt.usage == Usage(input=words)
    assert attempt.cost == Decimal("0.02") * words / 1_000_000
    assert attempt.reserved >= attempt.cost
    assert attempt.outcome is Outcome.OK


async def test_what_was_bought_is_not_bought_again_and_is_nobody_elses() -> None:
    memory = ProcessMemory()
    with StubProvider(lambda _: Vectors()) as stub:
        till = Till(stub)
        first = await embedder().keeping(memory).encode(TEXTS, till.complete(), tenant="clinic")
        again = embedder().keeping(memory)
        second = await again.encode(TEXTS[::-1], till.complete(), tenant="clinic")
        counts = [len(stub.requests)]
        np.testing.assert_array_equal(first, second[::-1])
        kept = again.kept(TEXTS[0], tenant="clinic")
        assert kept is not None
        np.testing.assert_array_equal(kept, first[0])
        assert again.missing(TEXTS, tenant="clinic") == []
        assert again.missing(TEXTS, tenant="other") != []
        await again.encode(TEXTS, till.complete(), tenant="other")
        # vectors of another length are others
        longer = embedder("openai:text-embedding-3-small@64").keeping(memory)
        await longer.encode(TEXTS[:1], till.complete(), tenant="clinic")
        assert [*counts, len(stub.requests)] == [1, 3]
        await till.adapter.aclose()


def test_what_one_server_gave_does_not_serve_for_another() -> None:
    memory = ProcessMemory()

    def check(server: str | None, missing: int) -> None:
        own = embedder().keeping(memory, server)
        assert len(own.missing(TEXTS[:1], tenant="clinic")) == missing

    with StubProvider(lambda _: Vectors()) as stub:

        async def first() -> None:
            till = Till(stub)
            own = embedder().keeping(memory, "http://localhost:8000/v1/")
            await own.encode(TEXTS[:1], till.complete(), tenant="clinic")
            await till.adapter.aclose()

        anyio.run(first)
    check("http://localhost:8000/v1", 0)
    check(None, 1)
    check("https://api.openai.com/v1", 1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows[:-1], "2 vectors for 3 texts"),
        (lambda rows: [row[:-1] for row in rows], "31 numbers, not 32"),
        (lambda rows: [*rows[:-1], [*rows[-1], 1.0]], "32, 33 numbers, not 32"),
        (lambda rows: [*rows[:-1], [float("nan")] * 32], "not a number"),
        (lambda rows: [*rows[:-1], [0.0] * 32], "all 0"),
        (lambda rows: [*rows[:-1], ["1"] * 32], "not a number"),
        (lambda rows: [*rows[:-1], []], "not a list of numbers"),
    ],
)
async def test_vectors_that_are_not_those_asked_for_are_paid_for_and_refused(
    change: Callable[[list[list[float]]], list[list[float]]], said: str
) -> None:
    with StubProvider(lambda _: Vectors(change=change)) as stub:
        till = Till(stub)
        with pytest.raises(MalformedReply, match=said):
            await embedder().encode(TEXTS, till.complete(), tenant="clinic")
        await till.adapter.aclose()
    # the next ones would be as these are, and paid for
    assert [a.outcome for a in till.account.attempts] == [Outcome.UNUSABLE]
    assert all(a.cost for a in till.account.attempts)


async def test_a_server_whose_vectors_are_longer_than_was_said_is_refused_once() -> None:
    with StubProvider(lambda _: Vectors(dim=24)) as stub:
        till = Till(stub)
        own = embedder("openai:text-embedding-ada-002=1536")
        with pytest.raises(MalformedReply, match="3 vectors of 24 numbers, not 3 of 1536"):
            await own.encode(TEXTS, till.complete(), tenant="clinic")
        assert len(stub.requests) == 1
        assert "dimensions" not in stub.requests[0].json
        await till.adapter.aclose()
    assert till.account.charged > 0


async def test_faults_are_tried_again_and_each_attempt_is_listed() -> None:
    vectors, till, requests = await bought([Status(code=503), Vectors()])
    assert vectors.shape == (4, 32)
    assert len(requests) == 2
    assert [(a.call, a.attempt, a.outcome) for a in till.account.attempts] == [
        (1, 1, Outcome.FAILED),
        (1, 2, Outcome.OK),
    ]
    with pytest.raises(MalformedReply):
        await bought(lambda _: Malformed())
    with pytest.raises(RequestRejected):
        await bought([Status(code=400)])


async def test_an_error_in_a_reply_of_status_200_is_not_charged() -> None:
    _, till, _ = await bought([Status(code=429, within=True), Vectors()])
    first, _ = till.account.attempts
    assert (first.error, first.cost) == ("RateLimited", Decimal(0))


@pytest.mark.parametrize("usage", [None, Usage()])
async def test_a_reply_without_usage_is_charged_at_its_bound(usage: Usage | None) -> None:
    _, till, _ = await bought([Vectors(usage=usage)])
    (attempt,) = till.account.attempts
    assert attempt.cost is None
    assert attempt.charged == attempt.reserved > 0


async def test_a_budget_that_is_spent_sends_nothing_and_keeps_what_was_bought() -> None:
    long = ["risk of stroke in adults " * 300 + str(place) for place in range(60)]
    with StubProvider(lambda _: Vectors()) as stub:
        till, own = Till(stub), embedder()
        costs = [
            packaged().worst(own.model, input_tokens=CallBound()(call), output_tokens=0)
            for call in own.missing(long, tenant="clinic")
        ]
        assert len(costs) > 1
        with pytest.raises(BudgetExhausted):
            await own.encode(long, till.complete(str(costs[0] * 2)), tenant="clinic")
        assert 0 < len(stub.requests) < len(costs)
        left = own.missing(long, tenant="clinic")
        assert 0 < len(left) < len(costs)
        await own.encode(long, till.complete(), tenant="clinic")
        assert own.missing(long, tenant="clinic") == []
        sent = [text for request in stub.requests for text in request.json["input"]]
        assert sorted(sent) == sorted(long)
        await till.adapter.aclose()
    (balance, *_) = [b for b in await till.ledger.balances() if b.cap is None or b.spent]
    assert balance.reserved == 0


async def test_an_unknown_price_sends_nothing() -> None:
    with StubProvider([]) as stub:
        till = Till(stub)
        with pytest.raises(UnpricedModel):
            await embedder("openai:nobody/knows=32").encode(TEXTS, till.complete(), tenant="clinic")
        assert stub.requests == ()
        await till.adapter.aclose()


def test_it_has_nothing_to_spend_by_itself() -> None:
    own: Embedder = embedder()
    assert isinstance(own, PaidEmbedder)
    for refused in (
        lambda: own.encode_query("dose"),
        lambda: own.embed_queries(["dose"]),
        lambda: own.embed_passages([], []),
    ):
        with pytest.raises(ConfigurationError, match="paid for"):
            refused()


async def test_passages_come_with_their_sentences() -> None:
    passages = [
        Passage(id="a", title="Aspirin", text="It lowered the risk. The dose was 5 mg."),
        Passage(id="b", text=""),
        Passage(id="c", text="No stroke in adults."),
    ]
    spans = [split(passage.text) for passage in passages]
    with StubProvider(lambda _: Vectors()) as stub:
        till, own = Till(stub), embedder()

        async def inside() -> list[Encoded]:
            def buy(texts: Sequence[str]) -> np.ndarray:
                return anyio.from_thread.run(
                    lambda: own.encode(texts, till.complete(), tenant="clinic")
                )

            blocking = Bought(own, buy)
            return await anyio.to_thread.run_sync(lambda: blocking.embed_passages(passages, spans))

        encoded = await inside()
        assert stub.requests[0].json["input"] == [
            "Aspirin. It lowered the risk. The dose was 5 mg.",
            cutting.EMPTY,
            "No stroke in adults.",
            "It lowered the risk.",
            "The dose was 5 mg.",
        ]
        for spans_of, one in zip(spans, encoded, strict=True):
            assert one.vector.shape == (32,)
            assert one.sentence_vectors.shape == (len(spans_of), 32)
        np.testing.assert_array_equal(encoded[2].vector, encoded[2].sentence_vectors[0])
        await till.adapter.aclose()


@given(st.lists(st.text(max_size=30) | st.just("risk of stroke " * 900), max_size=600))
def test_calls_hold_all_texts_in_order_within_their_limits(texts: list[str]) -> None:
    made = list(cutting.calls_for(texts, parse("text-embedding-3-small")))
    assert [m.content for call in made for m in call.messages] == texts
    for call in made:
        assert 1 <= len(call.messages) <= cutting.TEXTS
        tokens = sum(words_bound(m.content) for m in call.messages)
        assert tokens <= cutting.TOKENS or len(call.messages) == 1


@given(text=st.text(max_size=200), limit=st.integers(1, 60))
def test_what_is_sent_is_a_beginning_that_the_model_takes(text: str, limit: int) -> None:
    sent = cutting.sent(text, limit)
    assert sent == cutting.EMPTY or (text.startswith(sent) and sent.strip())
    if sent != cutting.EMPTY:
        assert words_bound(sent) <= limit or len(sent) == 1
    if text.strip() and words_bound(text) <= limit:
        assert sent == text


@given(rows=st.integers(1, 5), width=st.integers(1, 9), seed=st.integers(0, 99))
def test_vectors_are_read_again_as_they_were_written(rows: int, width: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(rows, width)).astype(np.float32)
    np.testing.assert_array_equal(unpack(pack(vectors)), vectors)


@pytest.mark.parametrize("text", ["", "a reply", "2x2:", "2x2:AAAA", "x:AAAA", "1x1:é"])
def test_a_text_without_vectors_is_said_to_be_one(text: str) -> None:
    with pytest.raises(BadVectors):
        unpack(text)


def test_vectors_go_by_their_index() -> None:
    body = {"data": [{"index": 1, "embedding": [1, 2]}, {"index": 0, "embedding": [3, 4.0]}]}
    np.testing.assert_array_equal(read_vectors(body, texts=2, dimensions=None), [[3, 4], [1, 2]])
    twice = {"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [2]}]}
    for broken in (twice, {}, {"data": [{"index": 5, "embedding": [1]}, {}]}, {"data": [1, 2]}):
        with pytest.raises(BadVectors):
            read_vectors(broken, texts=2, dimensions=None)


@pytest.mark.parametrize(
    ("text", "name", "dim", "asked", "limit"),
    [
        ("text-embedding-3-small", "text-embedding-3-small", 1536, False, 8191),
        ("text-embedding-3-large@256", "text-embedding-3-large", 256, True, 8191),
        ("text-embedding-3-large@3072", "text-embedding-3-large", 3072, False, 8191),
        ("BAAI/bge-base-en-v1.5=768,512", "BAAI/bge-base-en-v1.5", 768, False, 512),
        ("Qwen/Qwen3-Embedding-8B@1024", "Qwen/Qwen3-Embedding-8B", 1024, True, 8191),
        ("ft:a:b=8", "ft:a:b", 8, False, 8191),
    ],
)
def test_a_name_says_what_has_to_be_known(
    text: str, name: str, dim: int, asked: bool, limit: int
) -> None:
    found = parse(text)
    assert (found.name, found.dim, found.asked, found.limit) == (name, dim, asked, limit)
    assert load(f"openai:{text}").dim == dim


@pytest.mark.parametrize(
    "text",
    ["", "unknown", "unknown@0", "text-embedding-3-small@4000", "text-embedding-3-small=256",
     "text-embedding-ada-002@256"],
)  # fmt: skip
def test_a_name_that_does_not_say_it_is_refused(text: str) -> None:
    with pytest.raises(EmbedderUnavailable) as raised:
        load(f"openai:{text}")
    assert raised.value.embedder == f"openai:{text}"


def test_calls_that_ask_for_other_lengths_are_others() -> None:
    one, other = (
        next(cutting.calls_for(["dose"], parse(f"text-embedding-3-small@{dim}")))
        for dim in (32, 64)
    )
    assert call_key(one) != call_key(other)
