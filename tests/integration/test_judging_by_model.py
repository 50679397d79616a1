"""A language model judges the sentences of an answer by one call, which is reserved, settled, recorded and estimated."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import pytest

from orchestrator.question.answering import Answerer, Patience
from orchestrator.question.estimates.costs import Estimator
from orchestrator.question.estimates.tokens import Counting, packaged_counter
from orchestrator.question.estimates.typical import Typical
from orchestrator.question.request import AskRequest, JobRequest, Request
from orchestrator.settings import Settings
from posology.budget.bounds.calls import CallBound
from posology.budget.ledger.journal import LedgerJournal
from posology.budget.ledger.memory import MemoryLedger
from posology.budget.prices.book import packaged
from posology.errors import (
    HeadroomReserved,
    InvalidQuery,
    JobCancelled,
    PosologyError,
    ProviderOverloaded,
    StoreUnavailable,
)
from posology.llm.accounting import Account
from posology.llm.calls import Caller
from posology.llm.retry import RetryPolicy
from posology.llm.stack import build
from posology.query import make_query
from posology.seams import Journal
from posology.testing import ScriptedJudge, ScriptedModel
from posology.types import (
    Answer,
    Backing,
    Call,
    Completion,
    Dose,
    Finish,
    JobState,
    Passage,
    Rule,
    Stage,
    Support,
    Task,
)
from prompts.answer import CitedReply, Said
from strategies import make as make_strategy
from strategies.evidence import whole
from strategies.support.judging import LONGEST, MOST
from tests.integration.jobs_store.helpers import LEASE, MODEL, Bench, request
from tests.integration.jobs_store.local import Gate, Local, killed, of, reply, runner
from tests.support.adapters import sending
from tests.support.holding import Holding, used
from tests.support.tasks import retrieval_of

if TYPE_CHECKING:
    from posology.testing.model import ScriptedReply

pytestmark = pytest.mark.anyio

PASSAGE = Passage(
    id="p1",
    title="Drug 0 and stroke",
    text="Drug 0 lowered the risk of stroke. It was given for four weeks. Pain fell in both groups.",
)
QUERY = make_query("Does drug 0 lower the risk of stroke?")
TASK = Task(query=QUERY, retrieval=retrieval_of(QUERY, [PASSAGE]), model=MODEL, max_tokens=None)
FEWER = Said(text="Strokes were fewer with drug 0.", sentences=["1.1"])
PAIN = Said(text="Pain fell most in the second group.", sentences=["1.3"])
REPEATED = Said(text="Drug 0 lowered the risk of stroke.", sentences=["1.1"])
NUMBER = Said(text="Drug 0 lowered the risk of stroke by 20%.", sentences=["1.1"])
BOUND = CallBound()
WITHOUT_END = Patience()


def saying(
    verdicts: Sequence[str] | Callable[[Call], ScriptedReply], *said: Said
) -> Callable[[Call], ScriptedReply]:
    """Answers with statements, and judges them as told."""

    def script(call: Call) -> ScriptedReply:
        if call.stage is not Stage.JUDGE:
            return CitedReply(answerable=True, statements=list(said), choice=None)
        return verdicts(call) if callable(verdicts) else json.dumps({"verdicts": verdicts})

    return script


async def answer(
    script: Callable[[Call], ScriptedReply],
    *,
    journal: Journal | None = None,
    patience: Patience = WITHOUT_END,
    support_model: str | None = None,
) -> tuple[Answer, ScriptedModel]:
    """Answer in the mode ``model``; the packaged judge, where it is asked, is sure of everything."""
    model = ScriptedModel(script)
    complete = build(
        sending(model),
        journal=journal or Account(),
        prices=packaged(),
        bound=BOUND,
        retry=RetryPolicy(attempts=2, base=0.001, deadline=10),
        caller=Caller(wait_timeout=0.0),
    )
    made = await Answerer(lambda: ScriptedJudge(lambda *_: (0.99, 0.0), name="packaged"))(
        partial(make_strategy(Dose(strategy="direct")), TASK),
        complete,
        request=Request(query=QUERY, model=MODEL, support="model", support_model=support_model),
        excerpts=whole(TASK.retrieval.passages),
        patience=patience,
    )
    assert isinstance(made, Answer)
    return made, model


def support_of(made: Answer) -> Support:
    """What was found of its sentences."""
    assert made.support is not None
    return made.support


async def test_one_call_judges_all_sentences_and_its_words_are_shown() -> None:
    account = Account()
    made, model = await answer(
        saying(["supported", "not said"], FEWER, PAIN, REPEATED), journal=account
    )
    support = support_of(made)
    fewer, pain, repeated = support.sentences
    assert (fewer.backing, fewer.probability, fewer.failed) == (Backing.SUPPORTED, None, ())
    assert (pain.backing, pain.failed) == (Backing.UNSUPPORTED, (Rule.UNSAID,))
    assert [str(one) for one in pain.differences] == ["the quote does not seem to say this"]
    # it repeats its quote, and is not judged
    assert repeated.backing is Backing.SUPPORTED
    assert support.judge == model.calls[-1].model.partition(":")[2]
    assert [one.stage for one in account.attempts] == [Stage.ANSWER, Stage.JUDGE]
    assert account.attempts[-1].prompt.name == "judge"
    assert made.notes[-1].startswith("1 of 3 sentences differs")
    (asked,) = [one.content for one in model.calls[-1].messages if "Code:" in one.content]
    assert "statement: Strokes were fewer with drug 0." in asked
    assert "evidence: Drug 0 and stroke. Drug 0 lowered the risk of stroke." in asked
    assert "second group" in asked
    assert asked.count("statement: ") == 2


@pytest.mark.parametrize(
    ("verdict", "said", "backing", "failed", "disagrees"),
    [
        ("contradicted", FEWER, Backing.CONTRADICTED, (Rule.OPPOSITE,), True),
        # a rule that objects is never overruled
        ("Supported.", NUMBER, Backing.UNCLEAR, (Rule.NUMBER,), True),
        ("not_said", NUMBER, Backing.UNSUPPORTED, (Rule.NUMBER,), False),
        ("contradicted", NUMBER, Backing.CONTRADICTED, (Rule.NUMBER,), False),
    ],
)
async def test_verdicts_beside_rules(
    verdict: str, said: Said, backing: Backing, failed: tuple[Rule, ...], disagrees: bool
) -> None:
    made, _ = await answer(saying([verdict], said))
    support = support_of(made)
    (one,) = support.sentences
    assert (one.backing, one.failed, one.disagrees) == (backing, failed, disagrees)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (lambda _: ProviderOverloaded("down", provider="openai", model="x"), "failed"),
        (lambda _: "no JSON at all", "failed"),
        (lambda _: '{"verdicts":["supported","supported"]}', "failed"),
        (
            lambda _: Completion(
                text="I cannot.", usage=None, finish=Finish.FILTERED, served_model="x"
            ),
            "safety system declined",
        ),
        (
            lambda _: HeadroomReserved("wait", scope="tenant", asked=Decimal(1), place=0),
            "too small",
        ),
    ],
)
async def test_without_its_reply_the_packaged_judge_judges_and_the_answer_says_so(
    reply: Callable[[Call], ScriptedReply], why: str
) -> None:
    made, model = await answer(saying(reply, FEWER))
    assert support_of(made).judge == "packaged"
    assert why in made.notes[-1]
    # a reply of another form is asked for once more, by the one way that all calls go
    assert sum(call.stage is Stage.JUDGE for call in model.calls) <= 2


@pytest.mark.parametrize(
    "error",
    [
        JobCancelled("cancelled", job="j"),
        StoreUnavailable("Redis is unreachable", address="redis://h"),
    ],
)
async def test_the_end_of_the_job_ends_a_judgement(error: PosologyError) -> None:
    with pytest.raises(type(error)):
        await answer(saying(lambda _: error, FEWER))


async def test_a_question_that_is_run_again_waits_for_reserved_headroom() -> None:
    held = HeadroomReserved("wait", scope="tenant", asked=Decimal(1), place=0)
    with pytest.raises(HeadroomReserved):
        await answer(saying(lambda _: held, FEWER), patience=Patience(requeued=True))


async def test_a_cap_without_room_is_kept() -> None:
    said = saying(["supported"], FEWER)

    def script(call: Call) -> ScriptedReply:
        found = said(call)
        if call.stage is Stage.JUDGE:
            return found
        assert isinstance(found, CitedReply)
        return used(call, found.model_dump_json(), bound=BOUND, share=1.0)

    probe = Holding()
    await answer(script, journal=probe)
    cap = sum(one.reserved for one in probe.attempts) - Decimal("0.000000001")
    ledger = LedgerJournal(MemoryLedger(), Account(), cap=cap)
    made, model = await answer(script, journal=ledger)
    assert support_of(made).judge == "packaged"
    assert "The remaining budget is too small to let a model judge" in made.notes[-1]
    assert [call.stage for call in model.calls] == [Stage.ANSWER]


async def test_what_is_too_long_to_be_read_whole_is_not_judged() -> None:
    words = " ".join("".join(four) for four in product("bcdfgh", repeat=4))
    assert len(words) > LONGEST
    long = Said(text=f"Strokes were fewer with drug 0, and {words}.", sentences=["1.1"])
    made, model = await answer(saying(["supported"], long, FEWER))
    assert [one.backing for one in support_of(made).sentences] == [
        Backing.UNCLEAR,
        Backing.SUPPORTED,
    ]
    assert model.calls[-1].messages[-1].content.count("statement: ") == 1


@pytest.mark.parametrize("dose", [Dose(strategy="direct"), Dose(strategy="briefcontext")])
async def test_an_estimate_counts_the_judgement_and_no_more_is_reserved(dose: Dose) -> None:
    estimator = Estimator(
        prices=packaged(), bound=BOUND, counting=Counting(packaged_counter()), typical=Typical()
    )
    without = await estimator(TASK, dose)
    made = await estimator(TASK, dose, judge=MODEL)
    assert (made.calls, made.waves) == (without.calls + 1, without.waves + 1)
    assert made.dollars.low == without.dollars.low
    assert without.dollars.expected < made.dollars.expected <= made.dollars.worst
    # another model's price
    cheaper = await estimator(TASK, dose, judge="openai:gpt-5-nano")
    assert cheaper.dollars.expected < made.dollars.expected


async def test_the_longest_judgement_costs_no_more_than_its_estimate() -> None:
    estimator = Estimator(
        prices=packaged(), bound=BOUND, counting=Counting(packaged_counter()), typical=Typical()
    )
    made = await estimator(TASK, Dose(strategy="direct"), judge=MODEL)
    without = await estimator(TASK, Dose(strategy="direct"))
    filling = "0.7 " * ((LONGEST - 300) // 4)
    said = [
        Said(text=f"Strokes were fewer {i} {filling}", sentences=["1.1"]) for i in range(MOST - 2)
    ]

    def script(call: Call) -> ScriptedReply:
        if call.stage is Stage.JUDGE:
            verdicts = {"verdicts": ["not said"] * len(said)}
            return used(call, json.dumps(verdicts), bound=BOUND, share=1.0)
        return CitedReply(answerable=True, statements=said, choice=None)

    account = Holding()
    await answer(script, journal=account)
    assert account.attempts[-1].stage is Stage.JUDGE
    assert account.attempts[-1].reserved <= made.dollars.worst - without.dollars.worst


def test_a_model_of_another_provider_is_refused_before_anything_is_spent() -> None:
    asked = AskRequest(question="Why?", model=MODEL, support="model", support_model="anthropic:x")
    with pytest.raises(InvalidQuery, match="of the same provider"):
        asked.to_request(Settings())
    # in another mode it is not used
    assert asked.model_copy(update={"support": "mark"}).to_request(Settings()).judge is None


def test_the_model_is_settled_when_a_question_is_submitted() -> None:
    settings = Settings(POSOLOGY_SUPPORT="model", POSOLOGY_SUPPORT_MODEL="openai:gpt-5-nano")
    kept = JobRequest(question="Why?", model="openai:gpt-5").settled(settings)
    assert kept.as_settled().models == ("openai:gpt-5", "openai:gpt-5-nano")
    offline = JobRequest(question="Why?", model="offline:extractive", support="model")
    assert offline.to_request(Settings()).afterwards == 0


@pytest.mark.parametrize("strategy", ["direct", "briefcontext"])
async def test_a_job_whose_worker_is_killed_in_the_judgement_judges_once(
    bench: Bench, strategy: str
) -> None:
    asked = request(
        strategy=strategy, k=6, support="model", question="Does drug 0 lower the risk of stroke?"
    )
    job = (await bench.store.submit(asked, tenant=bench.tenant)).job

    def script(call: Call) -> ScriptedReply:
        if call.stage is Stage.JUDGE:
            count = call.messages[-1].content.count("statement: ")
            return json.dumps({"verdicts": ["contradicted"] * count})
        return reply(call)

    model = ScriptedModel(script)
    gate = Gate(model, holds=of(Stage.JUDGE))
    first = Local(bench=bench, runner=runner(bench, gate))
    await killed(first.until_nothing_is_sent, lambda: gate.until(1))
    bench.clock.forward(LEASE)
    made = len(model.calls)
    other = Local(bench=bench, runner=runner(bench, model, name="other"))
    await other.carry(await bench.sweep_all())

    out = await bench.store.get(job, tenant=bench.tenant)
    assert out.state is JobState.SUCCEEDED, out.error
    # every other reply was replayed
    assert [call.stage for call in model.calls[made:]] == [Stage.JUDGE]
