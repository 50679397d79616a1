"""A model whose replies are written beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

from posology.types import Call, Completion, Finish, Usage

if TYPE_CHECKING:
    from pydantic import BaseModel

    #: text, a structured reply, a whole completion, or an error to raise
    ScriptedReply = str | BaseModel | Completion | BaseException


class ScriptedModel:
    """A :class:`~posology.seams.Send` that replies from a script, and keeps the calls.

    Args:
        script: replies in order, or a function from the call to its reply. A script that has run
            out fails the test that asks for more.
        usage: of every reply that is not a whole completion.
        latency: seconds to wait before each reply.
    """

    def __init__(
        self,
        script: Iterable[ScriptedReply] | Callable[[Call], ScriptedReply],
        *,
        usage: Usage | None = Usage(input=100, output=10),  # noqa: B008 - a frozen value
        latency: float = 0.0,
    ) -> None:
        self._answer = script if callable(script) else None
        self._script = iter(()) if callable(script) else iter(script)
        self._usage = usage
        self._latency = latency
        #: every call so far, in order
        self.calls: list[Call] = []
        #: the id that each was sent under
        self.attempt_ids: list[str | None] = []

    async def __call__(self, call: Call, *, attempt_id: str | None = None) -> Completion:
        """Reply to one call."""
        self.calls.append(call)
        self.attempt_ids.append(attempt_id)
        if self._latency:
            await anyio.sleep(self._latency)
        else:
            # a real model's caller can be cancelled here, so this one's can
            await anyio.lowlevel.checkpoint()
        return self._completion(call, self._next(call))

    async def aclose(self) -> None:
        """Hold nothing, so close nothing."""

    def _next(self, call: Call) -> ScriptedReply:
        if self._answer is not None:
            return self._answer(call)
        for reply in self._script:
            return reply
        raise AssertionError(f"the script has no reply to call {len(self.calls)}")

    def _completion(self, call: Call, reply: ScriptedReply) -> Completion:
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, Completion):
            return reply
        return Completion(
            text=reply if isinstance(reply, str) else reply.model_dump_json(),
            usage=self._usage,
            finish=Finish.STOP,
            served_model=call.model.partition(":")[2],
            latency=self._latency,
        )
