"""What every :class:`~posology.seams.Strategy` must do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import anyio
import pytest
from pydantic import BaseModel

from posology import errors
from posology.llm.structured import Structured
from posology.query import make_query
from posology.seams import Strategy
from posology.testing import ScriptedModel
from posology.types import (
    Answer,
    Call,
    Completion,
    Dose,
    Finish,
    Passage,
    Query,
    Refusal,
    Stage,
    Task,
    Usage,
)
from prompts.lengths import reply_tokens
from strategies import STRATEGIES, make
from strategies.compressed import CompressedRag
from tests.support.tasks import task_of

pytestmark = pytest.mark.anyio

PASSAGES = tuple(
    Passage(
        id=f"n:{i}",
        title=f"Note {i}",
        text=f"Drug {i} lowered mortality in {i + 2} trials. It was tolerated well by most.",
        year=2000 + i,
        publication_types=("Randomized Controlled Trial",),
    )
    for i in range(7)
)


@pytest.fixture(params=sorted(STRATEGIES))
def strategy(request: pytest.FixtureRequest) -> Strategy:
    return make(Dose(strategy=request.param))


@pytest.fixture
def name(request: pytest.FixtureRequest, strategy: Strategy) -> str:
    del strategy
    return str(request.node.callspec.params["strategy"])


def task(passages: Sequence[Passage] = PASSAGES, query: Query | None = None) -> Task:
    return task_of(query or make_query("Which drug lowered mortality?"), passages)


def obliging(call: Call) -> BaseModel:
    """Quote the first sentence of everything shown, and one sentence that is nowhere."""
    assert call.schema is not None
    quotes = [
        {"passage": f"P{i + 1}", "quote": e.sentences[0].of(e.passage.text)}
        for i, e in enumerate(call.excerpts)
    ]
    quotes.append({"passage": "P1", "quote": "Nobody ever wrote this sentence."})
    reply: dict[str, object] = {"answerable": True, "answer": "All of them.", "choice": None}
    if call.stage is Stage.EXTRACT:
        findings = [{"statement": "It lowered mortality.", "quotes": [q]} for q in quotes]
        reply = {"found": True, "findings": findings}
    elif call.stage is Stage.REDUCE:
        labels = [f"F{i + 1}" for i in range(len(call.excerpts) + 1)]
        reply |= {"evidence": labels, "claims": []}
    else:
        reply |= {"quotes": quotes}
    return call.schema.model_validate(reply)


def shown(model: ScriptedModel) -> set[str]:
    """Ids of the passages of which anything was shown."""
    return {e.passage.id for call in model.calls for e in call.excerpts}


def unobliging(call: Call) -> BaseModel:
    """Find nothing, in whatever form."""
    assert call.schema is not None
    fields = {
        "answerable": False,
        "answer": "It is not said.",
        "choice": None,
        "found": False,
        "quotes": [],
        "findings": [],
        "evidence": [],
        "claims": [],
    }
    known = {name: value for name, value in fields.items() if name in call.schema.model_fields}
    return call.schema.model_validate(known)


async def test_without_passages_it_refuses_and_spends_nothing(
    strategy: Strategy, name: str
) -> None:
    model = ScriptedModel([])
    refusal = await strategy(task(()), Structured(model))
    assert isinstance(refusal, Refusal)
    assert refusal.strategy == name
    assert refusal.reason.strip()
    assert model.calls == []


async def test_every_citation_is_in_its_source(strategy: Strategy, name: str) -> None:
    model = ScriptedModel(obliging)
    answer = await strategy(task(), Structured(model))
    assert isinstance(answer, Answer)
    assert answer.strategy == name
    texts = {p.id: p.text for p in PASSAGES}
    assert {c.passage_id for c in answer.citations} == shown(model)
    for citation in answer.citations:
        assert texts[citation.passage_id][citation.start : citation.end] == citation.quote
    assert len(set(answer.citations)) == len(answer.citations)
    assert answer.dropped_quotes >= 1


async def test_nothing_found_is_a_refusal(strategy: Strategy, name: str) -> None:
    refusal = await strategy(task(), Structured(ScriptedModel(unobliging)))
    assert isinstance(refusal, Refusal)
    assert refusal.strategy == name


async def test_calls_are_of_the_task(strategy: Strategy) -> None:
    model = ScriptedModel(obliging)
    asked = task()
    await strategy(asked, Structured(model))
    assert model.calls
    for call in model.calls:
        assert (call.model, call.max_tokens, call.query) == ("openai:test", 300, asked.query)
        assert call.schema is not None
        assert len(call.messages) == 2
        assert asked.query.text in call.messages[1].content
        assert call.prompt.digest
    everything = {p.id for p in PASSAGES}
    if isinstance(strategy, CompressedRag):
        assert shown(model) <= everything
    else:
        assert shown(model) == everything


async def test_calls_of_a_task_without_a_bound_have_their_stage_s_own(strategy: Strategy) -> None:
    model = ScriptedModel(obliging)
    await strategy(replace(task(), max_tokens=None), Structured(model))
    assert model.calls
    assert all(
        call.max_tokens == reply_tokens(call.stage, quotes=call.quotes) for call in model.calls
    )


async def test_the_same_task_is_the_same_calls(strategy: Strategy) -> None:
    """What a redelivered job replays from."""
    runs = []
    for _ in range(2):
        model = ScriptedModel(obliging)
        outcome = await strategy(task(), Structured(model))
        runs.append((sorted(map(repr, model.calls)), outcome))
    assert runs[0] == runs[1]


async def test_a_failing_provider_is_an_error(strategy: Strategy) -> None:
    def fail(_: Call) -> BaseException:
        return errors.RateLimited("wait", provider="openai", model="openai:test")

    with pytest.raises(errors.ProviderError):
        await strategy(task(), Structured(ScriptedModel(fail)))


@pytest.mark.parametrize(
    "error",
    [errors.StoreUnavailable("no", address="redis://x"), ZeroDivisionError("a defect")],
    ids=["store", "defect"],
)
async def test_other_errors_come_out_as_they_are(strategy: Strategy, error: Exception) -> None:
    with pytest.raises(type(error)):
        await strategy(task(), Structured(ScriptedModel(lambda _: error)))


async def test_a_safety_refusal_never_becomes_an_answer(strategy: Strategy) -> None:
    def filtered(_: Call) -> Completion:
        return Completion(
            text="I cannot.", usage=Usage(input=1), finish=Finish.FILTERED, served_model="m"
        )

    try:
        outcome = await strategy(task(), Structured(ScriptedModel(filtered)))
    except errors.ProviderError:
        return
    assert isinstance(outcome, Refusal)
    assert "safety" in outcome.reason


async def test_it_can_be_cancelled(strategy: Strategy) -> None:
    slow = Structured(ScriptedModel(obliging, latency=10.0))
    with anyio.move_on_after(0.05) as scope:
        await strategy(task(), slow)
    assert scope.cancelled_caught


async def test_a_verdict_that_was_not_asked_for_is_not_given(strategy: Strategy) -> None:
    answer = await strategy(
        task(query=make_query("Did it?", form="yes_no")), Structured(ScriptedModel(obliging))
    )
    assert isinstance(answer, Answer)
    assert answer.choice is None
    assert any("no verdict" in note for note in answer.notes)
