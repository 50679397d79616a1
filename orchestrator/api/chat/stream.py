"""A chat completion in chunks: stages while the job is under way, then the verified answer."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import anyio
from sse_starlette import ServerSentEvent

from orchestrator.api.chat.answer import message, outcome_of, usage
from orchestrator.api.chat.errors import as_error, problem_of, result_of
from orchestrator.jobs.store import JobStore
from orchestrator.rendering.stages import stage_of
from posology.published.answers import AskOutput
from posology.published.chat import ChatChunk, ChatChunkChoice, ChatCompletion, ChatDelta
from posology.published.jobs import JobEvent, JobOutput


@dataclass(frozen=True, kw_only=True, slots=True)
class Stream:
    """The chunks of one completion."""

    store: JobStore
    tenant: str
    #: the job as it was submitted
    job: JobOutput
    #: name of the model that was asked
    model: str
    #: fields of the request without effect
    ignored: tuple[str, ...]
    #: the question that was asked where earlier ones complete it
    completed: str | None
    #: whether the request asked for a chunk with the tokens
    counted: bool
    #: maximum seconds until the answer
    seconds: float

    async def events(self) -> AsyncGenerator[ServerSentEvent]:
        """Yield the chunks. Once the response has begun, an error is an event, too."""
        yield self._sent(ChatDelta(role="assistant", content=""))
        try:
            async with aclosing(self._stages()) as stages:
                async for stage in stages:
                    yield self._sent(ChatDelta(reasoning_content=f"{stage}\n"))
            job = await self.store.get(self.job.id, tenant=self.tenant)
            for chunk in self._answer(job, result_of(job)):
                yield chunk
        except Exception as error:  # noqa: BLE001 - what is no problem is logged as a defect
            _, body = as_error(json.loads(bytes(problem_of(error).body)))
            yield ServerSentEvent(json.dumps({"error": body}))
        yield ServerSentEvent("[DONE]")

    async def _stages(self) -> AsyncGenerator[str]:
        until = anyio.current_time() + self.seconds
        found = self.store.events(self.job.id, tenant=self.tenant)
        async with aclosing(found):
            while True:
                event = None
                # a scope must not be open while a generator waits to be continued
                with anyio.CancelScope(deadline=until):
                    event = await anext(found, None)
                if event is None:
                    return
                if told := await self._told(event):
                    yield told

    async def _told(self, event: JobEvent) -> str | None:
        reason = None
        if event.type == "decided":
            decision = (await self.store.get(self.job.id, tenant=self.tenant)).decision
            reason = decision.reason if decision else None
        return stage_of(event, reason=reason)

    def _answer(self, job: JobOutput, out: AskOutput) -> Iterator[ServerSentEvent]:
        whole = message(out, completed=self.completed)
        yield self._sent(ChatDelta(content=whole.content, annotations=whole.annotations))
        said = outcome_of(job, out, self.ignored, self.completed)
        last = ChatChunkChoice(delta=ChatDelta(), finish_reason="stop")
        # a cost that is unknown is null, and stays
        yield self._chunk((last,), posology=said.model_dump(mode="json"))
        if self.counted:
            yield self._chunk((), usage=usage(job.spending.usage).model_dump())

    def _sent(self, delta: ChatDelta) -> ServerSentEvent:
        return self._chunk((ChatChunkChoice(delta=delta),))

    def _chunk(self, choices: tuple[ChatChunkChoice, ...], **more: Any) -> ServerSentEvent:
        created = int(self.job.created.timestamp())
        return _event(
            ChatChunk(id=self.job.id, created=created, model=self.model, choices=choices), more
        )


async def whole(out: ChatCompletion, *, counted: bool) -> AsyncGenerator[ServerSentEvent]:
    """Yield the chunks of a completion that is there.

    Args:
        out: the completion.
        counted: whether the request asked for a chunk with the tokens.
    """

    def sent(*choices: ChatChunkChoice, **more: Any) -> ServerSentEvent:
        chunk = ChatChunk(id=out.id, created=out.created, model=out.model, choices=choices)
        return _event(chunk, more)

    message = out.choices[0].message
    yield sent(ChatChunkChoice(delta=ChatDelta(role="assistant", content="")))
    said = ChatDelta(content=message.content, tool_calls=message.tool_calls or None)
    yield sent(ChatChunkChoice(delta=said))
    last = ChatChunkChoice(delta=ChatDelta(), finish_reason="stop")
    yield sent(last, posology=out.posology.model_dump(mode="json"))
    if counted:
        yield sent(usage=out.usage.model_dump())
    yield ServerSentEvent("[DONE]")


def _event(chunk: ChatChunk, more: dict[str, Any]) -> ServerSentEvent:
    return ServerSentEvent(json.dumps(chunk.model_dump(mode="json", exclude_none=True) | more))
