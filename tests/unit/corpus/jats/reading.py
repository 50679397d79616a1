"""What the reader of JATS makes of articles that tests write."""

from __future__ import annotations

from pathlib import Path

from posology.corpus.items import Item, Record
from posology.corpus.jats import reader as jats
from posology.types import Passage
from tests.support.literature import jats as article

_XLINK = 'xlink:href="{}" ext-link-type="{}"'


def items(folder: Path, xml: str | bytes, name: str = "a.nxml") -> list[Item]:
    path = folder / name
    path.write_bytes(xml if isinstance(xml, bytes) else xml.encode())
    return list(jats.read(path))


def passages(folder: Path, xml: str | bytes) -> list[Passage]:
    return [item.passage for item in items(folder, xml) if isinstance(item, Record)]


def texts(folder: Path, body: str) -> list[tuple[str | None, str]]:
    found = passages(folder, article(f"<body>{body}</body>", meta=""))
    return [(passage.section, passage.text) for passage in found]


def text(folder: Path, paragraph: str) -> str:
    ((_, found),) = texts(folder, f"<p>{paragraph}</p>")
    return found


def first(folder: Path, xml: str) -> Passage:
    return passages(folder, xml)[0]


def related(kind: str, target: str, by: str = "doi") -> str:
    return f'<related-article related-article-type="{kind}" {_XLINK.format(target, by)}/>'
