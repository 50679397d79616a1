"""A question has the same answer in one process and through units that workers carry."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
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
from tests.integration.jobs_store.helpers import Bench, open_bench, request
from tests.integration.jobs_store.local import Local, Shelf, model, pipeline, reply, runner
from tests.support.replies import in_form

if TYPE_CHECKING:
    from posology.testing.model import ScriptedReply

pytestmark = pytest.mark.anyio


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


async def in_process(script: ScriptedModel, shelf: Shelf | None = None, **fields: Any) -> Told:
    account = Account()
    asked = request(**fields).to_request(Settings())
    out = error = None
    try:
        out = ask_output(await pipeline(script, shelf).run(asked, account, tenant="t"))
    except PosologyError as failed:
        error = error_body(failed, None)
    return Told(out=out, error=error, attempts=tuple(map(AttemptOutput.of, account.attempts)))


async def through_units(
    bench: Bench, script: ScriptedModel, shelf: Shelf | None = None, *, copies: int, **fields: Any
) -> Told:
    job = (await bench.store.submit(request(**fields), tenant=bench.tenant)).job
    local = Local(bench=bench, runner=runner(bench, script, shelf=shelf), copies=copies)
    out = await local.finish(job)
    assert out.state.over
    return Told(out=out.result, error=out.error, attempts=out.spending.attempts)


@pytest.fixture
async def bench(redis_url: str, tenant: str) -> AsyncIterator[Bench]:
    async with open_bench(redis_url, tenant) as opened:
        yield opened


PARTED: dict[str, Any] = {"strategy": "briefcontext", "partition_size": 2, "k": 6}
DOWN = ProviderOverloaded("down", provider="openai", model="x")
Script = Callable[[Call], "ScriptedReply"]


def fails(*which: int) -> Script:
    """The partitions of these passages cannot be read."""

    def answer(call: Call) -> ScriptedReply:
        if call.stage is Stage.EXTRACT and call.excerpts[0].passage.id in {f"p{i}" for i in which}:
            return DOWN
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


def refused_key(_: Call) -> ScriptedReply:
    return AuthenticationFailed("no", provider="openai", model="x", status=401)


def reduce_down(call: Call) -> ScriptedReply:
    return DOWN if call.stage is Stage.REDUCE else reply(call)


def wrong_form(call: Call) -> ScriptedReply:
    first = call.stage is Stage.EXTRACT and len(call.messages) == 2
    return "I found a lot." if first else reply(call)


def down_once() -> Script:
    failed: list[Call] = []

    def answer(call: Call) -> ScriptedReply:
        if not failed:
            failed.append(call)
            return DOWN
        return reply(call)

    return answer


def answers(call: Call) -> ScriptedReply:
    """Partitions answer by their first passage, and the reduce call gives one answer."""
    made = reply(call)
    assert isinstance(made, BaseModel)
    fields = made.model_dump()
    if call.stage is Stage.EXTRACT:
        doses = {"p0": "75 mg", "p2": "150 mg", "p4": "75 mg daily"}
        said = doses[call.excerpts[0].passage.id]
        return json.dumps(fields | {"answer": said, "choice": None})
    del fields["claims"]
    return json.dumps(fields | {"short": "150 mg"})


#: makes a script, which may remember
SCRIPTS: dict[str, Callable[[], Script]] = {
    "good": lambda: reply,
    "one unread": lambda: fails(0),
    "two unread": lambda: fails(2, 4),
    "none read": lambda: fails(0, 2, 4),
    "says nothing": lambda: says_nothing,
    "unanswerable": lambda: unanswerable,
    "declined": lambda: declined,
    "wrong form": lambda: wrong_form,
    "reduce down": lambda: reduce_down,
    "refused key": lambda: refused_key,
    "down once": down_once,
    "answers": lambda: answers,
}
PARTITIONED = ("good", "one unread", "two unread", "says nothing", "unanswerable", "declined")
CASES: list[tuple[str, dict[str, Any]]] = [
    *((script, {**PARTED, "partition_size": n}) for script in PARTITIONED for n in (1, 2, 4, 6)),
    *((script, PARTED) for script in ("none read", "wrong form", "reduce down", "refused key")),
    ("answers", {**PARTED, "partitions": "answer"}),
    ("good", {**PARTED, "form": "yes_no"}),
    *((script, {}) for script in ("good", "declined", "refused key", "down once")),
]


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize(("script", "fields"), CASES, ids=str)
async def test_the_answers_are_equal(
    bench: Bench, script: str, fields: dict[str, Any], copies: int
) -> None:
    here = await in_process(model(SCRIPTS[script]()), **fields)
    there = await through_units(bench, model(SCRIPTS[script]()), copies=copies, **fields)
    assert there.content == here.content
    assert there.calls == here.calls
    assert (there.error is None) == (here.error is None)
    if there.error is not None and here.error is not None:
        assert (there.error.type, there.error.details) == (here.error.type, here.error.details)


@pytest.mark.parametrize("strategy", ["direct", "briefcontext"])
async def test_no_passage_is_found(bench: Bench, strategy: str) -> None:
    here = await in_process(model(), Shelf(0), strategy=strategy)
    there = await through_units(bench, model(), Shelf(0), copies=1, strategy=strategy)
    assert here.out is not None
    assert here.out.status is Status.REFUSED
    assert here.content == there.content
    assert here.attempts == there.attempts == ()


@pytest.mark.parametrize(("script", "fields", "named"), [
    ("declined", {}, True), ("says nothing", PARTED, True), ("good", PARTED, False),
    ("declined", {"retracted": True}, False),
])  # fmt: skip
async def test_a_refusal_names_the_retracted_articles_that_were_left_out(
    bench: Bench, script: str, fields: dict[str, Any], named: bool
) -> None:
    out = (await through_units(bench, model(SCRIPTS[script]()), copies=1, **fields)).out
    assert out is not None
    assert ("2 retracted articles were left out: pmid:9, pmid:10." in out.notes) is named


#: script, fields, error, and the calls that were made
MADE: list[tuple[str, dict[str, Any], str | None, dict[tuple[Stage, Outcome], int]]] = [
    ("good", {}, None, {(Stage.ANSWER, Outcome.OK): 1}),
    ("good", PARTED, None, {(Stage.EXTRACT, Outcome.OK): 3, (Stage.REDUCE, Outcome.OK): 1}),
    ("none read", PARTED, "NothingRead", {(Stage.EXTRACT, Outcome.FAILED): 9}),
    (
        "wrong form",
        PARTED,
        None,
        {
            (Stage.EXTRACT, Outcome.UNUSABLE): 3,
            (Stage.EXTRACT, Outcome.OK): 3,
            (Stage.REDUCE, Outcome.OK): 1,
        },
    ),
]


@pytest.mark.parametrize(("script", "fields", "error", "calls"), MADE, ids=str)
async def test_the_calls_that_are_made(
    script: str, fields: dict[str, Any], error: str | None, calls: dict[tuple[Stage, Outcome], int]
) -> None:
    told = await in_process(model(SCRIPTS[script]()), **fields)
    assert told.calls == calls
    assert (told.error and told.error.type) == error
    assert (told.out is None) == (error is not None)


async def test_templates_of_a_users_own_answer(bench: Bench, tmp_path: Path) -> None:
    text = "Extract.\n\n%% user %%\n\n$question $choices $code\n$passages\n"
    (tmp_path / "extract.md").write_text(text, encoding="utf-8")
    own = load_own(tmp_path)
    here = await in_process(model(), **PARTED, prompts=own)
    for told in (here, await through_units(bench, model(), copies=1, **PARTED, prompts=own)):
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
