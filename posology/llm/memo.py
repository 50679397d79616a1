"""Replays the replies that the same work was given before, so that nothing is billed twice.

A job that runs again, because its worker died or its message came twice, makes the same calls in
the same words. What it already has a reply to is not sent again.
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
    """The content of a call as 32 hex digits: equal for calls that any provider answers alike.

    It covers all that is sent. What is not sent, such as the excerpts as data, derives from the
    same source as the messages do.
    """
    parts = [
        call.stage,
        call.model,
        _schema(call.schema) if call.schema is not None else "",
        str(call.max_tokens),
        str(call.temperature),
    ]
    if call.dimensions is not None:
        parts.append(str(call.dimensions))
    for message in call.messages:
        parts += [message.role, message.content]
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode("utf-8", "surrogatepass")
        # lengths, so that no part can pose as two
        digest.update(len(content).to_bytes(8, "big"))
        digest.update(content)
    return digest.hexdigest()[:32]


@lru_cache(maxsize=256)
def _schema(schema: type[BaseModel]) -> str:
    return json.dumps(schema.model_json_schema(), sort_keys=True)


class Memo:
    """Asks for an earlier reply first, and sends the call only where there is none.

    It stands between structure and retry: a reply that needed a repair is replayed with its repair,
    and one replay is not one attempt. Replies are written down where attempts are, by the
    :class:`~posology.seams.Journal`, so that no reply is paid for and forgotten in between.
    """

    def __init__(self, inner: Complete, *, recall: Recall) -> None:
        self._inner = inner
        self._recall = recall

    async def __call__(self, call: Call) -> Completion:
        """Replay one call, or send it."""
        return await self._recall(call_key(call)) or await self._inner(call)
