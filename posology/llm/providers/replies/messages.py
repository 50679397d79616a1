"""The text of a reply's message, wherever servers with OpenAI's API put it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: fields with the model's reasoning: vLLM, DeepSeek, llama.cpp, SGLang; OpenRouter, Ollama, Groq, newer vLLM; Ollama's own
_REASONING = ("reasoning_content", "reasoning", "thinking")
#: kinds of parts that are the model's reasoning
_THOUGHTS = ("thinking", "reasoning", "reasoning_content", "thought", "redacted_thinking")
_PARTS = ("text", "output_text", "refusal", *_THOUGHTS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """The content of a message, and the reasoning beside it."""

    text: str
    #: whether it declines to answer
    refused: bool = False
    #: the model's reasoning, in a field or a part of its own
    reasoning: str = ""
    #: where the reasoning stands
    place: str = ""

    @property
    def misplaced(self) -> str:
        """Why the text is useless: the reply stands in the reasoning; empty: it does not."""
        if self.text.strip() or not self.reasoning.rstrip(" \n`").endswith("}"):
            return ""
        return (
            f"its content is empty, and a JSON object is in {self.place}, which is the model's reasoning: let the "
            "server leave the reasoning in the content (vLLM and SGLang without --reasoning-parser, llama.cpp with "
            "--reasoning-format none), or turn reasoning off"
        )


def said_in(message: Mapping[str, Any]) -> Said | None:
    """Read a message; ``None``: its content is not text.

    Parts of text are joined, and parts of reasoning left out. A reply that a gateway made a call of a tool is the
    arguments of that call: no tool is ever offered. An object instead of a text is the reply of a server that reads JSON
    itself.
    """
    content = message.get("content")
    field = next((name for name in _REASONING if isinstance(message.get(name), str)), "")
    reasoning = str(message[field]) if field else ""
    refusal = message.get("refusal")
    if isinstance(content, Mapping) and content.get("type") not in _PARTS:
        content = json.dumps(content)
    elif isinstance(content, Mapping | list):
        parts = [content] if isinstance(content, Mapping) else content
        words = [_words(part) for part in parts]
        if not all(isinstance(one, str) for one in words):
            return None
        refusal = refusal or "".join(_refusals(parts))
        content = "".join(map(str, words))
        reasoning = reasoning or "".join(_thoughts(parts))
    elif not isinstance(content, str | None):
        return None
    if isinstance(refusal, str) and refusal:
        return Said(text=refusal, refused=True)
    text = content or ""
    if not text.strip():
        text = _arguments(message.get("tool_calls")) or text
    place = f"its field {field}" if field else "a part of its content"
    return Said(text=text, reasoning=reasoning, place=place)


def _words(part: object) -> str | None:
    """Return the text of a part; ``None``: it is of another kind than text and reasoning."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return None
    # Gemini marks parts of reasoning by a field
    if part.get("type") in (*_THOUGHTS, "refusal") or part.get("thought") is True:
        return ""
    text = part.get("text")
    return text if isinstance(text, str) else None


def _refusals(parts: list[Any]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Mapping) and isinstance(part.get("refusal"), str):
            yield part["refusal"]


def _thoughts(parts: list[Any]) -> Iterator[str]:
    """Yield the texts of reasoning, which may hold parts itself (Mistral)."""
    for part in parts:
        if isinstance(part, Mapping) and part.get("type") in _THOUGHTS:
            for key in ("thinking", "reasoning", "text"):
                held = part.get(key)
                if isinstance(held, str):
                    yield held
                elif isinstance(held, list):
                    yield from (
                        str(one.get("text", "")) for one in held if isinstance(one, Mapping)
                    )


def _arguments(calls: object) -> str:
    """Return the arguments of the only call of a tool; empty: there is none."""
    if not (isinstance(calls, list) and len(calls) == 1 and isinstance(calls[0], Mapping)):
        return ""
    function = calls[0].get("function")
    given = function.get("arguments") if isinstance(function, Mapping) else None
    if isinstance(given, Mapping):
        return json.dumps(given)
    return given if isinstance(given, str) else ""
