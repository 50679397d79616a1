"""The replies of a table's paid run, as rows of its item: they outlive the process that pays for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio

from orchestrator.tables.rows import REPLIES, Replies
from orchestrator.training.paid.rows import Row, parse_rows
from orchestrator.work.lease import Lease


class ReplyList:
    """:class:`~orchestrator.training.paid.rows.Rows` of a table.

    Args:
        table: its id, for messages.
        rows: those that it has.
        lease: the table's lease; ``None``: the rows are only read.

    Raises:
        BadFile: a row is of another kind.
    """

    def __init__(self, table: str, rows: Sequence[str], lease: Lease | None = None) -> None:
        #: all rows so far
        self.content: Replies = parse_rows("\n".join(rows).encode(), Path(table), REPLIES)
        #: it has no file
        self.path: None = None
        self._count = len(rows)
        self._lease = lease
        self._one = anyio.Lock()

    async def keep(self, *rows: Row) -> None:
        """Append rows to the table's list. A caller that is cancelled waits for this: the replies are paid for.

        Raises:
            LeaseLost: another process reads the table.
        """
        if not rows:
            return
        assert self._lease is not None, "the rows are only read"
        with anyio.CancelScope(shield=True):
            async with self._one:
                await self._lease.append(self._count, [row.model_dump_json() for row in rows])
                self._count += len(rows)
                for row in rows:
                    REPLIES.add(self.content, row)
