"""Articles of an index as the documents of a table."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.tables.documents import Papers
from posology.errors import InvalidQuery
from posology.index.reader import Reader
from posology.types import Passage
from posology.types.tables import Document

#: maximum passages of all documents of a table together
MAX_PASSAGES = 20_000
#: passages that are read by one query
_AT_ONCE = 1_000


def read_articles(
    index: Reader, ids: Iterable[str], version: int | None = None, *, most: int = MAX_PASSAGES
) -> tuple[str, Papers]:
    """Return the version of an index that was read, and the articles that ids stand for, each once. Blocking.

    Args:
        index: the index.
        ids: of articles, or of passages, each of which stands for its whole article.
        version: number of the version to read; ``None``: the newest.
        most: maximum passages of all documents together.

    Raises:
        PassageNotFound: that version holds no passage and no part of an article with an id.
        VersionGone: the index no longer keeps that version.
        InvalidQuery: the articles have too many passages.
        IndexFault: the index cannot be read.
    """
    view = index.view_at(version)
    given = tuple(dict.fromkeys(ids))
    parts = view.parts(given)
    named = {
        one.passage.id: one.passage for one in view.fetch([i for i in given if i not in parts])
    }
    parts |= view.parts({one.parent for one in named.values() if one.parent} - parts.keys())
    articles = tuple(dict.fromkeys(_article(one, named) for one in given))
    wanted = [part for article in articles for part in parts.get(article, [article])]
    if len(wanted) > most:
        raise InvalidQuery(
            f"the articles of a table may have {most:,} passages together (got {len(wanted):,}): send fewer",
            field="documents",
        )
    passages = {
        one.passage.id: one.passage
        for start in range(0, len(wanted), _AT_ONCE)
        for one in view.fetch(wanted[start : start + _AT_ONCE])
    }
    documents = tuple(
        Document.of([passages[part] for part in sorted(parts.get(article, [article]), key=_place)])
        for article in articles
    )
    return view.version, Papers(
        documents=documents,
        bad=(),
        retracted=frozenset(
            one.id for one in documents if any(passage.retracted for passage in one.passages)
        ),
    )


def _article(given: str, named: dict[str, Passage]) -> str:
    """Return the id of the article that an id stands for."""
    passage = named.get(given)
    return given if passage is None else passage.parent or given


def _place(part: str) -> tuple[int, str]:
    """Return the place of ``ID#n`` in its article."""
    number = part.rpartition("#")[2]
    return (int(number) if number.isdecimal() else 0, part)
