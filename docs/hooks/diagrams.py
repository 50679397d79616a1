"""MkDocs hook: fences of the language ``sequence`` become sequence diagrams (SVG), without a script.

A diagram's first line names its participants, ``a | b | c``; each line after it is a message ``a > b: text``,
a reply ``b < a: text`` (dashed, from a to b), or a note ``a: text``.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

_FENCE = re.compile(r"^```sequence\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"(?P<one>[^<>:]+?)\s*(?:(?P<arrow>[<>])\s*(?P<other>[^:]+?))?:\s*(?P<text>.+)")
#: pixels between participants and between messages, and above the first message
_COLUMN, _ROW, _TOP = 190, 38, 56


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace each diagram's source by its picture."""
    return _FENCE.sub(lambda fence: draw(fence[1]), markdown)


def draw(source: str) -> str:
    """Return a diagram as SVG.

    Raises:
        ValueError: a line is not understood, or names no participant.
    """
    head, *lines = [line.strip() for line in source.strip().splitlines() if line.strip()]
    names = [name.strip() for name in head.split("|")]
    x = {name: 90 + _COLUMN * n for n, name in enumerate(names)}
    height = _TOP + _ROW * len(lines) + 16
    width = 180 + _COLUMN * (len(names) - 1)
    parts = []
    for name, at in x.items():
        parts.append(f'<line x1="{at}" y1="34" x2="{at}" y2="{height}" class="life"/>')
        parts.append(f'<rect x="{at - 78}" y="6" width="156" height="28" rx="4" class="box"/>')
        parts.append(f'<text x="{at}" y="25" class="name">{escape(name)}</text>')
    for n, line in enumerate(lines):
        found = _LINE.fullmatch(line)
        if found is None or not {found["one"], found["other"] or found["one"]} <= x.keys():
            raise ValueError(f"not a line of a sequence diagram: {line!r}")
        parts.extend(_message(found, x, _TOP + _ROW * n + 22))
    return (
        f'<svg class="sequence" viewBox="0 0 {width} {height}" role="img" '
        f'xmlns="http://www.w3.org/2000/svg" style="max-width:{width}px">'
        "<style>.sequence text{font:12px sans-serif;text-anchor:middle;fill:currentColor}"
        ".sequence .name{font-weight:bold}.sequence line{stroke:currentColor}"
        ".sequence .life{stroke-opacity:.25}.sequence .box{fill:none;stroke:currentColor}"
        ".sequence .reply{stroke-dasharray:5 4}</style>" + "".join(parts) + "</svg>"
    )


def _message(found: re.Match[str], x: dict[str, int], y: int) -> list[str]:
    text = escape(found["text"])
    if found["arrow"] is None:
        at = x[found["one"]]
        return [f'<circle cx="{at}" cy="{y}" r="3" fill="currentColor"/>',
                f'<text x="{at}" y="{y - 8}">{text}</text>']  # fmt: skip
    reply = found["arrow"] == "<"
    start, end = x[found["one"]], x[found["other"]]
    if reply:
        start, end = end, start
    back = -8 if end > start else 8
    kind = "reply" if reply else "call"
    points = f"{end},{y} {end + back},{y - 4} {end + back},{y + 4}"
    return [
        f'<line x1="{start}" y1="{y}" x2="{end}" y2="{y}" class="{kind}"/>',
        f'<polygon points="{points}" fill="currentColor"/>',
        f'<text x="{(start + end) // 2}" y="{y - 6}">{text}</text>',
    ]
