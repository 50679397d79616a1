"""Articles of an index as the documents of a table."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.tables.documents import Papers
from posology.corpus.items import is_part
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
    named = {one.passage.id: one.passage for one in view.fetch(list(view.digests(given)))}
    articles = tuple(dict.fromkeys(_article(one, named) for one in given))
    parts = view.parts(articles)
    own = view.digests(articles).keys()
    made = {
        article: _passages(article, parts.get(article, []), whole=article in own)
        for article in articles
    }
    wanted = [passage for ones in made.values() for passage in ones]
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
        Document(id=article, passages=tuple(passages[one] for one in ones))
        for article, ones in made.items()
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


def _passages(article: str, parts: list[str], *, whole: bool) -> list[str]:
    """Return the ids of an article's passages in order: its own, then the parts that a reader made of it.

    Others with this parent, such as MedRAG's chunks, are the article only where there is nothing else of it: a record that
    names any article as its parent neither takes its place nor adds to it.
    """
    numbered = [one for one in parts if is_part(one, article)]
    if not (whole or numbered):
        return sorted(parts, key=_place) or [article]
    return [*([article] if whole else []), *sorted(numbered, key=_place)]


def _place(part: str) -> tuple[int, str]:
    """Return the place of ``ID#n`` in its article."""
    number = part.rpartition("#")[2]
    return (int(number) if number.isdecimal() else 0, part)
