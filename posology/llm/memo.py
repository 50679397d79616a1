"""Replay of earlier replies to the same work, so that no call is billed twice.

A job that is redelivered or requeued makes the same calls in the same words. A call with a stored
reply is not sent again.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import TYPE_CHECKING

from posology.seams import Complete, Recall
from posology.types import Call, Completion

if TYPE_CHECKING:
    from pydantic import BaseModel


def call_key(call: Call) -> str:
    """Return a digest of a call's content, 32 hex digits: equal calls have equal keys.

    It covers everything that is sent but the service tier. Fields that are not sent, such as the excerpts, derive from the
    same source as the messages.
    """
    parts = [
        call.stage,
        call.model,
        _schema(call.schema) if call.schema is not None else "",
        str(call.max_tokens),
        str(call.temperature),
    ]
    if call.effort is not None:
        parts.append(f"effort {call.effort}")
    if call.dimensions is not None:
        parts.append(str(call.dimensions))
    for message in call.messages:
        parts += [message.role, message.content]
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode("utf-8", "surrogatepass")
        # with lengths, so that one part cannot equal two
        digest.update(len(content).to_bytes(8, "big"))
        digest.update(content)
    return digest.hexdigest()[:32]


@lru_cache(maxsize=256)
def _schema(schema: type[BaseModel]) -> str:
    return json.dumps(schema.model_json_schema(), sort_keys=True)


class Answered(Exception):
    """A :class:`~posology.seams.Journal` refuses an attempt: the reply to its call came meanwhile, to another worker.

    Args:
        completion: the reply.
    """

    def __init__(self, completion: Completion) -> None:
        super().__init__("the call has its reply")
        self.completion = completion


class Memo:
    """Returns the stored reply of a call, and sends the call only if there is none.

    It stands between structure and retry: a reply that needed a repair is replayed with its repair,
    and a replay is not an attempt. The :class:`~posology.seams.Journal` stores replies with their
    attempts, so that no paid reply is lost.
    """

    def __init__(self, inner: Complete, *, recall: Recall) -> None:
        self._inner = inner
        self._recall = recall

    async def __call__(self, call: Call) -> Completion:
        """Replay one call, or send it."""
        try:
            return await self._recall(call_key(call)) or await self._inner(call)
        except Answered as late:
            return late.completion
