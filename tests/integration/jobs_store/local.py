"""Runners without a queue: a small dispatcher in this process, a few passages, and a scripted model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import anyio

from orchestrator.question.decider import Decider
from orchestrator.question.pipeline import Pipeline
from posology.budget.prices.book import packaged
from posology.llm.calls import Caller
from posology.llm.retry import RetryPolicy
from posology.llm.stack import build
from posology.published.jobs import JobOutput
from posology.seams import Bound, Complete, Journal, Prices
from posology.testing.model import ScriptedModel
from posology.testing.models.embedder import HashEmbedder
from posology.testing.prices import by_bytes
from posology.types import Call, Completion, Form, Passage, Query, Retrieval, Stage
from prompts.answer import AnswerReply, Quote
from prompts.extract import ExtractReply, Statement
from prompts.reduce import ReduceReply
from tests.integration.jobs_store.helpers import Bench
from tests.support.adapters import sending
from tests.support.replies import in_form
from tests.support.tasks import retrieval_of
from workers.engine.claims import WorkStore
from workers.engine.runner import Runner
from workers.engine.units import Unit

if TYPE_CHECKING:
    from orchestrator.connections import Connections
    from posology.index.search.retriever import Retriever
    from posology.testing.model import ScriptedReply

#: waits that nobody notices
QUICK = RetryPolicy(attempts=3, base=0.001, deadline=10)
TEXTS = tuple(f"Drug {i} lowered the risk of stroke. It was given for {i} weeks." for i in range(6))


class Shelf:
    """A retriever over a handful of passages, in their order."""

    #: computes here, so that nothing is bought
    embedder = HashEmbedder()

    def __init__(self, count: int = len(TEXTS)) -> None:
        self._passages = [
            Passage(id=f"p{i}", text=text, year=2000 + i) for i, text in enumerate(TEXTS[:count])
        ]

    async def retrieve(self, query: Query, *, k: int, **_: object) -> Retrieval:
        found = retrieval_of(query, self._passages[:k])
        return replace(
            found,
            bm25_rerank=replace(found.dense, method="bm25_rerank"),
            bm25=replace(found.dense, method="bm25"),
            fused=replace(found.dense, method="fused"),
            index_version="shelf@1",
        )

    async def withdrawn(self, *_: object) -> tuple[str, ...]:
        return ("pmid:9", "pmid:10")


class Wires:
    """What connects a process to one scripted model."""

    def __init__(
        self,
        model: Complete,
        policy: RetryPolicy = QUICK,
        *,
        prices: Prices | None = None,
        bound: Bound = by_bytes,
        wait_timeout: float = 10.0,
    ) -> None:
        self._model = model
        self._policy = policy
        self.prices = prices or packaged()
        self._bound = bound
        self._wait_timeout = wait_timeout

    def complete(
        self,
        _: str,
        journal: Journal,
        caller: Caller = Caller(wait_timeout=1.0),  # noqa: B008 - a frozen value
    ) -> Complete:
        return build(
            sending(self._model),
            journal=journal,
            prices=self.prices,
            bound=self._bound,
            retry=self._policy,
            caller=replace(caller, wait_timeout=min(caller.wait_timeout, self._wait_timeout)),
        )


def pipeline(model: Complete, shelf: Shelf | None = None) -> Pipeline:
    return Pipeline(
        retriever=cast("Retriever", shelf or Shelf()),
        decider=Decider(),
        completes=Wires(model).complete,
    )


def runner(
    bench: Bench,
    model: Complete,
    *,
    shelf: Shelf | None = None,
    name: str = "w",
    work: WorkStore | None = None,
    wires: Wires | None = None,
) -> Runner:
    async def opened(_: str | None) -> Pipeline:
        return pipeline(model, shelf)

    connections = cast("Connections", wires or Wires(model))
    return Runner(work or bench.worker(name), connections, opened, keep=0.01)


def reply(call: Call) -> ScriptedReply:
    """What a good model does with any prompt of ours."""
    first = call.excerpts[0]
    quote = first.sentences[0].of(first.passage.text)
    choice = call.query.choices[0] if call.query.form is not Form.FREE else None
    match call.stage:
        case Stage.EXTRACT:
            said = Statement(statement=quote, quotes=[Quote(passage="P1", quote=quote)])
            return in_form(call, ExtractReply(found=True, findings=[said]))
        case Stage.REDUCE:
            labels = [f"F{i}" for i, _ in enumerate(call.excerpts, 1)]
            summed = ReduceReply(
                answerable=True, answer="They do.", choice=choice, evidence=labels, claims=[]
            )
            return in_form(call, summed)
        case _:
            answered = AnswerReply(
                answerable=True,
                answer="It does.",
                choice=choice,
                quotes=[Quote(passage="P1", quote=quote)],
            )
            return in_form(call, answered)


def model(
    answer: Callable[[Call], ScriptedReply] = reply, *, latency: float = 0.0
) -> ScriptedModel:
    return ScriptedModel(answer, latency=latency)


@dataclass(kw_only=True, slots=True)
class Local:
    """Carries units to runners, and what they return to the next, each message ``copies`` times."""

    bench: Bench
    runner: Runner
    copies: int = 1
    #: what was carried, in order
    carried: list[Unit] = field(default_factory=list)

    async def until_nothing_is_sent(self) -> None:
        """Take every waiting job, and carry units until no more are asked for."""
        units: list[Unit] = []
        while (unit := await self.bench.worker().take(self.bench.tenant)) is not None:
            units.append(unit)
        await self.carry(units)

    async def carry(self, units: list[Unit]) -> None:
        """Carry units and all that follow from them."""
        while units:
            self.carried += units
            following: list[Unit] = []

            async def one(unit: Unit, into: list[Unit] = following) -> None:
                into.extend(await self.runner.run(unit))

            async with anyio.create_task_group() as group:
                for unit in units:
                    for _ in range(self.copies):
                        group.start_soon(one, unit)
            units = following

    async def finish(self, job: str) -> JobOutput:
        """The job, after all that it asked for."""
        await self.until_nothing_is_sent()
        return await self.bench.get(job)


def carrying(bench: Bench, model: Complete, **given: Any) -> Local:
    """A runner over a model, and what carries units to it."""
    return Local(bench=bench, runner=runner(bench, model, **given))


class Gate:
    """A model that holds calls until it is opened, and then replies as another does."""

    def __init__(self, inner: ScriptedModel, *, holds: Callable[[Call], bool]) -> None:
        self._inner = inner
        self._holds = holds
        self.arrived = 0
        self.opened = anyio.Event()
        self._arrival = anyio.Event()

    async def __call__(self, call: Call) -> Completion:
        if self._holds(call):
            self.arrived += 1
            self._arrival.set()
            self._arrival = anyio.Event()
            await self.opened.wait()
        return await self._inner(call)

    async def until(self, count: int) -> None:
        with anyio.fail_after(90):
            while self.arrived < count:
                await self._arrival.wait()


def of(kind: Stage) -> Callable[[Call], bool]:
    return lambda call: call.stage is kind


async def killed(
    running: Callable[[], Awaitable[object]], when: Callable[[], Awaitable[None]]
) -> None:
    """Run something until a moment comes; then it stops where it is, as a killed process does."""
    async with anyio.create_task_group() as group:

        async def run() -> None:
            await running()

        group.start_soon(run)
        await when()
        group.cancel_scope.cancel()
