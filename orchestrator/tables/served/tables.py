"""Tables as leased work: plans and rows are bytes, the replies of the paid run are rows of the item in Redis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from anyio import to_thread
from pydantic import ValidationError

from orchestrator.tables.served.replies import ReplyList
from orchestrator.work.files import Files
from orchestrator.work.items import HELD, WAITING, Item, Limits, NoRoom, of_tenants
from orchestrator.work.lease import Lease
from orchestrator.work.store import WorkStore
from posology.errors import TableNotFound
from posology.published.tables.forms import TableOutput
from posology.published.tables.orders import TableOrder, TableState
from posology.store import keys

#: part of the names of keys and bytes
KIND = "table"
TABLES = of_tenants(KIND)
#: maximum tables of a tenant that wait, and that are kept after their end
MAX_WAITING, MAX_KEPT = 20, 200
_PLAN, _TABLE = "plan.json", "table.json"


class Tables:
    """Tables over HTTP. All methods raise ``StoreUnavailable`` if Redis is out of reach.

    Args:
        work: the tables.
        files: their plans and rows.
    """

    def __init__(self, work: WorkStore, files: Files) -> None:
        self.work = work
        self.files = files

    async def of_plan(self, tenant: str, digest: str) -> TableOrder | None:
        """Return the table of a plan, by its digest; ``None``: there is none."""
        item = await self.work.of_key(tenant, digest)
        return None if item is None else order_of(item)

    async def stands(self, order: TableOrder) -> bool:
        """Return whether a table is in progress or complete, so that the same request changes nothing."""
        if not order.over:
            return True
        return order.state is TableState.SUCCEEDED and is_complete(await self.table(order))

    async def check_room(self, tenant: str, size: int, limits: Limits, *, known: bool) -> None:
        """Check that a tenant has room for another table; :meth:`add` checks it again.

        Args:
            tenant: its name.
            size: bytes of the plan.
            limits: of the tenant.
            known: whether the table continues: what was paid for may be kept.

        Raises:
            NoRoom: it has none.
        """
        totals = await self.work.totals(tenant)
        if (count := totals.get(WAITING, 0) + totals.get(HELD, 0)) >= limits.items:
            raise NoRoom("items", count)
        if not known and totals.get("bytes", 0) + size > limits.bytes:
            raise NoRoom("bytes", totals.get("bytes", 0))

    async def add(
        self, order: TableOrder, plan: bytes, digest: str, limits: Limits
    ) -> tuple[TableOrder, bool]:
        """Let a table wait to be read; one that ended early continues with its replies.

        Args:
            order: the table, with the id of one that continues.
            plan: its plan as JSON.
            digest: of the plan.
            limits: of the tenant.

        Returns:
            The table, and whether it waits because of this request.

        Raises:
            NoRoom: other tables of the tenant have taken the room meanwhile.
        """
        tenant, known = order.tenant, await self.work.get(order.tenant, order.id)
        await to_thread.run_sync(self.files.write, plan, name_of(order, _PLAN))
        name = order.id
        try:
            name = await self.work.offer(
                tenant, order.id, order.model_dump_json(), key=digest, size=len(plan), limits=limits, again="*"
            )  # fmt: skip
        except NoRoom:
            name = ""
            raise
        finally:
            if name != order.id and known is None:
                await self.drop(tenant, order.id)
        found = await self.get(name, tenant=tenant)
        return found, name == order.id

    async def get(self, table: str, *, tenant: str) -> TableOrder:
        """Return a table as it is now.

        Raises:
            TableNotFound: the tenant has none of that id, or it has expired.
        """
        item = await self.work.get(tenant, table)
        order = None if item is None else order_of(item)
        if order is None:
            raise TableNotFound(f"there is no table {table}, or it has expired", table=table)
        return order

    async def all(self, tenant: str) -> list[TableOrder]:
        """Return a tenant's tables, newest first."""
        return orders_of(await self.work.all(tenant))[::-1]

    async def cancel(self, order: TableOrder) -> TableOrder:
        """Cancel a table, unless it has ended; return it as it is then.

        Raises:
            TableNotFound: it has expired meanwhile.
        """
        await self.work.cancel(order.tenant, order.id)
        return await self.get(order.id, tenant=order.tenant)

    async def counts(self) -> Counter[TableState]:
        """Return the number of tables of all tenants that have not ended, by state."""
        unfinished = (await self.work.all_unfinished()).values()
        return Counter(order.state for items in unfinished for order in orders_of(items))

    async def plan(self, order: TableOrder) -> bytes:
        """Return the plan of a table as JSON.

        Raises:
            FileNotFoundError: its bytes are missing.
        """
        content = await to_thread.run_sync(self.files.read, name_of(order, _PLAN))
        if content is None:
            raise FileNotFoundError(name_of(order, _PLAN))
        return content

    async def replies(self, tenant: str, table: str, lease: Lease | None = None) -> ReplyList:
        """Return the replies of a table; without a lease, they are only read."""
        return ReplyList(table, await self.work.rows(tenant, table), lease)

    async def table(self, order: TableOrder) -> TableOutput | None:
        """Return the rows of a table that has ended; ``None``: there are none."""
        content = await to_thread.run_sync(self.files.read, name_of(order, _TABLE))
        if content is None:
            return None
        return await to_thread.run_sync(TableOutput.model_validate_json, content)

    async def save(self, order: TableOrder, table: TableOutput) -> int:
        """Store the rows of a table before its end; return their bytes."""
        content = table.model_dump_json().encode()
        await to_thread.run_sync(self.files.write, content, name_of(order, _TABLE))
        return len(content)

    async def drop(self, tenant: str, table: str) -> None:
        """Remove the bytes of a table."""
        await to_thread.run_sync(self.files.drop, f"{KIND}/{tenant}/{table}")


def new_id() -> str:
    """Return the id of a new table."""
    return keys.new_id("table")


def is_complete(table: TableOutput | None) -> bool:
    """Return whether a table has a row for each document, without an error: its replies are needed no more."""
    return table is not None and not any(row.error for row in table.rows)


def name_of(order: TableOrder, file: str) -> str:
    """Return the name of bytes of a table."""
    return f"{KIND}/{order.tenant}/{order.id}/{file}"


def order_of(item: Item) -> TableOrder | None:
    """Return the record of an item; ``None``: it is of another version of Posology."""
    try:
        order = TableOrder.model_validate_json(item.record)
    except ValidationError:
        return None
    if item.over:
        return order
    state = TableState.RUNNING if item.state == HELD else TableState.WAITING
    if item.cancelled:
        state = TableState.CANCELLING
    return order.model_copy(update={"state": state, "runs": item.runs})


def orders_of(items: Iterable[Item]) -> list[TableOrder]:
    """Return the records of items."""
    orders = map(order_of, items)
    return [order for order in orders if order is not None]
