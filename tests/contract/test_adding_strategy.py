"""A new strategy is its file, its prompt and one entry of the registry, as CONTRIBUTING.md says."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.question.estimates.costs import Estimator
from orchestrator.question.estimates.tokens import Counting
from orchestrator.question.estimates.typical import Typical
from orchestrator.question.machine import task_of
from orchestrator.question.request import AskRequest, JobRequest, Request
from orchestrator.settings import Settings
from policies.calibration import Calibration
from policies.qtable import QTable
from policies.specs import POLICIES, Spec
from policies.specs import Entry as PolicyEntry
from posology.errors import InvalidQuery
from posology.llm.accounting import Account
from posology.llm.second import REPAIRED
from posology.query import make_query
from posology.seams import Complete
from posology.testing.model import ScriptedModel
from posology.testing.prices import FlatPrices, by_bytes
from posology.text.tokens import approximate
from posology.types import Answer, Call, Decision, Dose, JobState, Refusal, Situation, Stage, Task
from prompts.answer import AnswerReply
from prompts.template import Rendered, render
from strategies import STRATEGIES, Entry, Parts, make
from strategies.evidence import whole
from strategies.single_call import OneCall, ask, conclude
from tests.integration.jobs_store.helpers import MODEL, open_bench
from tests.integration.jobs_store.local import Local, Shelf, pipeline, reply, runner
from tests.support.replies import in_form

if TYPE_CHECKING:
    from posology.testing.model import ScriptedReply

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
NAME = "toy"


def render_toy(question: str) -> Rendered:
    """Stands for ``prompts/NAME.py``; it borrows a template."""
    return render("answer", question=question, choices="", code="c0de", passages="")


class Toy(OneCall):
    """Stands for ``strategies/NAME.py``: reads the best passage alone."""

    async def __call__(self, task: Task, complete: Complete) -> Answer | Refusal:
        call = self.call(task)
        if call is None:
            return Refusal(reason="No passage.", strategy=NAME)
        return conclude(task.query, await complete(call), call.excerpts, strategy=NAME)

    def call(self, task: Task) -> Call | None:
        call = ask(task, whole(task.retrieval.passages[:1]), strategy=NAME)
        return call and replace(call, prompt=render_toy(task.query.text).prompt)


def build(_dose: Dose, _parts: Parts) -> Toy:
    return Toy()


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STRATEGIES, NAME, Entry(build=build))


@dataclass(frozen=True, kw_only=True, slots=True)
class Climbing:
    """A ladder of one step, and the toy strategy after a refusal."""

    version: str = "1"
    parts: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, situation: Situation) -> Decision:
        dose = Dose(strategy="direct", rungs=(4,), escalate=True)
        if situation.tried:
            dose = Dose(strategy=NAME)
        return Decision(dose=dose, policy="climbing", reason="As ever.")

    def replay(self, record: Decision) -> Decision:
        return record


@dataclass(frozen=True, kw_only=True, slots=True)
class ClimbingSpec(Spec):
    def policy(
        self,
        table: QTable | None = None,
        *,
        embedder: str | None = None,
        compressor: str | None = None,
        calibration: Calibration | None = None,
    ) -> Climbing:
        del table, embedder, compressor, calibration
        return Climbing()


def asked(**fields: object) -> Request:
    plain = Request(query=make_query("Does it help?"), model=MODEL, k=4, max_tokens=500)
    return replace(plain, strategy=NAME, **fields)  # type: ignore[arg-type]


def estimator() -> Estimator:
    return Estimator(
        prices=FlatPrices(token=Decimal("0.001")),
        bound=by_bytes,
        counting=Counting(approximate),
        typical=Typical(),
    )


def test_the_guide_names_the_file_and_the_registry_alone() -> None:
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| a strategy \|(.*)\|(.*)\|$", guide, re.MULTILINE)
    assert "strategies/NAME.py" in row[0]
    assert re.findall(r"`(\S+\.py)`", row[1]) == ["strategies/__init__.py"]


def test_names_are_known_without_loading_a_strategy() -> None:
    code = (
        "import sys; from strategies import STRATEGIES; print(*STRATEGIES);"
        "print(*(m for m in sys.modules if m.startswith('strategies.') or m == 'numpy'))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, loaded = out.stdout.split("\n")[:2]
    assert names.split() == list(STRATEGIES)
    assert loaded == ""


def test_without_its_entry_it_is_unknown() -> None:
    with pytest.raises(InvalidQuery) as raised:
        AskRequest(question="Does it help?", strategy=NAME).to_request(Settings())
    assert raised.value.field == "strategy"


@pytest.mark.usefixtures("registered")
def test_it_is_asked_for_by_name_and_takes_no_compressor() -> None:
    request = AskRequest(question="Does it help?", strategy=NAME).to_request(Settings())
    assert request.strategy == NAME
    for other in ({"keep": 0.3}, {"compressor": "leancontext"}):
        with pytest.raises(InvalidQuery) as raised:
            AskRequest.parse({"question": "?", "strategy": NAME, **other}).to_request(Settings())
        assert raised.value.field in other


@pytest.mark.usefixtures("registered")
async def test_it_is_estimated_by_its_own_plan() -> None:
    retrieval = await Shelf().retrieve(make_query("Does it help?"), k=4)
    task = task_of(asked(), retrieval)
    made = await estimator()(task, Dose(strategy=NAME))
    call = Toy().call(task)
    assert call is not None
    assert (made.strategy, made.calls) == (NAME, 1)
    assert made.input == round(Counting(approximate).expected(call))
    assert Decimal(0) < made.dollars.low <= made.dollars.expected <= made.dollars.worst
    # it begins with its reservation; at worst its reply needs a repair
    assert estimator().quote(task, Dose(strategy=NAME)) * REPAIRED == made.dollars.worst
    assert make(Dose(strategy=NAME)).count(task) == 1


@pytest.mark.usefixtures("registered")
async def test_it_answers_in_this_process() -> None:
    model = ScriptedModel(reply)
    report = await pipeline(model).run(asked(), Account(), tenant="t")
    assert isinstance(report.outcome, Answer)
    assert (report.outcome.strategy, report.decision.strategy) == (NAME, NAME)
    (call,) = model.calls
    assert [excerpt.passage.id for excerpt in call.excerpts] == ["p0"]


@pytest.mark.usefixtures("registered")
async def test_it_answers_by_a_worker(redis_url: str, tenant: str) -> None:
    async with open_bench(redis_url, tenant) as bench:
        request = JobRequest(
            question="Does it help?", model=MODEL, k=4, max_tokens=500, strategy=NAME
        )
        job = (await bench.store.submit(request, tenant=tenant)).job
        out = await Local(bench=bench, runner=runner(bench, ScriptedModel(reply))).finish(job)
    assert out.state is JobState.SUCCEEDED
    assert out.result is not None
    assert out.result.strategy == NAME
    assert [attempt.stage for attempt in out.spending.attempts] == [Stage.ANSWER]


class TestAPolicyEscalatesToIt:
    """A refused ladder escalates to a strategy of one call, in this process and on a worker."""

    @pytest.fixture(autouse=True)
    def _escalates(self, registered: None, monkeypatch: pytest.MonkeyPatch) -> None:
        del registered
        monkeypatch.setitem(POLICIES, "climbing", PolicyEntry(spec=ClimbingSpec(text="climbing")))

    @staticmethod
    def script(call: Call) -> ScriptedReply:
        if call.strategy == NAME:
            return reply(call)
        return in_form(
            call, AnswerReply(answerable=False, answer="It is not said.", choice=None, quotes=[])
        )

    async def test_here(self) -> None:
        model = ScriptedModel(self.script)
        request = replace(asked(), strategy=None, policy="climbing")
        report = await pipeline(model).run(request, Account(), tenant="t")
        assert isinstance(report.outcome, Answer)
        assert report.outcome.strategy == NAME
        assert [step.passages for step in report.outcome.rungs] == [4]

    async def test_there(self, redis_url: str, tenant: str) -> None:
        async with open_bench(redis_url, tenant) as bench:
            request = JobRequest(
                question="Does it help?",
                model=MODEL,
                k=4,
                max_tokens=500,
                policy="climbing",
            )
            job = (await bench.store.submit(request, tenant=tenant)).job
            model = ScriptedModel(self.script)
            out = await Local(bench=bench, runner=runner(bench, model)).finish(job)
        assert out.result is not None
        assert out.result.strategy == NAME
        assert [step.passages for step in out.result.rungs] == [4]
        assert [call.strategy for call in model.calls] == ["direct", NAME]
