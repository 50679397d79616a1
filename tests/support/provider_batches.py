"""A provider's batch endpoint in this process: a model answers, and faults are at the test's word."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import anyio.lowlevel

from posology.errors import MalformedReply, NotProcessed, ProviderError, ProviderTimeout
from posology.llm.memo import call_key
from posology.seams.batches import (
    BatchFate,
    BatchFound,
    BatchLimits,
    BatchLine,
    BatchResult,
    BatchStatus,
)
from posology.testing.model import ScriptedModel
from posology.types import Call, Usage


@dataclass(kw_only=True, slots=True)
class Made:
    """A batch at the provider."""

    label: str
    lines: dict[str, BatchLine]
    ended: bool = False
    #: its results cannot be read any more
    gone: bool = False
    results: list[BatchResult] = field(default_factory=list)


class ScriptedBatches:
    """A :class:`~posology.seams.batches.BatchEndpoint` over a scripted model.

    Args:
        model: replies to each line when its batch ends.
        limits: of a batch.
    """

    def __init__(self, model: ScriptedModel, *, limits: BatchLimits | None = None) -> None:
        self.model = model
        self.limits = limits or BatchLimits(lines=1_000, bytes=10_000_000)
        self.made: dict[str, Made] = {}
        self.cancelled: list[str] = []
        self.discarded: list[str] = []
        self._calls: dict[str, Call] = {}
        #: raised by the next ``create``, before or after the batch is made
        self.before: ProviderError | None = None
        self.after: BaseException | None = None
        #: whether ``find`` may say that there is none
        self.sure = True
        #: earliest time that ``find`` was to look at
        self.since: datetime | None = None

    def line(self, call: Call) -> BatchLine:
        self._calls[call_key(call)] = call
        return BatchLine(model=call.model, path="/v1/x", body=call_key(call))

    async def create(self, lines: Mapping[str, BatchLine], *, label: str) -> str:
        await anyio.lowlevel.checkpoint()
        if error := self.before:
            self.before = None
            raise error
        name = f"batch_{len(self.made)}"
        self.made[name] = Made(label=label, lines=dict(lines))
        if late := self.after:
            self.after = None
            raise late
        return name

    async def find(
        self,
        label: str,
        *,
        model: str,
        ids: Collection[str],
        since: datetime,
        known: Collection[str],
    ) -> BatchFound:
        self.since = since
        for name, made in self.made.items():
            if made.label == label:
                assert set(made.lines) == set(ids)
                return BatchFound(batch=name, sure=True)
        return BatchFound(batch=None, sure=self.sure)

    async def status(self, batch: str, *, model: str) -> BatchStatus:
        made = self.made[batch]
        return BatchStatus(
            ended=made.ended,
            cancelling=batch in self.cancelled,
            succeeded=0,
            failed=0,
            expires=None,
        )

    async def results(
        self, batch: str, *, model: str, ids: Collection[str]
    ) -> AsyncIterator[BatchResult]:
        made = self.made[batch]
        if made.gone:
            raise MalformedReply("gone", provider="openai", model=model)
        for result in made.results:
            await anyio.lowlevel.checkpoint()
            if result.id in ids:
                yield result

    async def cancel(self, batch: str, *, model: str) -> None:
        self.cancelled.append(batch)

    async def discard(self, batch: str, *, model: str) -> None:
        self.discarded.append(batch)

    async def aclose(self) -> None:
        pass

    async def end(
        self,
        batch: str | None = None,
        *,
        fates: Callable[[str], BatchFate] = lambda _: BatchFate.SUCCEEDED,
        reorder: Callable[[list[BatchResult]], Iterable[BatchResult]] = list,
    ) -> None:
        """Answer all lines of one batch or of all."""
        for name in [batch] if batch else [n for n, made in self.made.items() if not made.ended]:
            made = self.made[name]
            results = [
                await self._result(attempt, line, fates(attempt))
                for attempt, line in made.lines.items()
            ]
            made.results = list(reorder(results))
            made.ended = True

    async def _result(self, attempt: str, line: BatchLine, fate: BatchFate) -> BatchResult:
        if fate is BatchFate.SUCCEEDED:
            try:
                completion = await self.model(self._calls[line.body], attempt_id=attempt)
            except ProviderError as error:
                return BatchResult(id=attempt, fate=BatchFate.ERRORED, error=error)
            return BatchResult(id=attempt, fate=fate, completion=completion)
        if fate is BatchFate.UNREADABLE:
            lost = MalformedReply("unreadable", provider="openai", model=line.model)
            return BatchResult(id=attempt, fate=fate, error=lost)
        said = NotProcessed(str(fate), provider="openai", model=line.model, usage=Usage())
        return BatchResult(id=attempt, fate=fate, error=said)


def unconfirmed() -> ProviderTimeout:
    """Return the error of a ``create`` whose outcome is unknown."""
    return ProviderTimeout("no reply", provider="openai", model="x")
