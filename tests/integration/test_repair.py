"""Sentences that their quotes do not support are sent back to the model once: in one process, and through the records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING

import anyio
import pytest

from orchestrator.jobs.batches import Batches
from orchestrator.question.answering import Answerer, Patience
from orchestrator.question.decider import Decider
from orchestrator.question.decisions.replay import Present, Replayer
from orchestrator.question.estimates.costs import Estimator
from orchestrator.question.estimates.tokens import Counting, packaged_counter
from orchestrator.question.estimates.typical import Typical
from orchestrator.question.request import Request
from orchestrator.settings import Settings
from posology.budget.bounds.calls import CallBound
from posology.budget.ledger.journal import LedgerJournal
from posology.budget.ledger.memory import MemoryLedger
from posology.budget.prices.book import packaged
from posology.errors import (
    ConfigurationError,
    DeadlineExceeded,
    HeadroomReserved,
    JobCancelled,
    JobExpired,
    PosologyError,
    ProviderOverloaded,
    StoreUnavailable,
    UnpricedModel,
)
from posology.llm.accounting import Account
from posology.llm.calls import Caller
from posology.llm.retry import RetryPolicy
from posology.llm.stack import build
from posology.query import make_query
from posology.seams import Complete, Journal
from posology.testing.model import ScriptedModel
from posology.types import (
    Answer,
    Call,
    Completion,
    Dose,
    Finish,
    JobState,
    Outcome,
    Passage,
    QuoteForm,
    Repair,
    Stage,
    Support,
    Task,
)
from prompts.answer import AnswerReply, CitedReply, Quote, Said
from prompts.reduce import ReduceReply
from strategies import make as make_strategy
from strategies.evidence import whole
from tests.integration.jobs_store.helpers import LEASE, MODEL, PATIENCE, Bench, request
from tests.integration.jobs_store.local import Gate, Local, killed, of, reply, runner
from tests.support.adapters import sending
from tests.support.holding import Holding, used
from tests.support.replies import in_form
from tests.support.tasks import retrieval_of
from workers.engine.claims import WorkStore

if TYPE_CHECKING:
    from posology.testing.model import ScriptedReply

pytestmark = pytest.mark.anyio

WRONG, RIGHT = "Drug 0 lowered the risk of stroke by 20%.", "Drug 0 lowered the risk of stroke."
QUOTE = "Drug 0 lowered the risk of stroke."
PASSAGES = [
    Passage(id=f"p{i}", text=f"Drug {i} lowered the risk of stroke. It was given for {i} weeks.")
    for i in range(6)
]
QUERY = make_query("Does drug 0 lower the risk of stroke?")
#: each is one call, a ladder, and several calls with a reduce
DOSES = (
    Dose(strategy="direct"),
    Dose(strategy="compressed", compressor="leancontext", keep=0.5),
    Dose(strategy="direct", rungs=(2, 4, 6)),
    Dose(strategy="briefcontext"),
)
BOUND = CallBound()
WITHOUT_END = Patience()
QUICK = RetryPolicy(attempts=2, base=0.001, deadline=10)


def saying(text: str, call: Call) -> ScriptedReply:
    """An answer of one sentence beside the first sentence of the first passage."""
    if Stage.REDUCE in (call.stage, _before(call)):
        said = ReduceReply(answerable=True, answer=text, choice=None, evidence=["F1"], claims=[])
        return in_form(call, said)
    quotes = [Quote(passage="P1", quote=QUOTE)]
    return in_form(call, AnswerReply(answerable=True, answer=text, choice=None, quotes=quotes))


def _before(call: Call) -> Stage | None:
    """The stage of the call that a repair continues."""
    if call.stage is not Stage.REPAIR:
        return None
    return Stage.REDUCE if call.strategy == "briefcontext" else Stage.ANSWER


def scripted(
    second: Callable[[Call], ScriptedReply] | str, first: str = WRONG
) -> Callable[[Call], ScriptedReply]:
    """Says first what is not supported, and then what it is told to say."""

    def script(call: Call) -> ScriptedReply:
        match call.stage:
            case Stage.EXTRACT:
                return reply(call)
            case Stage.REPAIR:
                return saying(second, call) if isinstance(second, str) else second(call)
            case _:
                return saying(first, call)

    return script


def refuse(call: Call) -> ScriptedReply:
    if _before(call) is Stage.REDUCE:
        said = ReduceReply(answerable=False, answer="No.", choice=None, evidence=[], claims=[])
        return in_form(call, said)
    return in_form(call, AnswerReply(answerable=False, answer="No.", choice=None, quotes=[]))


def task(quotes: QuoteForm = "sentences", passages: Sequence[Passage] = PASSAGES) -> Task:
    retrieval = retrieval_of(QUERY, passages)
    return Task(query=QUERY, retrieval=retrieval, model=MODEL, max_tokens=None, quotes=quotes)


def complete(model: Complete, journal: Journal, retry: RetryPolicy = QUICK) -> Complete:
    return build(
        sending(model),
        journal=journal,
        prices=packaged(),
        bound=BOUND,
        retry=retry,
        caller=Caller(wait_timeout=0.0),
    )


async def answer(
    dose: Dose,
    model: Complete,
    journal: Journal,
    *,
    asked: Task | None = None,
    patience: Patience = WITHOUT_END,
    retry: RetryPolicy = QUICK,
) -> Answer:
    """Answer in the mode ``repair``, by rules alone."""
    asked = asked or task()
    made = await Answerer()(
        partial(make_strategy(dose), asked),
        complete(model, journal, retry),
        request=Request(query=QUERY, model=MODEL, support="repair"),
        excerpts=whole(asked.retrieval.passages),
        patience=patience,
    )
    assert isinstance(made, Answer)
    return made


def support_of(made: Answer) -> Support:
    """What was found of its sentences."""
    assert made.support is not None
    return made.support


@pytest.mark.parametrize("quotes", ["sentences", "copied"])
@pytest.mark.parametrize("dose", DOSES)
async def test_a_better_second_answer_is_kept_and_verified_like_the_first(
    dose: Dose, quotes: QuoteForm
) -> None:
    model, account = ScriptedModel(scripted(RIGHT)), Account()
    plain = ScriptedModel(scripted(RIGHT))
    made = await answer(dose, model, account, asked=task(quotes))
    first = await make_strategy(dose)(task(quotes), complete(plain, Account()))

    assert made.text.startswith(RIGHT.removesuffix("."))
    support = support_of(made)
    assert (support.repair, support.unsupported) == (Repair.BETTER, 0)
    assert [one.quote for one in made.citations] == [QUOTE]
    assert made.strategy == first.strategy
    # what was paid for once is replayed
    assert [call.stage for call in model.calls] == [
        *(call.stage for call in plain.calls),
        Stage.REPAIR,
    ]
    # the reply goes back as it came, and no word of it stands in the complaint
    *before, said, complaint = model.calls[-1].messages
    assert before == list(model.calls[-2].messages)
    assert json.loads(said.content)["answerable"]
    name = "Statement" if quotes == "sentences" else "Sentence"
    assert f"- {name} 1: " in complaint.content
    assert "a number of it" in complaint.content
    assert "stroke" not in complaint.content
    assert [one.stage for one in account.attempts] == [call.stage for call in model.calls]
    assert account.attempts[-1].prompt.name == "repair"


@pytest.mark.parametrize(
    ("second", "repair"),
    [
        (WRONG, Repair.NO_BETTER),
        ("Drug 0 lowered the risk of stroke by 30%.", Repair.NO_BETTER),
        (refuse, Repair.REFUSED),
        (
            lambda _: Completion(
                text="I cannot.", usage=None, finish=Finish.FILTERED, served_model="x"
            ),
            Repair.REFUSED,
        ),
        (lambda _: ProviderOverloaded("down", provider="openai", model="x"), Repair.FAILED),
        (lambda _: "no JSON at all", Repair.FAILED),
    ],
)
@pytest.mark.parametrize("dose", DOSES)
async def test_else_the_first_answer_is_marked_and_the_model_is_not_asked_again(
    dose: Dose, second: Callable[[Call], ScriptedReply] | str, repair: Repair
) -> None:
    if dose.rungs and second is refuse:
        # the answer of the step before, without a standing quote as well
        repair = Repair.NO_BETTER
    model = ScriptedModel(scripted(second))
    made = await answer(dose, model, Account())
    assert made.text.startswith(WRONG.removesuffix("."))
    support = support_of(made)
    assert (support.repair, support.unsupported) == (repair, 1)
    assert made.notes[-1] == (
        "1 of 1 sentences differs from its quotes or has none; the difference is in brackets."
    )
    # one call, which may be tried again, or asked for its structure
    repairs = [call for call in model.calls if call.stage is Stage.REPAIR]
    assert len({call.messages[:4] for call in repairs}) == 1
    assert len(repairs) == (2 if repair is Repair.FAILED else 1)


async def test_a_supported_answer_is_not_sent_back() -> None:
    model = ScriptedModel(scripted(RIGHT, first=RIGHT))
    made = await answer(DOSES[0], model, Account())
    assert (support_of(made).repair, len(model.calls)) == (None, 1)


async def test_a_ladder_sends_back_the_answer_that_it_kept() -> None:
    """Its first step's answer has no standing quote; the later steps refuse."""

    def script(call: Call) -> ScriptedReply:
        if call.stage is Stage.ANSWER and len(call.excerpts) == 2:
            return CitedReply(
                answerable=True, statements=[Said(text=WRONG, sentences=["1.1"])], choice=None
            )
        return saying(RIGHT, call) if call.stage is Stage.REPAIR else refuse(call)

    model = ScriptedModel(script)
    made = await answer(DOSES[2], model, Account())
    assert (support_of(made).repair, made.supported) == (Repair.BETTER, True)
    stages = [(call.stage, len(call.excerpts)) for call in model.calls]
    answers = [(Stage.ANSWER, 2), (Stage.ANSWER, 4), (Stage.ANSWER, 6)]
    assert stages == [*answers, (Stage.REPAIR, 2)]


