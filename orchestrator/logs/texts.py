"""Texts of questions, prompts and replies as attributes of spans, where ``POSOLOGY_TRACE_TEXTS`` asks for them.

They are the opt-in attributes of the conventions for generative AI: ``gen_ai.input.messages`` and
``gen_ai.output.messages``, as JSON. They reach spans beside the fields of an event, so no log line has them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextvars import ContextVar

from posology.seams import Send
from posology.types import Call, Completion, Finish, Stage

INPUT, OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
#: characters of one message; of a longer one, its beginning and its end are kept
LIMIT = 8_000
_CUT = "\n[…]\n"
#: names of reasons in the conventions, where they are others
_FINISH: Mapping[Finish, str] = {Finish.FILTERED: "content_filter", Finish.OTHER: "error"}
_allowed = False
#: the last attempt of this task that was sent, and its call
_sent: ContextVar[tuple[str, Call] | None] = ContextVar("_sent", default=None)


def allow_texts(*, allowed: bool) -> None:
    """Say whether spans of this process may contain texts. Default: no."""
    global _allowed  # noqa: PLW0603 - traces are the process's
    _allowed = allowed


class Remembering:
    """Remembers what is sent until the attempt has ended. A :class:`~posology.seams.Send`.

    Args:
        inner: sends it.
    """

    def __init__(self, inner: Send) -> None:
        self._inner = inner

    async def __call__(self, call: Call, *, attempt_id: str | None = None) -> Completion:
        """Send a call."""
        if _allowed and attempt_id is not None:
            _sent.set((attempt_id, call))
        return await self._inner(call, attempt_id=attempt_id)


def of_attempt(attempt: str, stage: Stage, completion: Completion | None) -> Mapping[str, str]:
    """Return the attributes of an attempt: its messages, if this task sent them, and its reply.

    Vectors are no messages, so a call that embeds has none.

    Args:
        attempt: id of the attempt.
        stage: of its call.
        completion: the reply; ``None``: none came.
    """
    if not _allowed or stage is Stage.EMBED:
        return {}
    found: dict[str, str] = {}
    sent = _sent.get()
    if sent is not None and sent[0] == attempt:
        found[INPUT] = _messages((one.role.value, one.content) for one in sent[1].messages)
    if completion is not None:
        reason = _FINISH.get(completion.finish, completion.finish.value)
        found[OUTPUT] = _messages([("assistant", completion.text)], finish_reason=reason)
    return found


def of_answer(question: str, answer: str | None) -> Mapping[str, str]:
    """Return the attributes of a job: its question, and its answer or the reason of its refusal."""
    if not _allowed:
        return {}
    found = {INPUT: _messages([("user", question)])}
    if answer is not None:
        found[OUTPUT] = _messages([("assistant", answer)], finish_reason=Finish.STOP.value)
    return found


def _messages(found: Iterable[tuple[str, str]], **more: str) -> str:
    messages = [
        {"role": role, "parts": [{"type": "text", "content": _clipped(text)}], **more}
        for role, text in found
    ]
    return json.dumps(messages, ensure_ascii=False)


def _clipped(text: str) -> str:
    half = (LIMIT - len(_CUT)) // 2
    return text if len(text) <= LIMIT else f"{text[:half]}{_CUT}{text[-half:]}"
