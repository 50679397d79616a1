"""Requests that chat interfaces make on their own: titles, tags, follow-ups, search queries, and a test of the connection.

They are answered from the words of the request: each would else be a paid question about the literature. One is recognised
by its whole form, since a question may quote such a prompt. The prompts are those of Open WebUI and LibreChat.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from orchestrator.api.chat.request import ChatRequest, ChatTurn
from orchestrator.rendering.words import safe
from orchestrator.settings import MIN_TOKENS
from posology.published.chat import ChatTask

#: characters of a question that a reply is made of
_QUESTION = 300
#: how Open WebUI begins and ends its prompts
_BEGINS, _OPENS, _CLOSES = "### Task:", "<chat_history>", "</chat_history>"
#: first line of a prompt of Open WebUI → its task
_ASKS: tuple[tuple[re.Pattern[str], ChatTask], ...] = (
    (re.compile(r"(?:generate|create) a concise, \d-\d word (?:title|phrase)\b", re.IGNORECASE), ChatTask.TITLE),
    (re.compile(r"generate (?:a list of )?\d-\d broad tags\b", re.IGNORECASE), ChatTask.TAGS),
    (re.compile(r"suggest \d-\d (?:relevant )?follow-?ups?\b", re.IGNORECASE), ChatTask.FOLLOW_UPS),
    (re.compile(r"analyze the chat history to determine the necessity of generating search queries", re.IGNORECASE), ChatTask.QUERIES),
)  # fmt: skip
#: beginnings of LibreChat's prompts for a title; a conversation follows
_TITLES = (
    "Provide a concise, 5-word-or-less title for the conversation",
    "Analyze this conversation and provide:\n1. The detected language of the conversation\n2. A concise title",
    "Please generate a concise, 5-word-or-less title for the conversation",
    "Please generate a concise title (max 40 characters) for a conversation that starts with:",
)
#: names of tasks in `metadata` of Open WebUI
_NAMES: Mapping[str, ChatTask] = MappingProxyType(
    {
        "title_generation": ChatTask.TITLE,
        "tags_generation": ChatTask.TAGS,
        "follow_up_generation": ChatTask.FOLLOW_UPS,
        "query_generation": ChatTask.QUERIES,
    }
)
#: a line that begins what the user said, and one that ends it
_USER = re.compile(
    r'^(?:\|\|>)?(?:user|human)[ \t]*:[ \t]*\n?[ \t]*"?', re.IGNORECASE | re.MULTILINE
)
_CONVERSATION = re.compile(r"^conversation:[ \t]*$", re.IGNORECASE | re.MULTILINE)
_OTHER = re.compile(
    r"^(?:\|\|>)?(?:user|human|assistant|ai|response|title)[ \t]*:", re.IGNORECASE | re.MULTILINE
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A request that is no question."""

    task: ChatTask
    #: the instructions
    prompt: str
    #: what the user asked first, one line; empty: it is not known
    question: str


def task_of(asked: ChatRequest) -> Asked | None:
    """Return the task of a request that is no question; ``None``: it is one."""
    if _is_probe(asked):
        return Asked(task=ChatTask.PROBE, prompt="", question="")
    text = _only_text(asked.messages)
    if text is None or (found := _recognised(text, asked.model_extra or {})) is None:
        return None
    task, prompt, history = found
    return Asked(task=task, prompt=prompt, question=" ".join(safe(_said(history)).split()))


def _is_probe(asked: ChatRequest) -> bool:
    """Return whether a request only tests the connection, as Dify's does."""
    limit = asked.max_completion_tokens or asked.max_tokens
    text = _only_text(asked.messages) if len(asked.messages) == 1 else None
    return limit is not None and limit < MIN_TOKENS and (text or "").strip().casefold() == "ping"


def _only_text(messages: tuple[ChatTurn, ...]) -> str | None:
    """Return the text of a conversation of one turn; ``None``: it has several, or is no text."""
    turns = [turn for turn in messages if turn.role not in ("system", "developer")]
    if [turn.role for turn in turns] == ["user"]:
        (only,) = turns
    elif not turns:
        only = messages[-1]
    else:
        return None
    if isinstance(only.content, str):
        return only.content
    parts = only.content or ()
    if not all(part.type == "text" and part.text is not None for part in parts):
        return None
    return "\n".join(part.text or "" for part in parts)


def _recognised(text: str, more: Mapping[str, Any]) -> tuple[ChatTask, str, str] | None:
    """Return the task, the prompt and the conversation that a text asks about; ``None``: it is a question."""
    text = text.strip().replace("\r\n", "\n")
    start = text.find(_OPENS) if text.endswith(_CLOSES) else -1
    if start >= 0:
        prompt, history = text[:start], text[start + len(_OPENS) : -len(_CLOSES)]
        first = prompt.removeprefix(_BEGINS).lstrip()
        task = next((task for pattern, task in _ASKS if pattern.match(first)), _named(more))
        return None if task is None else (task, prompt, history)
    for beginning in _TITLES:
        if text.startswith(beginning) and (said := _conversation(text, len(beginning))):
            return ChatTask.TITLE, beginning, said
    task = _named(more)
    return None if task is None else (task, text, _conversation(text, 0))


def _conversation(text: str, start: int) -> str:
    """Return the conversation that stands in a text; empty: there is none."""
    if begun := _USER.search(text, start):
        return text[begun.start() :]
    begun = _CONVERSATION.search(text, start)
    return "" if begun is None else text[begun.end() :].strip()


def _named(more: Mapping[str, Any]) -> ChatTask | None:
    """Return the task that a field of the request names."""
    metadata = more.get("metadata")
    told = metadata.get("task") if isinstance(metadata, dict) else None
    name = told or more.get("task")
    # a member of an enumeration, as Python prints it
    return _NAMES.get(name.rpartition(".")[2].lower()) if isinstance(name, str) else None


def _said(history: str) -> str:
    """Return what the user said first."""
    begun = _USER.search(history)
    if begun is None:
        return next(filter(None, map(str.strip, history.split("\n"))), "")[:_QUESTION]
    ended = _OTHER.search(history, begun.end())
    said = history[begun.end() : ended.start() if ended else len(history)]
    return said.strip().removesuffix('"')[:_QUESTION]