@pytest.mark.parametrize("quotes", ["sentences", "copied"])
@pytest.mark.parametrize("dose", DOSES)
async def test_an_estimate_counts_the_repair_and_no_more_is_reserved(
    dose: Dose, quotes: QuoteForm
) -> None:
    estimator = Estimator(
        prices=packaged(), bound=BOUND, counting=Counting(packaged_counter()), typical=Typical()
    )
    asked = task(quotes)
    without = await estimator(asked, dose)
    made = await estimator(asked, dose, repair=True)
    assert (made.calls, made.waves) == (without.calls + 1, without.waves + 1)
    assert made.dollars.low == without.dollars.low
    assert made.dollars.low <= made.dollars.expected <= made.dollars.worst
    assert made.dollars.expected > without.dollars.expected
    say = scripted(RIGHT, first="STROKE " * 60 + WRONG)

    def script(call: Call) -> ScriptedReply:
        found = say(call)
        assert not isinstance(found, (str, Completion, BaseException))
        return used(call, found.model_dump_json(), bound=BOUND, share=1.0)

    account, model = Holding(), ScriptedModel(script)
    await answer(dose, model, account, asked=asked)
    assert model.calls[-1].stage is Stage.REPAIR
    assert account.most <= made.dollars.worst
    # a dose begins without it: where there is no money left, the first answer is marked
    assert estimator.quote(asked, dose) < without.dollars.worst


