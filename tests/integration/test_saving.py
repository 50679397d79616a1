"""A compressor that costs more than it saves is skipped, and the story says so; by name, in process and by jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from io import StringIO
from typing import TYPE_CHECKING, Any, cast

import pytest
from rich.console import Console

from orchestrator.cli.ask.explanation import why_answer, why_job
from orchestrator.compressors import Compressors
from orchestrator.question.decider import Decider
from orchestrator.question.decisions.forms import Replay
from orchestrator.question.decisions.replay import Present, Replayer
from orchestrator.question.estimates.costs import Estimator
from orchestrator.question.estimates.savings import Machine
from orchestrator.question.estimates.tokens import Counting
from orchestrator.question.estimates.typical import Typical
from orchestrator.question.pipeline import Pipeline
from orchestrator.question.report import ask_output
from orchestrator.question.request import JobRequest, Request
from policies.specs import parse
from posology.llm.accounting import Account
from posology.published.answers import AskOutput, Status
from posology.published.jobs import JobOutput
from posology.query import make_query
from posology.testing.model import ScriptedModel
from posology.testing.prices import FlatPrices, by_bytes
from posology.types import Call, Dose, JobState, Stage, Usage
from prompts.answer import AnswerReply
from prompts.rewrite import Summary, SummaryReply
from tests.integration.jobs_store.helpers import MODEL, Bench, request
from tests.integration.jobs_store.local import Local, Wires, reply
from tests.integration.test_api import api
from tests.support.replies import in_form
from tests.support.steps import Disputed
from workers.engine.runner import Runner

if TYPE_CHECKING:
    from orchestrator.connections import Connections
    from posology.index.search.retriever import Retriever
    from posology.testing.model import ScriptedReply

pytestmark = pytest.mark.anyio

K = 8
TOKEN = Decimal("0.001")
PRICES = FlatPrices(token=TOKEN)
#: dollars an hour: for LeanContext's milliseconds about nothing, and more than all that it can save
CHEAP, DEAR = Decimal("0.10"), Decimal(10**9)
COMPRESSING = "affordable:keep=0.25"
SAID = "Saving: leancontext would save about"


def characters(text: str) -> int:
    return len(text)


def estimator(hour: Decimal | None, by: str = "leancontext") -> Estimator:
    return Estimator(
        prices=PRICES,
        bound=by_bytes,
        counting=Counting(characters),
        typical=Typical(),
        choose=Compressors(by),
        machine=None if hour is None else Machine(dollars_per_hour=hour),
    )


def decider(hour: Decimal | None, *, default: str = "router", by: str = "leancontext") -> Decider:
    return Decider(default=default, estimator=estimator(hour, by), compressors=Compressors(by))


def script(call: Call) -> ScriptedReply:
    """Sums up the first passage by a sentence of its own, and answers."""
    if call.stage is Stage.COMPRESS:
        first = call.excerpts[0]
        quote = first.sentences[0].of(first.passage.text)
        return SummaryReply(summaries=[Summary(passage="P1", summary=quote)])
    if "refuse" in call.query.text and call.stage is Stage.ANSWER:
        return in_form(
            call, AnswerReply(answerable=False, answer="It is not said.", choice=None, quotes=[])
        )
    return reply(call)


def pipeline(hour: Decimal | None, model: ScriptedModel) -> Pipeline:
    return Pipeline(
        retriever=cast("Retriever", Disputed()),
        decider=decider(hour),
        estimator=estimator(hour),
        compressors=Compressors("leancontext"),
        completes=Wires(model, prices=PRICES).complete,
    )


async def ask(hour: Decimal | None, question: str = "Does it help?", **fields: Any) -> AskOutput:
    asked = Request(query=make_query(question), model=MODEL, k=K, max_tokens=300)
    piped = pipeline(hour, ScriptedModel(script))
    return ask_output(await piped.run(replace(asked, **fields), Account(), tenant="t"))


def worker(bench: Bench, hour: Decimal | None) -> Runner:
    model = ScriptedModel(script)

    async def opened(_: str | None) -> Pipeline:
        return pipeline(hour, model)

    wires = cast("Connections", Wires(model, prices=PRICES))
    return Runner(bench.worker(), wires, opened, keep=0.01)


async def job(bench: Bench, hour: Decimal | None, **fields: Any) -> JobOutput:
    asked = request(fields.pop("question", "Does it help?"), k=K, max_tokens=300, **fields)
    made = (await bench.store.submit(asked, tenant=bench.tenant)).job
    return await Local(bench=bench, runner=worker(bench, hour)).finish(made)


def told(show: Callable[[Console, Any], None], what: AskOutput | JobOutput) -> str:
    console = Console(file=StringIO(), width=400)
    show(console, what)
    assert isinstance(console.file, StringIO)
    return " ".join(console.file.getvalue().split())


async def test_what_costs_more_than_it_saves_is_skipped_and_the_story_says_so() -> None:
    out = await ask(DEAR, policy=COMPRESSING)
    assert out.status is Status.ANSWERED
    assert out.strategy == "direct"
    assert out.compression is None
    assert out.decision.dose == Dose(strategy="direct")
    assert out.decision.versions["compressor"] == "leancontext"
    story = told(why_answer, out)
    assert SAID in story
    assert "skipped, and the passages are shown whole" in story


async def test_what_pays_is_given_and_what_it_did_save_is_told() -> None:
    out = await ask(CHEAP, policy=COMPRESSING)
    assert out.strategy == "compressed"
    assert any(step.startswith(SAID) and "it pays" in step for step in out.decision.steps)
    took = out.compression
    assert took is not None
    assert took.tokens is not None
    assert took.shown_tokens is not None
    assert 0 < took.shown_tokens < took.tokens
    assert took.saved_usd == TOKEN * (took.tokens - took.shown_tokens)
    assert took.calls_usd == 0
    assert took.machine_usd is not None
    # two thirds of a cent for a minute, half of it idle
    assert took.machine_usd == pytest.approx(Decimal(str(took.seconds)) / 18_000)
    assert took.cost_usd == took.machine_usd
    story = told(why_answer, out)
    assert f"{took.shown_tokens:,} of {took.tokens:,} tokens shown, saved $" in story


async def test_what_was_expected_is_what_it_saves() -> None:
    """Of LeanContext without a reducer, whose share is known beforehand."""
    out = await ask(CHEAP, policy=COMPRESSING, compressor="leancontext_top")
    looked, took = out.decision.features, out.compression
    assert took is not None
    assert looked["saving.compressor"] == took.compressor == "leancontext_top"
    assert looked["saving.tokens"] == pytest.approx(took.tokens, rel=0.05)
    assert looked["saving.dollars_whole"] == pytest.approx(float(TOKEN) * looked["saving.tokens"])


async def test_a_machine_that_is_not_counted_costs_nothing() -> None:
    out = await ask(None, policy=COMPRESSING)
    assert out.strategy == "compressed"
    assert out.decision.features["saving.cost"] == 0
    assert out.compression is not None
    assert (out.compression.machine_usd, out.compression.cost_usd) == (None, Decimal(0))


async def test_a_ladder_that_is_skipped_is_the_same_ladder() -> None:
    whole = await ask(DEAR, policy="doubling", question="Does it help, or refuse?")
    skipped = await ask(DEAR, policy="doubling:keep=0.3", question="Does it help, or refuse?")
    assert skipped.decision.dose == whole.decision.dose
    assert [rung.passages for rung in skipped.rungs] == [rung.passages for rung in whole.rungs]


async def test_a_ladder_goes_on_to_briefcontext_with_what_compressing_took(bench: Bench) -> None:
    fields = {"policy": "doubling:keep=0.3", "question": "Does it help, or refuse?"}
    out = await ask(CHEAP, **fields)
    made = await job(bench, CHEAP, **fields)
    assert made.result is not None
    assert out.strategy == made.result.strategy == "briefcontext"
    for took in (out.compression, made.result.compression):
        assert took is not None
        assert took.compressor == "leancontext"
        # 2, 4 and 8 passages: some of the same three times
        assert took.sentences > 0
        assert took.saved_usd is not None
    assert out.compression is not None
    assert made.result.compression is not None
    assert made.result.compression.sentences == out.compression.sentences
    assert "compressed by leancontext" in told(why_job, made)


async def test_jobs_are_skipped_told_of_and_replayed(bench: Bench) -> None:
    skipped = await job(bench, DEAR, policy=COMPRESSING)
    given = await job(bench, CHEAP, policy=COMPRESSING)
    assert skipped.decision is not None
    assert given.decision is not None
    assert (skipped.decision.strategy, given.decision.strategy) == ("direct", "compressed")
    assert SAID in told(why_job, skipped)
    assert "tokens shown, saved $" in told(why_job, given)
    # at other prices of the machine the same is decided from the records
    for hour in (CHEAP, DEAR, None):
        replayer = Replayer(Present(decider=decider(hour), prices=PRICES.version))
        for one in (skipped, given):
            found = await replayer.add(one)
            assert found.status is Replay.SAME, found
            assert not any(d.versions for d in found.decisions)
    # the compressor that is configured now is another: the decision stands, and that is told
    other = Replayer(Present(decider=decider(CHEAP, by="leancontext_top"), prices=PRICES.version))
    (again,) = (await other.add(given)).decisions
    assert [change.name for change in again.versions] == ["compressor"]
    assert again.now == given.decision.dose


@pytest.mark.parametrize(
    ("fields", "name", "keep"),
    [
        ({"strategy": "compressed", "compressor": "leancontext_top"}, "leancontext_top", None),
        ({"policy": "affordable:compressor=leancontext,keep=0.5", "compressor": "leancontext_top"},
         "leancontext_top", 0.5),
        ({"strategy": "compressed"}, None, None),
    ],
)  # fmt: skip
async def test_a_compressor_is_chosen_by_its_name(
    bench: Bench, fields: dict[str, Any], name: str | None, keep: float | None
) -> None:
    out = await job(bench, CHEAP, **fields)
    assert out.state is JobState.SUCCEEDED
    assert out.decision is not None
    assert out.decision.dose == Dose(strategy="compressed", compressor=name, keep=keep)
    assert out.decision.versions["compressor"] == (name or "leancontext")
    assert out.result is not None
    assert out.result.compression is not None
    assert out.result.compression.compressor == (name or "leancontext")
    assert out.request.get("compressor") == fields.get("compressor")


async def test_a_rewriter_is_paid_for_in_the_question_s_account(bench: Bench) -> None:
    out = await job(
        bench, CHEAP, strategy="compressed", compressor="query_summary", max_cost_usd="50"
    )
    assert out.state is JobState.SUCCEEDED, out.error
    assert [a.stage for a in out.spending.attempts] == [Stage.COMPRESS, Stage.ANSWER]
    assert out.spending.cost_usd == 2 * TOKEN * 110
    assert out.result is not None
    took = out.result.compression
    assert took is not None
    assert took.usage == Usage(input=100, output=10)
    assert took.calls_usd == TOKEN * 110
    # while a model is waited for, the machine serves others
    assert took.machine_usd == 0
    assert out.result.status is Status.ANSWERED


async def test_a_rewriter_that_does_not_pay_is_not_asked() -> None:
    """Its call reads all that it could save, and costs its reply besides."""
    out = await ask(CHEAP, policy="affordable:compressor=query_summary")
    assert out.strategy == "direct"
    assert [attempt.stage for attempt in out.spending.attempts] == [Stage.ANSWER]
    assert any("query_summary would save about" in step for step in out.decision.steps)
    kept = await ask(CHEAP, policy="affordable:compressor=query_summary,saving=off")
    assert [a.stage for a in kept.spending.attempts] == [Stage.COMPRESS, Stage.ANSWER]


def test_records_of_before_there_were_names_are_read() -> None:
    old = {"question": "Does it help?", "model": MODEL, "policy": "router", "k": 8}
    assert JobRequest.model_validate(old).as_settled().compressor is None
    # settled requests of a strategy never held a policy
    forced = JobRequest.model_validate({**old, "policy": None, "strategy": "compressed"})
    assert forced.as_settled().compressor is None
    assert parse("router").compressor is None


async def test_over_http_it_is_a_field_of_the_request(bench: Bench) -> None:
    asked = {"question": "Does it help?", "model": MODEL, "k": K, "strategy": "compressed"}
    async with api(bench.url, bench.tenant) as (client, _):
        wrong = await client.post("/v1/jobs", json={**asked, "compressor": "magic"})
        assert wrong.status_code == 422
        assert wrong.json()["field"] == "compressor"
        assert "leancontext_top" in wrong.json()["detail"]
        both = await client.post("/v1/jobs", json={**asked, "policy": "router"})
        assert (both.status_code, both.json()["field"]) == (422, "policy")
        made = await client.post("/v1/jobs", json={**asked, "compressor": "leancontext_top"})
        assert made.status_code == 202
        assert made.json()["request"]["compressor"] == "leancontext_top"
        await Local(bench=bench, runner=worker(bench, CHEAP)).until_nothing_is_sent()
        shown = (await client.get(f"/v1/jobs/{made.json()['id']}")).json()
    assert shown["state"] == "succeeded"
    assert shown["decision"]["dose"]["compressor"] == "leancontext_top"
    took = shown["result"]["compression"]
    assert took["compressor"] == "leancontext_top"
    assert Decimal(took["saved_usd"]) > Decimal(took["cost_usd"]) > 0
