"""A question has the same answer in one process and through units that workers carry."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from orchestrator.question.report import ask_output, error_body
from orchestrator.settings import Settings
from posology.errors import AuthenticationFailed, PosologyError, ProviderOverloaded
from posology.llm.accounting import Account
from posology.published.answers import AskOutput, Status
from posology.published.calls import AttemptOutput, ErrorBody
from posology.testing.model import ScriptedModel
from posology.types import Call, Completion, Finish, Outcome, Stage, Usage
from prompts.extract import ExtractReply
from prompts.reduce import ReduceReply
from prompts.template import digests, load_own
from tests.integration import conftest as real
from tests.integration.jobs_store.helpers import Bench, open_bench, request
from tests.integration.jobs_store.local import Local, Shelf, model, pipeline, reply, runner
from tests.support.replies import in_form

if TYPE_CHECKING:
    from posology.testing.model import ScriptedReply

pytestmark = pytest.mark.anyio

redis_url = real.redis_url
tenant = real.tenant


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """What became of a question."""

    out: AskOutput | None
    error: ErrorBody | None
    attempts: tuple[AttemptOutput, ...]

    @property
    def calls(self) -> Counter[tuple[Stage, Outcome]]:
        return Counter((attempt.stage, attempt.outcome) for attempt in self.attempts)

    @property
    def content(self) -> dict[str, Any] | None:
        """All that does not depend on time."""
        timed = {"seconds", "retrieval_seconds", "spending"}
        return None if self.out is None else self.out.model_dump(exclude=timed)


Ask = Callable[..., Awaitable[Told]]


async def in_process(script: ScriptedModel, shelf: Shelf | None = None, **fields: Any) -> Told:
    account = Account()
    asked = request(**fields).to_request(Settings())
    try:
        report = await pipeline(script, shelf).run(asked, account, tenant="t")
    except PosologyError as error:
        return Told(
            out=None,
            error=error_body(error, None),
            attempts=tuple(map(AttemptOutput.of, account.attempts)),
        )
    return Told(
        out=ask_output(report), error=None, attempts=tuple(map(AttemptOutput.of, account.attempts))
    )


def through_units(bench: Bench, copies: int) -> Ask:
    async def ask(script: ScriptedModel, shelf: Shelf | None = None, **fields: Any) -> Told:
        job = (await bench.store.submit(request(**fields), tenant=bench.tenant)).job
        local = Local(bench=bench, runner=runner(bench, script, shelf=shelf), copies=copies)
        out = await local.finish(job)
        assert out.state.over
        return Told(out=out.result, error=out.error, attempts=out.spending.attempts)

    return ask


@pytest.fixture(params=["in process", "units", "units that come twice"])
async def ask(request: pytest.FixtureRequest, redis_url: str, tenant: str) -> AsyncIterator[Ask]:
    if request.param == "in process":
        yield in_process
        return
    async with open_bench(redis_url, tenant) as bench:
        yield through_units(bench, copies=2 if "twice" in request.param else 1)


PARTED = {"strategy": "briefcontext", "partition_size": 2, "k": 6}
DOWN = ProviderOverloaded("down", provider="openai", model="x")


def fails(*which: int, error: Exception = DOWN) -> Callable[[Call], ScriptedReply]:
    """The partitions of these passages cannot be read."""

    def answer(call: Call) -> ScriptedReply:
        if call.stage is Stage.EXTRACT and call.excerpts[0].passage.id in {f"p{i}" for i in which}:
            return error
        return reply(call)

    return answer


def says_nothing(call: Call) -> ScriptedReply:
    return in_form(call, ExtractReply(found=False, findings=[]))


def unanswerable(call: Call) -> ScriptedReply:
    if call.stage is Stage.REDUCE:
        missing = ReduceReply(
            answerable=False, answer="The dose is missing.", choice=None, evidence=[], claims=[]
        )
        return in_form(call, missing)
    return reply(call)


def declined(_: Call) -> ScriptedReply:
    return Completion(
        text="I cannot help with that.",
        usage=Usage(input=1, output=1),
        finish=Finish.FILTERED,
        served_model="m",
    )


async def test_direct(ask: Ask) -> None:
    told = await ask(model())
    assert told.out is not None
    assert (told.out.status, told.out.strategy) == (Status.ANSWERED, "direct")
    assert told.calls == {(Stage.ANSWER, Outcome.OK): 1}


async def test_a_choice_is_made(ask: Ask) -> None:
    told = await ask(model(), form="yes_no", **PARTED)
    assert told.out is not None
    assert told.out.choice == "yes"


async def test_partitions_are_read_and_reduced(ask: Ask) -> None:
    told = await ask(model(), **PARTED)
    assert told.out is not None
    assert (told.out.status, told.out.strategy) == (Status.ANSWERED, "briefcontext")
    assert [one.passage.id for one in told.out.evidence] == ["p0", "p2", "p4"]
    assert told.out.coverage is not None
    assert not told.out.coverage.partial
    assert told.calls == {(Stage.EXTRACT, Outcome.OK): 3, (Stage.REDUCE, Outcome.OK): 1}


def answers(*, final: str, **given: str) -> Callable[[Call], ScriptedReply]:
    """Partitions answer by their first passage, and the reduce call gives one answer."""

    def answer(call: Call) -> ScriptedReply:
        made = reply(call)
        assert isinstance(made, BaseModel)
        fields = made.model_dump()
        if call.stage is Stage.EXTRACT:
            said = given[call.excerpts[0].passage.id]
            return json.dumps(fields | {"answer": said, "choice": None})
        del fields["claims"]
        return json.dumps(fields | {"short": final})

    return answer


async def test_partitions_answer_and_the_reduce_call_resolves(ask: Ask) -> None:
    script = answers(p0="75 mg", p2="150 mg", p4="75 mg daily", final="150 mg")
    told = await ask(model(script), **PARTED, partitions="answer")
    assert told.out is not None
    (conflict,) = told.out.conflicts
    assert conflict.how.startswith("Resolved by the reduce call")
    assert [side.passage.id for side in conflict.supporting] == ["p2"]
    assert [side.passage.id for side in conflict.opposing] == ["p0", "p4"]
    assert {one.prompt.name for one in told.attempts} == {"extract_answer", "reduce_answers"}
    assert "prompt extract_answer" in told.out.decision.versions
    assert told.calls == {(Stage.EXTRACT, Outcome.OK): 3, (Stage.REDUCE, Outcome.OK): 1}


async def test_templates_of_a_users_own_answer(ask: Ask, tmp_path: Path) -> None:
    text = "Extract.\n\n%% user %%\n\n$question $choices $code\n$passages\n"
    (tmp_path / "extract.md").write_text(text, encoding="utf-8")
    own = load_own(tmp_path)
    told = await ask(model(), **PARTED, prompts=own)
    assert told.out is not None
    versions = told.out.decision.versions
    assert versions["prompts"] == own
    used = {one.prompt.name: one.prompt.digest for one in told.attempts}
    assert used == {name: versions[f"prompt {name}"] for name in ("extract", "reduce")}
    assert used == digests(["extract", "reduce"], own=own)
    assert used["extract"] != digests(["extract"])["extract"]


@pytest.mark.parametrize("fields", [{}, PARTED])
async def test_templates_that_are_not_loaded_answer_nothing(fields: dict[str, Any]) -> None:
    told = await in_process(model(), **fields, prompts="0123456789abcdef")
    assert told.error is not None
    assert told.error.type == "PromptsMismatch"
    assert told.error.details["prompts"] == "0123456789abcdef"
    assert told.attempts == ()


async def test_some_partitions_cannot_be_read(ask: Ask) -> None:
    told = await ask(model(fails(2)), **PARTED)
    assert told.out is not None
    assert told.out.coverage is not None
    assert (told.out.coverage.found, told.out.coverage.failed) == (2, 1)
    assert any("partial" in note for note in told.out.notes)
    assert told.calls[Stage.EXTRACT, Outcome.FAILED] == 3


async def test_no_partition_can_be_read(ask: Ask) -> None:
    told = await ask(model(fails(0, 2, 4)), **PARTED)
    assert told.error is not None
    assert told.error.type == "NothingRead"
    assert told.error.details["failures"] == {"provider": 3}
    assert told.calls == {(Stage.EXTRACT, Outcome.FAILED): 9}


async def test_the_provider_refuses_the_key(ask: Ask) -> None:
    error = AuthenticationFailed("no", provider="openai", model="x", status=401)
    told = await ask(model(lambda _: error))
    assert told.error is not None
    assert told.error.type == "AuthenticationFailed"
    assert told.calls == {(Stage.ANSWER, Outcome.FAILED): 1}


async def test_the_reduce_fails(ask: Ask) -> None:
    told = await ask(model(lambda c: DOWN if c.stage is Stage.REDUCE else reply(c)), **PARTED)
    assert told.error is not None
    assert told.error.type == "ProviderOverloaded"
    assert told.calls == {(Stage.EXTRACT, Outcome.OK): 3, (Stage.REDUCE, Outcome.FAILED): 3}


async def test_an_error_that_passes_is_tried_again(ask: Ask) -> None:
    failed: list[Call] = []

    def answer(call: Call) -> ScriptedReply:
        if not failed:
            failed.append(call)
            return DOWN
        return reply(call)

    told = await ask(model(answer))
    assert told.out is not None
    assert told.calls == {(Stage.ANSWER, Outcome.FAILED): 1, (Stage.ANSWER, Outcome.OK): 1}


async def test_a_reply_of_the_wrong_form_is_repaired(ask: Ask) -> None:
    def answer(call: Call) -> ScriptedReply:
        first = call.stage is Stage.EXTRACT and len(call.messages) == 2
        return "I found a lot." if first else reply(call)

    told = await ask(model(answer), **PARTED)
    assert told.out is not None
    assert told.calls == {
        (Stage.EXTRACT, Outcome.UNUSABLE): 3,
        (Stage.EXTRACT, Outcome.OK): 3,
        (Stage.REDUCE, Outcome.OK): 1,
    }


@pytest.mark.parametrize("strategy", ["direct", "briefcontext"])
async def test_no_passage_is_found(ask: Ask, strategy: str) -> None:
    told = await ask(model(), Shelf(0), strategy=strategy)
    assert told.out is not None
    assert told.out.status is Status.REFUSED
    assert told.attempts == ()


SCRIPTS: dict[str, Callable[[Call], ScriptedReply]] = {
    "good": reply,
    "one unread": fails(0),
    "two unread": fails(2, 4),
    "says nothing": says_nothing,
    "unanswerable": unanswerable,
    "declined": declined,
}


@pytest.mark.parametrize(
    ("script", "fields"),
    [
        *product(SCRIPTS, ({**PARTED, "partition_size": size} for size in (1, 2, 4, 6))),
        *product(("good", "declined"), ({},)),
    ],
    ids=str,
)
async def test_the_answers_are_equal(
    redis_url: str, tenant: str, script: str, fields: dict[str, Any]
) -> None:
    here = await in_process(model(SCRIPTS[script]), **fields)
    async with open_bench(redis_url, tenant) as bench:
        there = await through_units(bench, 2)(model(SCRIPTS[script]), **fields)
    assert there.content == here.content
    assert there.calls == here.calls
    assert (there.error is None) == (here.error is None)
    if there.error is not None and here.error is not None:
        assert (there.error.type, there.error.details) == (here.error.type, here.error.details)
