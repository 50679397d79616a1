"""Decisions that stand in a real Redis: told as stories, decided again, and what changed since."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
import numpy as np
import pytest
from rich.console import Console

from orchestrator.cli.ask.explanation import why_job
from orchestrator.jobs.batches import Batches
from orchestrator.question import qtables
from orchestrator.question.decider import Decider
from orchestrator.question.decisions.forms import Replay, ReplayOutput
from orchestrator.question.decisions.replay import Present, Replayer, each, of_batch
from orchestrator.question.estimates.costs import Estimator
from orchestrator.question.estimates.tokens import Counting
from orchestrator.question.estimates.typical import Typical
from orchestrator.question.pipeline import Pipeline
from orchestrator.settings import Settings
from policies.qtable import ACTIONS, QTable
from posology.errors import DecisionChanged
from posology.published.jobs import JobOutput
from posology.testing.model import ScriptedModel
from posology.testing.prices import FlatPrices, by_bytes
from posology.types import DECLINE, Call, JobState, Stage
from prompts.answer import AnswerReply
from tests.integration.jobs_store.helpers import MODEL, Bench, open_bench
from tests.integration.jobs_store.local import Local, Wires, reply
from tests.support.commands import Cli, flat, published
from tests.support.replies import in_form
from tests.support.situations import Library
from tests.unit.policies.tables import table
from workers.engine.runner import Runner

if TYPE_CHECKING:
    from orchestrator.connections import Connections
    from orchestrator.service import Service
    from posology.index.search.retriever import Retriever
    from posology.testing.model import ScriptedReply

PRICES = FlatPrices(token=Decimal("0.0001"))
#: keeps a fifth in each of its states
_VALUES = np.zeros((3, len(ACTIONS)))
_VALUES[:, ACTIONS.index(0.2)] = 1.0
TABLE = table(q=_VALUES)
K = 8
#: what it sees is plain from two rankings
PUBLISHED = "router:preflight=published"
#: dollars: more than anything costs, and less
AMPLE, TINY = "50", "0.001"


def characters(text: str) -> int:
    return len(text)


def estimator() -> Estimator:
    return Estimator(
        prices=PRICES, bound=by_bytes, counting=Counting(characters), typical=Typical()
    )


def decider(of: QTable | None = TABLE, default: str = "router") -> Decider:
    return Decider(default=default, table=of, estimator=estimator())


def script(call: Call) -> ScriptedReply:
    """Refuses in one call what it is told to refuse, and finds it in partitions."""
    if call.stage is Stage.ANSWER and "refuse" in call.query.text:
        return in_form(
            call, AnswerReply(answerable=False, answer="It is not said.", choice=None, quotes=[])
        )
    return reply(call)


def runner(bench: Bench) -> Runner:
    wires = Wires(ScriptedModel(script), prices=PRICES)

    async def opened(_: str | None) -> Pipeline:
        return Pipeline(
            retriever=cast("Retriever", Library()), decider=decider(), completes=wires.complete
        )

    return Runner(bench.worker(), cast("Connections", wires), opened, keep=0.01)


@dataclass(kw_only=True, slots=True)
class Kind:
    """A kind of job, and what it is decided to be."""

    name: str
    question: str
    strategy: str
    fields: dict[str, Any] = field(default_factory=dict)
    #: strategy of the second decision
    then: str | None = None
    state: JobState = JobState.SUCCEEDED


KINDS = (
    Kind(name="ladder", question="agree", strategy="direct", fields={"policy": "doubling"}),
    Kind(name="escalated", question="agree refuse", strategy="direct", then="briefcontext",
         fields={"policy": "doubling", "max_cost_usd": AMPLE}),
    Kind(name="table", question="agree", strategy="", fields={"policy": PUBLISHED}),
    Kind(name="small table", question="apart", strategy="", fields={"policy": "qtable"}),
    Kind(name="parted", question="apart", strategy="briefcontext",
         fields={"policy": "preflight:preflight=published", "max_cost_usd": AMPLE}),
    Kind(name="stepped down", question="apart", strategy="direct",
         fields={"policy": f"{PUBLISHED},qtable=off,step_down=off", "max_cost_usd": "0.8"}),
    Kind(name="declined", question="apart", strategy=DECLINE, state=JobState.FAILED,
         fields={"policy": PUBLISHED, "max_cost_usd": TINY}),
    Kind(name="forced", question="agree", strategy="compressed",
         fields={"strategy": "compressed", "keep": 0.2}),
    Kind(name="forced parted", question="agree", strategy="briefcontext",
         fields={"strategy": "briefcontext", "max_cost_usd": AMPLE}),
)  # fmt: skip


def rows(times: int) -> list[str]:
    plain = {"model": MODEL, "k": K, "max_tokens": 300, "deadline_seconds": 100}
    return [
        json.dumps(plain | {"question": f"Does it help? {kind.question} {turn}"} | kind.fields)
        for turn in range(times)
        for kind in KINDS
    ]


async def made(bench: Bench, times: int = 4) -> tuple[str, list[JobOutput]]:
    """A batch of all kinds, worked on to the end."""
    batches = Batches(bench.store, Settings())
    batch = (await batches.submit(rows(times), tenant=bench.tenant)).id
    await Local(bench=bench, runner=runner(bench)).until_nothing_is_sent()
    found = await batches.rows(batch, tenant=bench.tenant)
    jobs = [str(row.job) for row in found]
    return batch, [await bench.store.get(job, tenant=bench.tenant) for job in jobs]


async def replayed(bench: Bench, jobs: Sequence[JobOutput], present: Present) -> ReplayOutput:
    replayer = Replayer(present)
    await each(bench.store, [job.id for job in jobs], replayer, tenant=bench.tenant)
    return replayer.output(0.0)


def test_jobs_of_all_kinds_are_decided_the_same_again(redis_url: str, tenant: str) -> None:
    async def main() -> None:
        async with open_bench(redis_url, tenant) as bench:
            batch, jobs = await made(bench)
            for kind, job in zip(KINDS, jobs, strict=False):
                assert job.state is kind.state, (kind.name, job.error)
                decision = job.decision
                assert decision is not None
                assert decision.strategy == (kind.strategy or decision.strategy), kind.name
                assert (decision.then and decision.then.strategy) == kind.then, kind.name
            out = await replayed(bench, jobs, Present(decider=decider(), index="library@1"))
            assert out.counts == {Replay.SAME: len(jobs)}
            assert out.decisions == len(jobs) + 4
            assert not out.versions
            assert not out.found

            # by their batch, a page at a time; and by what is retrieved again
            ids = [job async for job in of_batch(_batches(bench), batch, tenant=tenant)]
            assert ids == [job.id for job in jobs]
            service = cast("Service", Library())
            again = await replayed(bench, jobs, Present(decider=decider(), service=service))
            assert again.counts == {Replay.SAME: len(jobs)}

    anyio.run(main)


def _batches(bench: Bench) -> Batches:
    return Batches(bench.store, Settings())


def test_the_report_names_what_changed(redis_url: str, tenant: str) -> None:
    async def main() -> None:
        async with open_bench(redis_url, tenant) as bench:
            _, jobs = await made(bench, times=1)
            by_kind = {kind.name: job for kind, job in zip(KINDS, jobs, strict=True)}

            # another Q-table: states of the one are none of the other
            other = decider(table(visits=9))
            out = await replayed(bench, [by_kind["table"]], Present(decider=other))
            (job,) = out.found
            assert job.status is Replay.FAILED
            (decision,) = job.decisions
            assert decision.error is not None
            assert decision.error.type == "PolicyMismatch"
            assert {c.name for c in decision.versions} == {"policy", "policy qtable"}
            assert decision.versions[1].recorded == TABLE.digest

            # retrieved again, it can be decided
            service = cast("Service", Library())
            out = await replayed(bench, [by_kind["table"]], Present(decider=other, service=service))
            assert out.found[0].decisions[0].error is None
            assert "qtable.table" in {c.name for c in out.found[0].decisions[0].features}

            # no Q-table: less is looked at, and the dose is another
            out = await replayed(bench, [by_kind["small table"]], Present(decider=decider(None)))
            (decision,) = out.found[0].decisions
            assert out.found[0].status is Replay.CHANGED
            assert decision.now is not None
            assert (decision.dose.strategy, decision.now.strategy) == ("compressed", "direct")
            assert "dose" in decision.differing
            gone = next(c for c in decision.versions if c.name == "policy qtable")
            assert (gone.recorded, gone.now) == (TABLE.digest, None)

            # templates that are not loaded here cannot be compared
            recorded = by_kind["table"].decision
            assert recorded is not None
            versions = {**recorded.versions, "prompts": "0123456789abcdef"}
            recorded = recorded.model_copy(update={"versions": versions})
            lost = by_kind["table"].model_copy(update={"decision": recorded})
            again = await Replayer(Present(decider=decider())).add(lost)
            assert again.status is Replay.FAILED
            assert again.decisions[0].error is not None
            assert again.decisions[0].error.type == "PromptsMismatch"

            # prices and index are of another version: told, and the decision is the same
            present = Present(decider=decider(), prices="other", index="library@2")
            out = await replayed(bench, jobs, present)
            assert out.counts == {Replay.SAME: len(jobs)}
            assert out.versions == {"prices": out.decisions, "index": out.decisions}

            # the same index may not give other features, another one may
            for index, status in (("library@1", Replay.CHANGED), ("library@2", Replay.SAME)):
                service = cast("Service", Library(index, shift=0.3))
                present = Present(decider=decider(), service=service)
                found = await replayed(bench, [by_kind["parted"]], present)
                (one,) = found.found
                assert one.status is status
                assert "preflight.dense_first" in {c.name for c in one.decisions[0].features}

    anyio.run(main)


def test_jobs_that_are_gone_or_wait_are_counted_apart(redis_url: str, tenant: str) -> None:
    async def main() -> None:
        async with open_bench(redis_url, tenant) as bench:
            job = await bench.submit()
            replayer = Replayer(Present(decider=decider()))
            await each(bench.store, [job, "job_nobody"], replayer, tenant=tenant)
            out = replayer.output(0.0)
            assert out.counts == {Replay.UNDECIDED: 1, Replay.MISSING: 1}
            assert out.decisions == 0

    anyio.run(main)


@pytest.fixture
def batch(redis_url: str, tenant: str, tmp_path: Path) -> tuple[str, list[JobOutput]]:
    """A batch of all kinds, and their Q-table in ``t.json``."""
    qtables.save(TABLE, tmp_path / "t.json")

    async def main() -> tuple[str, list[JobOutput]]:
        async with open_bench(redis_url, tenant) as bench:
            return await made(bench, times=1)

    return anyio.run(main)


def test_the_command_ends_well_where_all_is_the_same(
    cli: Cli, batch: tuple[str, list[JobOutput]]
) -> None:
    name, jobs = batch
    all_ = cli("policy", "replay", "--batch", name, "--qtable", "t.json")
    assert all_.exit_code == 0, all_.output
    assert "9 jobs, 10 decisions: 9 same" in all_.stdout
    # FlatPrices made the records; the packaged ones are here
    assert "prices (10 decisions)" in all_.stdout
    one = cli("policy", "replay", jobs[1].id, POSOLOGY_QTABLE="t.json")
    assert "same: direct, by 2, 4, 8 passages, then briefcontext" in one.stdout
    listed = "\n".join(job.id for job in jobs)
    piped = cli("policy", "replay", "-", "--qtable", "t.json", stdin=listed)
    assert piped.exit_code == 0
    assert piped.stdout.count("  same: ") == len(jobs)


def test_the_command_tells_what_changed(cli: Cli, batch: tuple[str, list[JobOutput]]) -> None:
    name, jobs = batch
    result = cli("policy", "replay", "--batch", name)
    assert result.exit_code == DecisionChanged.exit_code
    assert "policy qtable" in result.stdout
    assert "different decision" in result.stdout
    as_json = cli("policy", "replay", "--batch", name, "--json", "--show", "1")
    assert as_json.exit_code == DecisionChanged.exit_code
    out = published(as_json, "replay")
    assert sum(out["counts"].values()) == len(jobs)
    assert len(out["found"]) == 1
    assert out["counts"]["changed"] >= 2
    gone = cli("policy", "replay", "job_nobody")
    assert gone.exit_code == 1
    assert "job not found" in gone.stdout
    assert cli("policy", "replay").exit_code == 2
    assert cli("policy", "replay", "--batch", "batch_nobody").exit_code == 8
    assert cli("policy", "replay", jobs[0].id, "--qtable", "none.json").exit_code == 4


def test_a_job_tells_why(cli: Cli, batch: tuple[str, list[JobOutput]]) -> None:
    _, jobs = batch
    by_kind = {kind.name: job for kind, job in zip(KINDS, jobs, strict=True)}
    said = {
        name: flat(cli("jobs", "show", job.id, "--why").stdout) for name, job in by_kind.items()
    }
    assert "3. passages 1 to 8" in said["escalated"]
    assert "gave no answer, too, so the policy decided again" in said["escalated"]
    assert "8 of 8 passages were read" in said["escalated"]
    assert "decided briefcontext, by the policy doubling" in said["escalated"]
    assert "agreement of dense and BM25 on the top 3 (IoU, 0 to 1) 0.000" in said["stepped down"]
    assert said["stepped down"].count("over budget") == 1
    assert "left $0.8" in said["stepped down"]
    assert "declined: the remaining budget pays for no answer; the cheapest way" in said["declined"]
    assert "nothing was sent, and it cost nothing" in said["declined"]
    assert "state of the Q-table" in said["small table"]
    assert f"policy qtable: {TABLE.digest}" in said["small table"]
    assert "8 passages of 16 sentences in library@1." in said["forced"]
    # without it, a job is shown in short
    short = cli("jobs", "show", by_kind["stepped down"].id).stdout
    assert "--why" in short
    assert "preflight.iou_3" not in short
    assert "preflight.iou_3" in cli("jobs", "show", by_kind["stepped down"].id, "--json").stdout


def test_a_job_without_a_decision_tells_so(cli: Cli, redis_url: str, tenant: str) -> None:
    async def main() -> str:
        async with open_bench(redis_url, tenant) as bench:
            return await bench.submit(question="Is it \x1b[31mred?")

    result = cli("jobs", "show", anyio.run(main), "--why")
    assert result.exit_code == 0
    assert "Nothing was decided yet." in result.stdout
    assert "The job is queued" in result.stdout
    assert "\x1b" not in result.stdout


def test_what_comes_from_outside_cannot_move_the_cursor(
    batch: tuple[str, list[JobOutput]],
) -> None:
    job = batch[1][0]
    assert job.decision is not None
    evil = "\x1b[2J[bold]x[/bold]"
    fields = {"reason": evil, "steps": (evil,), "policy": evil, "versions": {evil: evil}}
    decision = job.decision.model_copy(
        update={**fields, "features": {"passages": 3, "qtable.table": evil}}
    )
    told = job.model_copy(update={"decision": decision, "question": evil, "model": evil})
    out = StringIO()
    why_job(Console(file=out, width=120), told)
    assert "\x1b" not in out.getvalue()
    assert "[bold]x[/bold]" in out.getvalue()
