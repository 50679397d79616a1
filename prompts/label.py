"""The prompt of a silver label: a model answers from numbered sentences and cites those that it used.

Provence, section 3, *Silver labels generation*: models are better at answering with citations than at naming
relevant sentences, and say "no answer" where there is nothing. The wording is our own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from posology.types import Query
from prompts.fence import enclose, line
from prompts.template import Rendered, render

#: reply to a passage without an answer
_NO_ANSWER = re.compile(r"\bno[\s_-]+answer\b", re.IGNORECASE)
_CITED = re.compile(r"\[\s*(\d{1,3}(?:\s*(?:[,;&–-]|and)\s*\d{1,3})*)\s*\]")
_RANGE = re.compile(r"(\d+)\s*[–-]\s*(\d+)")
#: the passage's own references, which look like citations
_REFERENCE = re.compile(r"\[([\d\s,;–-]+)\]")


def render_label(query: Query, title: str, sentences: Sequence[str]) -> Rendered:
    """Render the messages for one passage.

    Args:
        query: the question.
        title: of the passage; may be empty.
        sentences: of the passage, in order; they are numbered from 1.
    """
    rows = [f"title: {_plain(title)}"] if title.strip() else []
    rows += [f"[{number}] {_plain(sentence)}" for number, sentence in enumerate(sentences, 1)]
    fenced = enclose(["\n".join(rows)], question=query.text)
    return render("label", question=query.text, code=fenced.code, passage=fenced.text)


def parse_label(reply: str, sentences: int) -> tuple[int, ...] | None:
    """Return the sentences that a reply cites, from 0, in order; none if it says that there is no answer.

    Args:
        reply: of the model.
        sentences: how many were numbered; other numbers are no citations.

    Returns:
        ``None`` where it neither cites nor says so: it rests on something and does not say on what, so it
        teaches nothing (as the paper filters them).
    """
    if _NO_ANSWER.match(reply.lstrip(" \t\r\n\"'“*.:-")):
        return ()
    cited = sorted({n - 1 for n in _numbers(reply) if 1 <= n <= sentences})
    if cited:
        return tuple(cited)
    return () if _NO_ANSWER.search(reply) else None


def _numbers(reply: str) -> list[int]:
    found: list[int] = []
    for match in _CITED.finditer(reply):
        for first, last in _RANGE.findall(match[1]):
            found += range(int(first), int(last) + 1)
        found += map(int, re.findall(r"\d+", match[1]))
    return found


def _plain(text: str) -> str:
    """Put a text on one line, with its own references in round brackets."""
    return _REFERENCE.sub(r"(\1)", line(text))