async def test_a_reply_longer_than_an_estimate_expects_is_not_sent_back() -> None:
    model = ScriptedModel(scripted(RIGHT, first="STROKE " * 4_000 + WRONG))
    made = await answer(DOSES[0], model, Account())
    assert (support_of(made).repair, len(model.calls)) == (Repair.UNAFFORDABLE, 1)


async def test_a_budget_without_room_keeps_the_first_answer() -> None:
    account, ledger = Account(), MemoryLedger()
    probe = Holding()
    await answer(DOSES[0], ScriptedModel(scripted(RIGHT)), probe)
    first = probe.attempts[0]
    assert first.cost is not None
    cap = first.cost + probe.attempts[1].reserved - Decimal("0.000000001")
    model = ScriptedModel(scripted(RIGHT))
    made = await answer(DOSES[0], model, LedgerJournal(ledger, account, cap=cap))
    support = support_of(made)
    assert (support.repair, support.unsupported) == (Repair.UNAFFORDABLE, 1)
    assert [call.stage for call in model.calls] == [Stage.ANSWER]
    assert "The remaining budget is too small to ask the model for a better answer." in made.notes


@pytest.mark.parametrize("requeued", [True, False])
async def test_reserved_headroom_is_waited_for_only_by_what_is_run_again(requeued: bool) -> None:
    def held(_: Call) -> ScriptedReply:
        return HeadroomReserved("wait", scope="tenant", asked=Decimal(1), place=0)

    patience = Patience(requeued=requeued)
    asking = partial(answer, DOSES[0], ScriptedModel(scripted(held)), Account(), patience=patience)
    if requeued:
        with pytest.raises(HeadroomReserved):
            await asking()
        return
    made = await asking()
    assert support_of(made).repair is Repair.UNAFFORDABLE


