"""What the stub of :mod:`evals.peers` says to each side, and what it bills.

A text reply is the first sentence of the longest line of what the prompt shows, which is a document's or an extract's. Posology's requests are answered as by :mod:`posology.testing.provider.echo`; paper-qa's with the JSON and the
citation keys that it reads. Tokens are characters / 4, a schema's among them: providers bill it as input.
"""

from __future__ import annotations

import json
import re
from typing import Any

from posology.testing.provider.echo import echo
from posology.types import Usage

#: documents that :func:`hesitates` must be shown before it answers
ENOUGH = 8
#: a refusal to the re-enacted doubling, word for word as its prompt asks
REFUSAL = "Not found in the sources."
#: a refusal to Pathway's own program, and how a document begins in its prompt
PATHWAY_REFUSAL, _DOCUMENT = "No information found.", re.compile(r'^\{"text": ', re.MULTILINE)
_CHARACTERS = 4
_SCORE = 8
_FENCE = re.compile(r"\[\[\d+ \w+\]\]\n")
_SOURCE = re.compile(r"^Source \d+: ", re.MULTILINE)
_RULE = re.compile(r"^[-=]{3,}$", re.MULTILINE)
#: parts of a prompt whose literature stands between the first two of its rules, less one
_FRAMED = 2
_KEY = re.compile(r"\bpqac-[0-9a-zA-Z]{8}\b")
_SENTENCE = re.compile(r"\S.*?[.!?](?=\s|$)|\S.*")


def answers(asked: Any) -> str:
    """Reply to a side's request; it never refuses."""
    if "response_format" in asked:
        return echo(asked)
    shown = _shown(_text(asked, role="user"))
    sentence = _first_sentence(max(shown.splitlines(), key=len, default=""))
    if "relevance_score" in _text(asked, role="system"):
        return json.dumps({"summary": sentence, "relevance_score": _SCORE})
    key = _KEY.search(shown)
    return sentence if key is None else f"{sentence} ({key[0]})"


def hesitates(asked: Any) -> str:
    """Reply as :func:`answers` does, but refuse to answer from fewer than eight documents.

    Calls that extract or reduce are answered.
    """
    if "response_format" in asked:
        wanted = asked["response_format"].get("json_schema", {}).get("schema", {})
        answering = not {"findings", "claims", "evidence"} & wanted.get("properties", {}).keys()
        short = answering and len(_FENCE.findall(_text(asked, role="user"))) < ENOUGH
        return echo(asked | {"messages": []}) if short else echo(asked)
    if documents := len(_DOCUMENT.findall(_text(asked))):
        return PATHWAY_REFUSAL if documents < ENOUGH else answers(asked)
    shown = len(_SOURCE.findall(_text(asked)))
    return REFUSAL if 0 < shown < ENOUGH else answers(asked)


def usage(asked: Any, text: str) -> Usage:
    """Return the tokens of a call, from lengths."""
    schema = asked.get("response_format", "")
    read = len(_text(asked)) + (len(json.dumps(schema)) if schema else 0)
    return Usage(input=1 + read // _CHARACTERS, output=1 + len(text) // _CHARACTERS)


def _text(asked: Any, *, role: str | None = None) -> str:
    """Return the messages' texts, of one role or all; a content is a text or a list of parts."""
    texts: list[str] = []
    for message in asked.get("messages", ()):
        content = message.get("content") or ""
        if role in (None, message.get("role")):
            parts = [content] if isinstance(content, str) else [p.get("text", "") for p in content]
            texts += parts
    return "\n".join(texts)


def _shown(prompt: str) -> str:
    """Return the part with the literature: between two ruled lines, before the only one, or all."""
    parts = _RULE.split(prompt)
    return parts[1] if len(parts) > _FRAMED else parts[0]


def _first_sentence(line: str) -> str:
    found = _SENTENCE.search(line)
    return found[0] if found else ""
