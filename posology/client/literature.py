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

        Raises:
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
        }
        reply = await self._wire.request(
            "POST", "/v1/search", repeatable=True, json=asked, **self._patient(LOADING)
        )
        return read(SearchOutput, reply.content)

    async def passage(self, passage: str, *, version: int | None = None) -> PassageOutput:
        """Return a passage with its text and metadata.

        Args:
            passage: its id, e.g. ``pmid:10051933``.
            version: number of the index version; ``None``: the newest.

        Raises:
            PassageNotFound: the index does not hold it.
            VersionGone: the index no longer keeps that version.
        """
        query = {} if version is None else {"params": {"version": version}}
        path = f"/v1/passages/{quote(passage, safe='')}"
        reply = await self._wire.request("GET", path, repeatable=True, **query)
        return read(PassageOutput, reply.content)

    async def find_quote(self, quote: str, *, version: int | None = None) -> QuoteSearch:
        """Return the passages that contain a quote or nearly do, and what differs; no model is called.

        Args:
            quote: a sentence or a few, at most 2,000 characters.
            version: number of the index version; ``None``: the newest.

        Raises:
            InvalidQuery: the quote is empty or too long.
            VersionGone: the index no longer keeps that version.
        """
        asked = {"quote": quote, "index_version": version}
        reply = await self._wire.request("POST", "/v1/quotes", repeatable=True, json=asked)
        return read(QuoteSearch, reply.content)

    async def index(self) -> IndexStatus:
        """Return the number of passages of the newest version, and the versions that can be read."""
        reply = await self._wire.request("GET", "/v1/index", repeatable=True)
        return read(IndexStatus, reply.content)

    async def affected(
        self, *, since: date | str | None = None, page: int = 50
    ) -> AsyncGenerator[AffectedAnswer]:
        """Yield stored answers that cite evidence which has changed since, newest first.

        Args:
            since: first day of submission, UTC; ``None``: 30 days ago.
            page: stored answers that one request compares with the index, 1 to 100.

        Raises:
            InvalidQuery: a parameter is wrong.
            IndexFault: the service's index cannot be read.
        """
        query: dict[str, Any] = {"limit": page}
        if since is not None:
            query["since"] = str(since)
        while True:
            reply = await self._wire.request(
                "GET", "/v1/answers/affected", repeatable=True, params=query
            )
            found = read(AffectedPage, reply.content)
            for one in found.answers:
                yield one
            if found.next is None:
                return
            query["cursor"] = found.next