async def test_a_repair_that_takes_too_long_is_given_up() -> None:
    gate = Gate(ScriptedModel(scripted(RIGHT)), holds=of(Stage.REPAIR))
    account = Account()
    made = await answer(DOSES[0], gate, account, patience=Patience(seconds=lambda: 0.0))
    assert support_of(made).repair is Repair.FAILED


@pytest.mark.parametrize(
    "error",
    [
        DeadlineExceeded("no reply in time", seconds=120.0),
        JobExpired("the job has passed its deadline", seconds=900.0),
        UnpricedModel(model=MODEL),
        ConfigurationError("SSL_CERT_FILE: no such file"),
    ],
)
@pytest.mark.parametrize("dose", DOSES)
async def test_no_error_of_a_repair_costs_the_first_answer(
    dose: Dose, error: PosologyError
) -> None:
    model = ScriptedModel(scripted(lambda _: error))
    made = await answer(dose, model, Account())
    assert made.text.startswith(WRONG.removesuffix("."))
    assert support_of(made).repair is Repair.FAILED


async def test_a_repair_past_the_deadline_of_a_call_costs_no_answer() -> None:
    gate = Gate(ScriptedModel(scripted(RIGHT)), holds=of(Stage.REPAIR))
    made = await answer(DOSES[0], gate, Account(), retry=replace(QUICK, deadline=0.01))
    assert support_of(made).repair is Repair.FAILED


@pytest.mark.parametrize(
    "error",
    [
        JobCancelled("cancelled", job="j"),
        StoreUnavailable("Redis is unreachable", address="redis://h"),
    ],
)
async def test_the_end_of_the_job_ends_a_repair(error: PosologyError) -> None:
    with pytest.raises(type(error)):
        await answer(DOSES[0], ScriptedModel(scripted(lambda _: error)), Account())


