"""The literature of a service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from posology.client.base import LOADING, Base
from posology.client.wire import read
from posology.published.answers import PassageOutput
from posology.published.literature import IndexStatus, SearchOutput
from posology.types import Mode


class Literature(Base):
    """Searches the index of a service, and reads its passages."""

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

    async def index(self) -> IndexStatus:
        """Return the number of passages of the newest version, and the versions that can be read."""
        reply = await self._wire.request("GET", "/v1/index", repeatable=True)
        return read(IndexStatus, reply.content)
