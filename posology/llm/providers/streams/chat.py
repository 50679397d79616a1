"""Chunks of OpenAI's chat completions, and of servers with the same API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posology.llm.providers.fields import section
from posology.llm.providers.streams.assembly import Assembly

#: fields of a chunk that are not those of the body
_APART = frozenset({"choices", "usage", "prompt_progress", "error"})


class ChatAssembly(Assembly):
    """Puts chunks together into the body of a chat completion.

    Texts of a field are joined, parts of a list are collected, and of anything else the last value holds, as servers add
    fields of their own.
    """

    CUT = b'{"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}'

    def __init__(self) -> None:
        super().__init__()
        self._choice: dict[str, Any] | None = None
        #: fields of the message: pieces of a text, or parts
        self._pieces: dict[str, list[Any]] = {}
        #: other fields of the message
        self._others: dict[str, Any] = {}
        #: calls of tools, by their places, with the pieces of their arguments
        self._calls: dict[Any, tuple[dict[str, Any], list[Any]]] = {}

    def _take(self, event: dict[str, Any]) -> None:
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            if not self._fault(event):
                self._merge(event)
                self._count(event.get("usage"), last=True)
            return
        if event.get("error"):
            self._fault(event)
        self._merge(event)
        if not choice.get("index"):
            self._choose(choice)
        # in the choice: Moonshot; in a field of its own: Groq
        usage = event.get("usage") or choice.get("usage") or section(event, "x_groq").get("usage")
        self._count(usage, last=self.finished)

    def _merge(self, event: Mapping[str, Any]) -> None:
        for name, value in event.items():
            if value is not None and name not in _APART:
                self._fields[name] = value
        if "prompt_progress" in event:
            self._reads(section(event, "prompt_progress"))

    def _count(self, usage: object, *, last: bool) -> None:
        if isinstance(usage, dict):
            self._usage = usage
            self._counted = self._counted or last

    def _choose(self, choice: dict[str, Any]) -> None:
        if self._choice is None:
            self._choice = {"index": 0}
        for name, value in choice.items():
            # some servers send an empty finish_reason with every chunk, also behind the last
            if value not in (None, "") and name not in ("delta", "message", "usage"):
                self._choice[name] = value
        self.finished = bool(self._choice.get("finish_reason"))
        # a message instead of its parts: servers that do not stream, and MiniMax at the end
        whole = None if self.began else choice.get("message")
        delta = choice.get("delta") or whole
        if isinstance(delta, dict):
            self._add(delta)

    def _add(self, delta: Mapping[str, Any]) -> None:
        for name, value in delta.items():
            if isinstance(value, str) and name != "role":
                self._pieces.setdefault(name, []).append(value)
                self._wrote(value)
            elif name == "tool_calls" and isinstance(value, list):
                self._call(value)
            elif isinstance(value, list):
                self._pieces.setdefault(name, []).extend(value)
                self.began = True
            elif value is not None:
                self._others[name] = value

    def _call(self, parts: list[Any]) -> None:
        for place, part in enumerate(parts):
            if not isinstance(part, dict):
                continue
            call, arguments = self._calls.setdefault(part.get("index", place), ({}, []))
            function = {**section(call, "function"), **section(part, "function")}
            call.update(part, function=function)
            given = section(part, "function").get("arguments")
            if given is not None:
                arguments.append(given)
                self._wrote(given if isinstance(given, str) else " ")

    def _content(self) -> Mapping[str, Any]:
        if self._choice is None:
            return {"choices": []}
        message = {"role": "assistant", "content": None} | self._others
        message |= {name: _joined(pieces) for name, pieces in self._pieces.items()}
        if self._calls:
            message["tool_calls"] = [
                call | {"function": {**section(call, "function"), "arguments": _joined(arguments)}}
                for call, arguments in self._calls.values()
            ]
        return {"choices": [{**self._choice, "message": message}]}


def _joined(pieces: list[Any]) -> Any:
    """Return the text of pieces; of parts, the parts; of an object that came whole, the object."""
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces)
    return pieces[0] if len(pieces) == 1 and isinstance(pieces[0], dict) else pieces
