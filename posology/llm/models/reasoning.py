"""Where a model's reasoning ends in the text of its reply.

Servers without a parser for it leave reasoning in the text, with the marks of the model's own chat template. Templates
that open it in the prompt leave the mark of its end alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

#: of words within marks
_WORD = r"(?:think|thought|reason|reflection|scratchpad|analysis)"
#: Ends: most models; Magistral; Kimi; Cohere, DeepSeek and Open Thoughts; Gemma 4; gpt-oss, with and without its special tokens;
#: Granite 3.2
_END: Final = (
    rf"</[\w:-]*{_WORD}[\w:-]*>|\[/THINK\]|◁/think▷|<[|｜](?:/|end)[\w▁]*{_WORD}[\w▁]*[|｜]>|<channel\|>"
    r"|<\|channel\|>\s*final\b(?:(?!<\|message\|>).){0,80}<\|message\|>|(?-i:assistantfinal)"
    r"|Here(?:'s|’s| is) my response:"
)
_BEGIN: Final = (
    rf"<[\w:-]*{_WORD}[\w:-]*>|\[THINK\]|◁think▷|<[|｜](?:start|begin)?[\w▁]*{_WORD}[\w▁]*[|｜]>|<\|channel>\s*thought"
    r"|(?:<\|start\|>assistant)?<\|channel\|>\s*(?:analysis|commentary)|\A\s*(?-i:analysis(?=[A-Z]))"
    r"|Here(?:'s|’s| is) my thought process:"
)
_MARK: Final = re.compile(f"(?P<end>{_END})|(?P<begin>{_BEGIN})", re.IGNORECASE | re.DOTALL)
#: most beginnings of objects that are tried: nested ones take long to fail
_TRIES: Final = 1_000
_decoder = json.JSONDecoder(strict=False)


def after_reasoning(text: str) -> str:
    """Return the part of a reply that is no reasoning; the whole text if it has none.

    That is what follows the last mark of an end, or what precedes reasoning that nothing follows. A mark in a string of a
    complete JSON object is the string's. Reasoning that does not end has no reply behind it.
    """
    # where the reply begins, if no more reasoning follows; and where reasoning began that is still open
    start, opened = 0, -1
    reply = ""
    for mark in _marks(text):
        before = text[start : mark.start()]
        if mark["begin"] is not None:
            if opened < 0:
                opened = mark.start()
                reply = before if before.strip() else reply
        else:
            if opened < 0 and _is_object(before):
                reply = before
            start, opened = mark.end(), -1
    tail = text[start:]
    if opened >= 0:
        before = text[start:opened]
        # a mark in the middle of prose that nothing closes is a word of it
        tail = before if "{" in before or not before.strip() else tail
    return tail if tail.strip() else reply


def _marks(text: str) -> Iterator[re.Match[str]]:
    """Yield the marks outside of complete JSON objects."""
    at, tries = 0, _TRIES
    while (mark := _MARK.search(text, at)) is not None:
        brace = text.find("{", at, mark.start())
        while brace >= 0 and tries:
            tries -= 1
            try:
                _, at = _decoder.raw_decode(text, brace)
            except (ValueError, RecursionError):
                at = brace + 1
            brace = text.find("{", at, mark.start()) if at <= mark.start() else -1
        if at <= mark.start():
            yield mark
            at = mark.end()


def _is_object(text: str) -> bool:
    text = text.strip()
    try:
        _, end = _decoder.raw_decode(text)
    except (ValueError, RecursionError):
        return False
    return text.startswith("{") and end == len(text)
