"""A replier that needs no model: it quotes the first sentence of what it is shown.

It works from the request alone, as a provider would: the JSON schema tells which of Posology's replies
is wanted, and the fences of the prompt hold what can be quoted. It shares no code with the prompts and
the replies that it stands against.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_FENCE = re.compile(r"\[\[([PF]?\d+) (\w+)\]\]\n(.*?)\n\[\[/\1 \2\]\]", re.DOTALL)
#: what stands in a fence from the literature: the rest of the block, or one line
_TEXT = re.compile(r"^text: (.*)", re.DOTALL | re.MULTILINE)
#: the number of a sentence, and its words: one line
_NUMBERED = re.compile(r"^(\d+\.\d+) (.*)$", re.MULTILINE)
#: a field of a table: its name and what it takes
_FIELD = re.compile(r"^- ([a-z][a-z0-9_]*) \(([^)\n]*)\): ", re.MULTILINE)
_STATEMENT = re.compile(r"^statement: (.*)", re.MULTILINE)
#: a full stop that a capital follows, so that most abbreviations do not end a sentence
_SENTENCE = re.compile(r"\S.*?[.!?](?=\s+[A-Z]|\s*$)|\S.*", re.DOTALL)
_OMISSION = "[…]"
_FEWEST_WORDS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class _Shown:
    label: str
    #: of its text; empty where there is none to quote
    sentence: str
    #: number of the sentence; empty: sentences have none
    number: str = ""
    #: whether it is a finding
    found: bool = False


def echo(asked: Any) -> str:
    """The reply to one of Posology's requests, in either provider's format.

    Args:
        asked: the request's body.

    Returns:
        JSON of the form that the request's schema wants. Without a schema: of the answer's, or of the
        summary's where findings are shown.
    """
    schema = _schema(asked)
    shown = _shown(asked)
    wanted = schema.get("properties", {})
    findings = any(item.found for item in shown)
    # without a schema, sentences with numbers are named
    numbered = "statements" in wanted or (not wanted and any(item.number for item in shown))
    if "cells" in wanted:
        reply = _table(asked)
    elif "findings" in wanted:
        reply = _extract(shown, wanted)
    elif (
        "evidence" in wanted or "claims" in wanted or "short" in wanted or (not wanted and findings)
    ):
        reply = _reduce(shown, wanted, numbered=numbered)
    else:
        reply = _answer(shown, wanted, numbered=numbered)
    return json.dumps(reply, ensure_ascii=False)


def _answer(
    shown: Sequence[_Shown], wanted: Mapping[str, Any], *, numbered: bool
) -> dict[str, Any]:
    first = next((item for item in shown if item.sentence), None)
    if numbered:
        return {"answerable": first is not None} | _statements(first) | _verdict(wanted)
    return {
        "answerable": first is not None,
        "answer": first.sentence if first else "Nothing is shown.",
        "quotes": [_quote(first)] if first else [],
    } | _verdict(wanted)


def _extract(shown: Sequence[_Shown], wanted: Mapping[str, Any]) -> dict[str, Any]:
    quotable = [item for item in shown if item.sentence]
    findings = [
        {"statement": item.sentence}
        | ({"sentences": [item.number]} if item.number else {"quotes": [_quote(item)]})
        for item in quotable
    ]
    reply: dict[str, Any] = {"found": bool(findings), "findings": findings}
    if "answer" in wanted:
        reply["answer"] = quotable[0].sentence if quotable else ""
        reply |= _verdict(wanted)
    return reply


def _reduce(
    shown: Sequence[_Shown], wanted: Mapping[str, Any], *, numbered: bool
) -> dict[str, Any]:
    labels = [item.label for item in shown]
    agreed = {
        "claim": shown[0].sentence if shown else "",
        "supporting": labels[:2],
        "opposing": [],
        "resolution": "none",
        "reason": "They say the same.",
    }
    if "short" in wanted:
        ending: dict[str, Any] = {"short": shown[0].sentence if shown else ""}
    else:
        ending = {"claims": [agreed] if len(labels) > 1 else []}
    if numbered:
        stated = _statements(shown[0] if shown else None)
        return {"answerable": bool(shown)} | ending | stated | _verdict(wanted)
    return {
        "answerable": bool(shown),
        "answer": shown[0].sentence if shown else "Nothing is shown.",
        "evidence": labels[:2],
    } | (ending | _verdict(wanted))


def _table(asked: Any) -> dict[str, Any]:
    """Fill in a row: a number from the first sentence that has one, all else from the first sentence."""
    text = "\n".join(_said(asked))
    fence = _FENCE.search(text)
    numbered = _NUMBERED.findall(fence[3]) if fence else []
    return {"cells": [_cell(name, kind, numbered) for name, kind in _FIELD.findall(text)]}


def _cell(name: str, kind: str, numbered: Sequence[tuple[str, str]]) -> dict[str, Any]:
    digits = re.compile(r"(?<!\S)\d+(?=\s)")
    choices = kind.removeprefix("one of: ")
    for number, sentence in numbered:
        figure = digits.search(sentence)
        if kind == "a number" and figure is None:
            continue
        value = figure[0] if figure and kind == "a number" else sentence
        if choices != kind:
            value = choices.split(" | ")[0]
        return {"field": name, "value": value, "sentences": [number], "confidence": "high"}
    return {"field": name, "value": None, "sentences": [], "confidence": "low"}


def _statements(first: _Shown | None) -> dict[str, Any]:
    if first is None:
        return {"statements": [{"text": "Nothing is shown.", "sentences": []}]}
    return {"statements": [{"text": first.sentence, "sentences": [first.number]}]}


def _quote(item: _Shown) -> dict[str, str]:
    return {"passage": item.label, "quote": item.sentence}


def _verdict(wanted: Mapping[str, Any]) -> dict[str, str]:
    """The first of the verdicts that the schema allows; nothing where it asks for none."""
    allowed = wanted.get("verdict", {}).get("enum", ())
    return {"verdict": allowed[0]} if allowed else {}


def _schema(asked: Any) -> Mapping[str, Any]:
    for outer, inner in (("response_format", "json_schema"), ("output_config", "format")):
        node = (asked.get(outer) or {}).get(inner) or {}
        if isinstance(node.get("schema"), dict):
            return dict(node["schema"])
    return {}


def _said(asked: Any) -> list[str]:
    said = (m.get("content") for m in asked.get("messages", ()) if m.get("role") == "user")
    return ["".join(texts_of(content)) for content in said]


def texts_of(content: Any) -> Iterator[str]:
    """Yield the texts of a message's content: one, or parts, as where some are cached."""
    parts = content if isinstance(content, list) else [{"text": content}]
    yield from (part["text"] for part in parts if isinstance(part.get("text"), str))


def _shown(asked: Any) -> list[_Shown]:
    return [_first(fence[1], fence[3]) for text in _said(asked) for fence in _FENCE.finditer(text)]


def _first(label: str, body: str) -> _Shown:
    finding = body.startswith("source: ")
    for found in _NUMBERED.finditer(body):
        if len(found[2].split()) >= _FEWEST_WORDS:
            return _Shown(label=label, sentence=found[2].strip(), number=found[1], found=finding)
    return _Shown(label=label, sentence=_first_sentence(body), found=finding)


def _first_sentence(body: str) -> str:
    found = _TEXT.search(body) or _STATEMENT.search(body)
    if found is None:
        return ""
    for part in found[1].split(_OMISSION):
        for sentence in _SENTENCE.finditer(part.strip()):
            # a shorter quote is taken for none
            if len(sentence[0].split()) >= _FEWEST_WORDS:
                return sentence[0]
    return ""
