"""The literature of a service."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from datetime import date
from typing import Any
from urllib.parse import quote

from posology.client.wire import LOADING, Base, read
from posology.published.affected import AffectedAnswer, AffectedPage
from posology.published.answers import PassageOutput
from posology.published.literature import IndexStatus, QuoteSearch, SearchOutput
from posology.types import Mode


class Literature(Base):
    """Searches the index of a service, reads its passages, and compares stored answers with it."""

    async def search(
        self,
        query: str,
        *,
        k: int = 10,
        mode: Mode = "fused",
        retracted: bool = False,
        filters: Mapping[str, Any] | None = None,
        index_version: int | None = None,
        collection: str | None = None,
    ) -> SearchOutput:
        """Return the passages that a question would be answered from, with their places in every ranking.

        Only a paid embedder of the index costs anything.

        Args:
            query: a question or words.
            k: number of passages, 1 to 200.
            mode: retrieval method.
            retracted: whether retracted passages may be found.
            filters: such as ``{"since": 2015, "journals": ["Lancet"]}``; ``None``: none.
            index_version: number of the index version; ``None``: the newest.
            collection: name of a collection; ``None``: the default index.

        Raises:
            CollectionNotFound: the tenant may not read the collection.
            InvalidQuery: the search is not possible as it is written.
            VersionGone: the index no longer keeps that version.
            BudgetError: the tenant's limits do not allow the call that embeds the query.
        """
        asked = {
            "query": query,
            "k": k,
            "mode": mode,
            "retracted": retracted,
            "filters": None if filters is None else dict(filters),
            "index_version": index_version,
        } | _named(collection)
        reply = await self._wire.request(
            "POST", "/v1/search", repeatable=True, json=asked, **self._patient(LOADING)
        )
        return read(SearchOutput, reply.content)

    async def passage(
        self, passage: str, *, version: int | None = None, collection: str | None = None
    ) -> PassageOutput:
        """Return a passage with its text and metadata.

        Args:
            passage: its id, e.g. ``pmid:10051933``.
            version: number of the index version; ``None``: the newest.
            collection: name of a collection; ``None``: the default index.

        Raises:
            CollectionNotFound: the tenant may not read the collection.
            PassageNotFound: the index does not hold it.
            VersionGone: the index no longer keeps that version.
        """
        query = ({} if version is None else {"version": version}) | _named(collection)
        path = f"/v1/passages/{quote(passage, safe='')}"
        reply = await self._wire.request("GET", path, repeatable=True, params=query)
        return read(PassageOutput, reply.content)

    async def find_quote(
        self, quote: str, *, version: int | None = None, collection: str | None = None
    ) -> QuoteSearch:
        """Return the passages that contain a quote or nearly do, and what differs; no model is called.

        Args:
            quote: a sentence or a few, at most 2,000 characters.
            version: number of the index version; ``None``: the newest.
            collection: name of a collection; ``None``: the default index.

        Raises:
            CollectionNotFound: the tenant may not read the collection.
            InvalidQuery: the quote is empty or too long.
            VersionGone: the index no longer keeps that version.
        """
        asked = {"quote": quote, "index_version": version} | _named(collection)
        reply = await self._wire.request("POST", "/v1/quotes", repeatable=True, json=asked)
        return read(QuoteSearch, reply.content)

    async def index(self, *, collection: str | None = None) -> IndexStatus:
        """Return the number of passages of the newest version, the versions that can be read, and the tenant's collections.

        Args:
            collection: name of a collection; ``None``: the default index.

        Raises:
            CollectionNotFound: the tenant may not read the collection.
        """
        query = _named(collection)
        reply = await self._wire.request("GET", "/v1/index", repeatable=True, params=query)
        return read(IndexStatus, reply.content)

    async def affected(
        self, *, since: date | str | None = None, page: int = 50, collection: str | None = None
    ) -> AsyncGenerator[AffectedAnswer]:
        """Yield stored answers that cite evidence which has changed since, newest first.

        Args:
            since: first day of submission, UTC; ``None``: 30 days ago.
            page: stored answers that one request compares with the index, 1 to 100.
            collection: name of the collection that answered; ``None``: the default index.

        Raises:
            CollectionNotFound: the tenant may not read the collection.
            InvalidQuery: a parameter is wrong.
            IndexFault: the service's index cannot be read.
        """
        query: dict[str, Any] = {"limit": page} | _named(collection)
        if since is not None:
            query["since"] = str(since)
        async for found in self._pages("/v1/answers/affected", AffectedPage, query):
            for one in found.answers:
                yield one


def _named(collection: str | None) -> dict[str, Any]:
    return {} if collection is None else {"collection": collection}
