"""Calls of the tool ask: the same one again goes on with the same question."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from orchestrator.api.mcp.desk import AGAIN, Answered, Submitted, submitted
from orchestrator.api.mcp.elsewhere import LocalDesk
from orchestrator.question.request import AskRequest
from posology.errors import InvalidQuery
from posology.published.jobs import AskPending, JobEvent
from posology.types import JobState

pytestmark = pytest.mark.anyio
ASKED = AskRequest(question="Did aspirin lower the risk?", k=4)


@dataclass
class Jobs:
    """The jobs of idempotency keys."""

    by_key: dict[str, Any] = field(default_factory=dict)

    async def submit(self, key: str) -> Submitted:
        created = key not in self.by_key
        job = self.by_key.setdefault(
            key, SimpleNamespace(id=f"job_{len(self.by_key)}", state=JobState.QUEUED, ended=None)
        )

        async def get(_: str) -> Any:
            return job

        return Submitted(id=job.id, created=created, events=_none, get=get, cancel=get)

    def end(self, number: int, state: JobState, *, ago: timedelta = timedelta()) -> None:
        job = list(self.by_key.values())[number]
        job.state, job.ended = state, datetime.now(UTC) - ago


async def _none(_: str) -> AsyncGenerator[JobEvent]:
    return
    yield


@pytest.mark.parametrize(
    ("state", "ago", "again"),
    [
        (JobState.QUEUED, timedelta(), "job_0"),
        (JobState.RUNNING, timedelta(), "job_0"),
        (JobState.SUCCEEDED, AGAIN / 2, "job_0"),
        # the evidence may have changed since
        (JobState.SUCCEEDED, AGAIN * 2, "job_1"),
        (JobState.FAILED, timedelta(), "job_1"),
        (JobState.EXPIRED, timedelta(), "job_1"),
        (JobState.CANCELLED, timedelta(), "job_1"),
        (JobState.CANCELLING, timedelta(), "job_1"),
    ],
)
async def test_the_same_call_is_the_same_job_until_that_is_old_or_failed(
    state: JobState, ago: timedelta, again: str
) -> None:
    jobs = Jobs()
    assert (await submitted(jobs.submit, key=None, asked="a")).id == "job_0"
    jobs.end(0, state, ago=ago)
    assert (await submitted(jobs.submit, key=None, asked="a")).id == again
    assert (await submitted(jobs.submit, key=None, asked="a")).id == again
    assert (await submitted(jobs.submit, key=None, asked="b")).created
    assert (await submitted(jobs.submit, key="trial-7", asked="a")).created


async def test_each_failure_leads_to_one_more_job() -> None:
    jobs = Jobs()
    for number in range(5):
        assert (await submitted(jobs.submit, key=None, asked="a")).id == f"job_{number}"
        jobs.end(number, JobState.FAILED)


class Library:
    """Answers when it is let."""

    is_open = True

    def __init__(self) -> None:
        self.asked, self.cancelled = 0, 0
        self.let = anyio.Event()
        self.error: Exception | None = None

    def check(self, _: str | None) -> None:
        """The only index."""

    async def ask(self, **_: Any) -> Any:
        self.asked += 1
        try:
            await self.let.wait()
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        if self.error is not None:
            raise self.error
        return f"answer {self.asked}"


async def _ask(desk: LocalDesk, asked: AskRequest = ASKED, *, key: str | None = None) -> Answered:
    async def told(_: JobEvent) -> None:
        raise AssertionError("there is no job")

    return await desk.ask(asked, key=key, told=told)


async def test_a_slow_model_of_this_process_is_waited_for_by_the_same_call() -> None:
    library: Any = Library()
    async with anyio.create_task_group() as group:
        desk = LocalDesk(library=library, group=group, wait=0.01)
        for _ in range(2):
            assert isinstance((await _ask(desk)).out, AskPending)
        assert library.asked == 1
        library.let.set()
        patient = LocalDesk(library=library, group=group, questions=desk.questions)
        outs: list[Any] = [(await _ask(patient)).out for _ in range(2)]
        assert outs == ["answer 1", "answer 2"]
        library.error = InvalidQuery("no", field="question")
        with pytest.raises(InvalidQuery):
            await _ask(patient)
        assert patient.questions == {}


async def test_a_key_names_no_other_question_of_this_process() -> None:
    library: Any = Library()
    async with anyio.create_task_group() as group:
        desk = LocalDesk(library=library, group=group, wait=0.01)
        await _ask(desk, key="mine")
        await _ask(desk, AskRequest(question="And heparin?"), key="mine")
        assert library.asked == 2
        group.cancel_scope.cancel()


async def test_who_waits_for_the_question_of_a_cancelled_call_gets_an_answer() -> None:
    library: Any = Library()
    outs: list[Any] = []
    async with anyio.create_task_group() as group:
        desk = LocalDesk(library=library, group=group)

        async def wait() -> None:
            outs.append((await _ask(desk)).out)

        async with anyio.create_task_group() as others, anyio.create_task_group() as calls:
            calls.start_soon(_ask, desk)
            await anyio.wait_all_tasks_blocked()
            others.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            calls.cancel_scope.cancel()
            library.let.set()
    assert outs == ["answer 2"]
    assert desk.questions == {}


async def test_a_cancelled_call_of_this_process_stops_its_question() -> None:
    library: Any = Library()
    async with anyio.create_task_group() as group:
        desk = LocalDesk(library=library, group=group)
        async with anyio.create_task_group() as calls:
            calls.start_soon(_ask, desk)
            while not library.asked:
                await anyio.lowlevel.checkpoint()
            calls.cancel_scope.cancel()
        await anyio.wait_all_tasks_blocked()
        assert (library.cancelled, desk.questions) == (1, {})
