"""Evidence tables of a service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal
from urllib.parse import quote

import anyio

from posology.client.wire import LOADING, Base, read
from posology.published.tables.orders import TableOrder, TablePage

#: format of a table's file
TableFormat = Literal["csv", "xlsx", "markdown", "json"]
#: seconds between two looks at a table
_PAUSE = 1.0
#: seconds of silence that a request bears: its articles are read and its cost is estimated before the response
_SILENCE = 120.0


class Tables(Base):
    """Requests evidence tables of articles of a service's index, and downloads them."""

    async def create_table(
        self,
        documents: Sequence[str] = (),
        *,
        search: Mapping[str, Any] | None = None,
        preset: str | None = None,
        fields: Sequence[Mapping[str, Any]] = (),
        criteria: Sequence[str] = (),
        model: str | None = None,
        max_cost_usd: Decimal | str | None = None,
        **options: Any,
    ) -> TableOrder:
        """Request a table. The same request again makes no second one: a table that ended early continues.

        Args:
            documents: ids of articles or passages, e.g. ``pmid:10051933``.
            search: search whose passages stand for their articles, such as ``{"query": "aspirin", "k": 50}``, in place
                of documents.
            preset: fields that are ready: ``pico``, which is also the default.
            fields: fields of your own, such as ``{"name": "weeks", "question": "…", "type": "number"}``.
            criteria: criteria of inclusion of a screening.
            model: ``provider:name``; ``None``: the service's.
            max_cost_usd: maximum dollars of all calls; ``None``: the tenant's limits alone.
            options: ``max_tokens``, ``effort`` and ``part_words``.

        Raises:
            InvalidQuery: a field is wrong, or not one of documents and search is given.
            PassageNotFound: the index does not hold a document.
            BudgetError: the tenant cannot pay for a call, or may not use the model.
            UnpricedModel: the model has no price.
        """
        given = {
            "documents": list(documents) or None,
            "search": None if search is None else dict(search),
            "preset": preset,
            "fields": [dict(one) for one in fields] or None,
            "criteria": list(criteria) or None,
            "model": model,
            "max_cost_usd": None if max_cost_usd is None else str(max_cost_usd),
            **options,
        }
        reply = await self._wire.request(
            "POST",
            "/v1/tables",
            repeatable=True,
            json={name: value for name, value in given.items() if value is not None},
            **self._patient(LOADING + _SILENCE),
        )
        return read(TableOrder, reply.content)

    async def table(self, table: str) -> TableOrder:
        """Return a table's state and cost so far.

        Args:
            table: its id.

        Raises:
            TableNotFound: there is none of that id, or it has expired.
        """
        reply = await self._wire.request("GET", _table(table), repeatable=True)
        return read(TableOrder, reply.content)

    async def tables(self) -> tuple[TableOrder, ...]:
        """Return the tables that have not expired, newest first."""
        reply = await self._wire.request("GET", "/v1/tables", repeatable=True)
        return read(TablePage, reply.content).tables

    async def wait_table(self, table: str) -> TableOrder:
        """Return a table when it has ended, whether it succeeded, failed or was cancelled.

        Args:
            table: its id.

        Raises:
            TableNotFound: there is none of that id, or it has expired.
        """
        while not (found := await self.table(table)).over:  # noqa: ASYNC110 - of another process
            await anyio.sleep(_PAUSE)
        return found

    async def download_table(self, table: str, *, form: TableFormat = "csv") -> bytes:
        """Return a table that has ended as a file.

        Args:
            table: its id.
            form: format of the file; ``json`` is :class:`~posology.published.tables.forms.TableOutput`.

        Raises:
            TableNotFound: there is none of that id, or it has expired.
            TableUnfinished: it has no rows yet.
        """
        reply = await self._wire.request(
            "GET", f"{_table(table)}/file", repeatable=True, params={"format": form}
        )
        return reply.content

    async def cancel_table(self, table: str) -> TableOrder:
        """Cancel a table; one that has ended stays as it is.

        Args:
            table: its id.

        Raises:
            TableNotFound: there is none of that id, or it has expired.
        """
        reply = await self._wire.request("DELETE", _table(table), repeatable=True)
        return read(TableOrder, reply.content)


def _table(table: str) -> str:
    return f"/v1/tables/{quote(table, safe='')}"