@pytest.mark.parametrize("strategy", ["direct", "briefcontext"])
async def test_a_job_whose_worker_is_killed_in_the_repair_repairs_once(
    bench: Bench, strategy: str
) -> None:
    asked = request(
        strategy=strategy, k=6, support="repair", question="Does drug 0 lower the risk of stroke?"
    )
    job = (await bench.store.submit(asked, tenant=bench.tenant)).job
    model = ScriptedModel(scripted(RIGHT))
    gate = Gate(model, holds=of(Stage.REPAIR))
    first = Local(bench=bench, runner=runner(bench, gate))
    await killed(first.until_nothing_is_sent, lambda: gate.until(1))
    bench.clock.forward(LEASE)
    made = len(model.calls)
    other = Local(bench=bench, runner=runner(bench, model, name="other"))
    await other.carry(await bench.sweep_all())

    out = await bench.store.get(job, tenant=bench.tenant)
    assert out.state is JobState.SUCCEEDED, out.error
    # every reply but the repair's was replayed
    assert [call.stage for call in model.calls[made:]] == [Stage.REPAIR]
    counted = Counter((one.stage, one.outcome) for one in out.spending.attempts)
    assert counted[Stage.REPAIR, Outcome.OK] == 1
    assert counted[Stage.REPAIR, Outcome.CANCELLED] == 1
    assert out.result is not None
    assert out.result.support is not None
    assert (out.result.support.repair, out.result.support.unsupported) == (Repair.BETTER, 0)
    # the decision names the prompt, and is made again from the record
    assert out.decision is not None
    assert "prompt repair" in out.decision.versions
    replayed = await Replayer(Present(decider=Decider())).add(out)
    assert not [one for each in replayed.decisions for one in each.versions if "prompt" in one.name]


@pytest.mark.parametrize("strategy", ["direct", "briefcontext"])
async def test_a_repair_late_in_a_job_s_time_costs_no_answer(bench: Bench, strategy: str) -> None:
    """The first answer takes almost all of the job's time, and its repair would take longer than what is left."""
    asked = request(
        strategy=strategy, k=6, support="repair", question="Does drug 0 lower the risk of stroke?"
    )
    job = (await bench.store.submit(asked, tenant=bench.tenant)).job
    passed = 0.0
    work = WorkStore(bench.store, worker="w", clock=lambda: passed)
    saying_first = scripted(RIGHT)

    def script(call: Call) -> ScriptedReply:
        nonlocal passed
        passed = PATIENCE - 0.01
        return saying_first(call)

    gate = Gate(ScriptedModel(script), holds=of(Stage.REPAIR))
    local = Local(bench=bench, runner=runner(bench, gate, work=work))
    with anyio.fail_after(90):
        await local.until_nothing_is_sent()
    out = await bench.store.get(job, tenant=bench.tenant)
    assert out.state is JobState.SUCCEEDED, out.error
    assert out.result is not None
    assert out.result.support is not None
    assert out.result.support.repair is Repair.FAILED
    assert out.spending.attempts[-1].outcome is Outcome.CANCELLED


async def test_rows_of_a_batch_are_repaired_each_by_its_own_mode(bench: Bench) -> None:
    plain = {
        "model": MODEL, "k": 6, "max_tokens": 500, "strategy": "direct", "deadline_seconds": 100,
        "question": "Does drug 0 lower the risk of stroke?",
    }  # fmt: skip
    modes = ("mark", "repair", "drop", "off")
    rows = [json.dumps(plain | {"support": mode}) for mode in modes]
    batches = Batches(bench.store, Settings())
    batch = (await batches.submit(rows, tenant=bench.tenant)).id
    model = ScriptedModel(scripted(RIGHT))
    await Local(bench=bench, runner=runner(bench, model)).until_nothing_is_sent()
    found = await batches.rows(batch, tenant=bench.tenant)
    jobs = [await bench.store.get(str(row.job), tenant=bench.tenant) for row in found]
    results = [job.result for job in jobs]
    assert [r and r.support and (r.support.repair, r.support.unsupported) for r in results] == [
        (None, 1),
        (Repair.BETTER, 0),
        None,
        None,
    ]
    assert [len(job.spending.attempts) for job in jobs] == [1, 2, 1, 1]
