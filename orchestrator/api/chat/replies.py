"""Replies to the requests that chat interfaces make on their own, made of the words of the question."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from orchestrator.api.chat.answer import usage
from orchestrator.api.chat.request import ChatRequest
from orchestrator.api.chat.tasks import Asked
from posology.published.chat import (
    ChatChoice,
    ChatCompletion,
    ChatFunction,
    ChatMessage,
    ChatOutcome,
    ChatTask,
    ChatToolCall,
)
from posology.text.languages import foreign
from posology.types import Usage

#: words of a title, and characters of one of them
_WORDS, _WORD = 5, 40
#: what stands around a word and is no part of it
_EDGES = " \t\"'“”‘’`.,;:!?()[]{}<>*_#|/\\"
#: words that a title leaves out
_SMALL = frozenset(
    re.findall(
        r"\w+",
        "a an and any are as at be been by can could did do does for from had has have how i if in into is it its me my of "
        "on or please should tell than that the their there these this those to vs was were what when where whether which "
        "who why will with would you",
    )
)


def task_completion(
    request: ChatRequest, asked: Asked, *, name: str, created: int
) -> ChatCompletion:
    """Return the completion of what is no question; nothing was spent.

    Args:
        request: the request.
        asked: what it asks for.
        name: id of the completion.
        created: time, in POSIX seconds.
    """
    content, function = _reply(asked, request.model_extra or {})
    message = ChatMessage(content=content, annotations=())
    if function is not None:
        called = ChatFunction(name=function, arguments=content)
        call = ChatToolCall(id=f"call_{name}", function=called)
        message = ChatMessage(content=None, annotations=(), tool_calls=(call,))
    return ChatCompletion(
        id=name,
        created=created,
        model=request.model,
        choices=(ChatChoice(message=message),),
        usage=usage(Usage()),
        posology=ChatOutcome(
            job=None,
            status=None,
            choice=None,
            model=None,
            strategy=None,
            index=None,
            task=asked.task,
            cost_usd=Decimal(0),
            charged_usd=Decimal(0),
            usage_complete=True,
            ignored=request.ignored(),
        ),
    )


def _reply(asked: Asked, more: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the text of a reply, and the function whose arguments it is; ``None``: it is the message."""
    match asked.task:
        case ChatTask.PROBE:
            return "pong", None
        case ChatTask.TITLE:
            return _title_reply(asked, more)
        case ChatTask.TAGS:
            # the field of the service, then narrower ones
            longest = sorted(dict.fromkeys(_words(asked.question)), key=len, reverse=True)[:2]
            found = {"tags": ["Health", *longest] if longest else ["General"]}
        case ChatTask.FOLLOW_UPS:
            # a question must stand alone here; one that is put together from words would be paid for as well
            found = {"follow_ups": []}
        case ChatTask.QUERIES:
            found = {"queries": [asked.question] if asked.question else []}
    return json.dumps(found, ensure_ascii=False), None


def _title_reply(asked: Asked, more: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return a title in the form that is asked for: text, JSON, or the arguments of a function."""
    title = _title(asked.question)
    function, names = _wanted(more)
    if not names and '"title"' not in asked.prompt:
        return title, None
    known = {"title": title, "language": foreign(asked.question) or "English"}
    fields = {name: known.get(name, "") for name in names or ("title",)}
    return json.dumps(fields, ensure_ascii=False), function


def _title(question: str) -> str:
    """Return a title of the question's own words."""
    words = (
        word[0].upper() + word[1:] if word.islower() else word for word in _words(question)[:_WORDS]
    )
    return " ".join(words) or "Literature question"


def _words(question: str) -> list[str]:
    """Return the words of a question that say what it is about, else all."""
    words = [word for part in question.split() if (word := part.strip(_EDGES)[:_WORD])]
    telling = [word for word in words if word.lower() not in _SMALL]
    return telling if len(telling) > 1 else words


def _wanted(more: Mapping[str, Any]) -> tuple[str | None, tuple[str, ...]]:
    """Return the function that must be called, and the names of the fields that are asked for; none: text."""
    shape = more.get("response_format")
    match _of(shape, "type"):
        case "json_schema":
            return None, _fields(_of(_of(shape, "json_schema"), "schema"))
        case "json_object":
            return None, ("title",)
    choice, tools = more.get("tool_choice"), more.get("tools")
    chosen = _of(_of(choice, "function"), "name")
    for tool in tools if isinstance(tools, list) else ():
        made = _of(tool, "function")
        name = _of(made, "name")
        if isinstance(name, str) and (choice == "required" or name == chosen):
            return name, _fields(_of(made, "parameters"))
    return None, ()


def _fields(schema: object) -> tuple[str, ...]:
    found = _of(schema, "properties")
    return tuple(found) if isinstance(found, dict) and found else ("title",)


def _of(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
