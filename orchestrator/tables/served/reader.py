"""The reader of tables: it runs beside the ingests, in their process, and pays for calls through each tenant's budget."""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial

import anyio
from anyio import to_thread
from pydantic import ValidationError

from orchestrator.logs.events import note
from orchestrator.models import Models
from orchestrator.settings import Settings
from orchestrator.tables.served.plan import Plan
from orchestrator.tables.served.tables import Tables, is_complete
from orchestrator.training.paid.run import buy, prepare
from orchestrator.work.files import STORAGE
from orchestrator.work.items import Claim, LeaseLost
from orchestrator.work.lease import Lease
from posology.budget.tenants.grants import check_grants
from posology.concurrency import work_until
from posology.errors import (
    ConfigurationError,
    IndexFault,
    PosologyError,
    StoreUnavailable,
    UnknownModel,
    UnpricedModel,
)
from posology.network.failures import public
from posology.published.tables.forms import TableOutput
from posology.published.tables.orders import TableFailure, TableOrder, TableState

_log = logging.getLogger(__name__)
#: tables that are read at the same time, one of each tenant
AT_ONCE = 4
#: how often reading is started by itself; a table that ends its process each time would keep all others waiting
MAX_RUNS = 3
#: seconds between two looks for tables, and while Redis or the disk fails
_LOOK, _AGAIN = 1.0, 10.0
#: seconds to return the tables that are read when the process stops
_RETURN = 5.0
#: characters of a reason
_REASON = 500
_WITHHELD = (
    "the service failed to read the table: ask its operator, who finds the reason in the logs"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class TableReader:
    """Reads tables.

    Args:
        tables: the tables.
        settings: the configuration.
        models: judge what values and their quotes say.
        stop: set when the process must stop.
        redis: address of the Redis with the tenants' ledgers.
        process: name of this process.
    """

    tables: Tables
    settings: Settings
    models: Models
    stop: threading.Event
    redis: str
    process: str = ""

    async def run(self) -> None:
        """Read until the process must stop. A table that is being read resumes at the next start."""
        while not self.stop.is_set():
            try:
                await self._run()
            except Exception:  # noqa: BLE001 - begun again, as a process of its own would be
                _log.exception("the reader of tables failed")
                await to_thread.run_sync(self.stop.wait, _AGAIN)

    async def _run(self) -> None:
        reading: set[str] = set()
        last = ""

        async def one(claim: Claim) -> None:
            try:
                if not await self.read(claim):
                    await anyio.sleep(_AGAIN)
            finally:
                reading.discard(claim.group)

        async with anyio.create_task_group() as group:
            while not self.stop.is_set():
                try:
                    while len(reading) < AT_ONCE:
                        claim = await self.claim(last, reading)
                        if claim is None:
                            break
                        last = claim.group
                        reading.add(last)
                        group.start_soon(one, claim)
                except StoreUnavailable as error:
                    _log.warning("tables wait: %s", error)
                await to_thread.run_sync(self.stop.wait, _LOOK)
            group.cancel_scope.cancel()

    async def claim(self, after: str = "", without: Collection[str] = ()) -> Claim | None:
        """Claim the next table of the tenants in turn; ``None``: none waits, or a process reads one of each tenant."""
        return await self.tables.work.claim_next(
            after, lease=self.settings.lease, by=self.process, without=without
        )

    async def read(self, claim: Claim) -> bool:
        """Read a table to its end; false: it waits for Redis, or for a disk that is full, read-only or broken."""
        try:
            order = TableOrder.model_validate_json(claim.record)
        except ValidationError:
            # of another version of Posology: nothing can be said of it
            await self.tables.work.finish(claim, TableState.FAILED.value)
            return True
        progress = _Progress(now=order)
        lease = Lease(self.tables.work, claim, seconds=self.settings.lease, record=progress.record)
        ends = True
        async with anyio.create_task_group() as group:
            group.start_soon(lease.extend)
            try:
                ends = await self._kept(progress, lease)
            except LeaseLost:
                _log.warning("lease lost", extra={"fields": {"table": order.id}})
            group.cancel_scope.cancel()
        return ends

    async def _kept(self, progress: _Progress, lease: Lease) -> bool:
        """Read a table, or return it to the queue."""
        try:
            await self._read(progress, lease)
        except anyio.get_cancelled_exc_class():
            # the process stops, which is no crash
            with anyio.move_on_after(_RETURN, shield=True), suppress(LeaseLost):
                await lease.release()
            raise
        except Exception as fault:
            if not _waits(fault):
                raise
            _log.error("tables wait: %s", fault)
            await lease.release()
            return False
        return True

    async def _read(self, progress: _Progress, lease: Lease) -> None:
        order, runs = progress.now, lease.claim.runs
        if runs > MAX_RUNS:
            progress.now = order.model_copy(update={"runs": MAX_RUNS})
            message = f"the service ended {MAX_RUNS} times while it read this table: send the same request again, or ask the operator"
            await self._end(progress, lease, TableFailure(type="Crashed", message=message))
            return
        begun = {
            "state": TableState.RUNNING,
            "runs": runs,
            "started": order.started or datetime.now(UTC),
        }
        progress.now = order.model_copy(update=begun)
        note("table started", tenant=order.tenant, table=order.id, documents=order.documents)
        out, error = None, None
        try:
            out, error = await self._table(progress, lease)
        except Exception as fault:
            if _waits(fault) or isinstance(fault, LeaseLost):
                raise
            # one table must not keep all others waiting
            error = _failure(fault, order.id)
        await self._end(progress, lease, error, out)

    async def _table(
        self, progress: _Progress, lease: Lease
    ) -> tuple[TableOutput, TableFailure | None]:
        """Make the missing calls, and return the table with the reason why not all were made.

        Raises:
            StoreUnavailable: Redis is out of reach.
            LeaseLost: another process reads the table.
            PosologyError: the plan failed.
        """
        order = progress.now
        content = await self.tables.plan(order)
        progress.plan = len(content)
        plan = await to_thread.run_sync(Plan.read, content)
        work = self.tables.work
        # again, since a grant may end while the table waits
        await check_grants(work.redis, work.url, order.tenant, [plan.request.read])
        wanted = plan.wanted()
        terms = plan.terms(
            order.tenant,
            # of the request that continued the table
            cap=order.cap_usd,
            settings=self.settings,
            models=self.models,
            redis=self.redis,
        )
        error: TableFailure | None = None
        replies = await self.tables.replies(order.tenant, order.id, lease)
        progress.spent = lambda: replies.content.spent
        paid, quote = await prepare(terms, order.model, lambda _: wanted.plan(replies))
        progress.tick(order.documents - len(paid.todo) - order.done)
        try:
            await _while_held(lease, partial(buy, terms, paid, progress.tick))
        except Exception as fault:
            if _waits(fault) or isinstance(fault, LeaseLost):
                raise
            # the replies before it make a table
            error = _failure(fault, order.id)
        estimate = wanted.estimate(quote, len(paid.todo))
        return await wanted.conclude(replies, estimate, self.models.judge), error

    async def _end(
        self,
        progress: _Progress,
        lease: Lease,
        error: TableFailure | None,
        out: TableOutput | None = None,
    ) -> None:
        state = TableState.SUCCEEDED if error is None else TableState.FAILED
        if lease.standing == "cancelling":
            state, error = TableState.CANCELLED, None
        order, size, found = progress.order(), progress.plan, dict[str, int]()
        if out is not None:
            cells = [cell for row in out.rows if row.error is None for cell in row.cells]
            found = {"cells": len(cells), "values": sum(one.value is not None for one in cells)}
            size = (size or 0) + await self.tables.save(order, out)
        ended = progress.now = order.model_copy(
            update={"state": state, "ended": datetime.now(UTC), "error": error, **found}
        )
        complete = state is TableState.SUCCEEDED and is_complete(out)
        await lease.finish(state.value, size=size, drop_rows=complete)
        note(
            "table ended",
            logging.INFO if error is None else logging.WARNING,
            tenant=ended.tenant,
            table=ended.id,
            state=state.value,
            documents=ended.documents,
            done=ended.done,
            spent_usd=str(ended.spent_usd),
            error=None if error is None else error.type,
        )


async def _while_held(lease: Lease, work: Callable[[], Awaitable[None]]) -> None:
    """Work until the table is cancelled. Calls in progress are paid for.

    Raises:
        LeaseLost: another process reads the table.
    """
    try:
        if lease.standing == "held":
            await work_until(lease.ends.wait, work)
    except Exception:
        if lease.standing != "lost":
            raise
    if lease.standing == "lost":
        raise LeaseLost(lease.claim.name)


def _waits(error: Exception) -> bool:
    """Return whether a table waits for an error to be mended: Redis is out of reach, or the disk cannot be written."""
    if isinstance(error, OSError):
        return error.errno in STORAGE
    return isinstance(error, StoreUnavailable | IndexFault)


def _failure(error: Exception, table: str) -> TableFailure:
    """Return an error for its tenant: faults of the service may name hosts, files or variables."""
    known = isinstance(error, PosologyError)
    kind = type(error).__name__ if known else "Defect"
    ours = isinstance(error, ConfigurationError)
    if known and (not ours or isinstance(error, UnknownModel | UnpricedModel)):
        return TableFailure(type=kind, message=public(str(error))[:_REASON])
    _log.error("table failed", exc_info=error, extra={"fields": {"table": table}})
    return TableFailure(type=kind, message=_WITHHELD)


@dataclass(kw_only=True, slots=True)
class _Progress:
    """How far a table is."""

    now: TableOrder
    #: bytes of its plan; ``None``: it was not read
    plan: int | None = None
    #: returns the dollars spent so far; ``None``: as the record says
    spent: Callable[[], Decimal] | None = None

    def order(self) -> TableOrder:
        """Return the record as it is now."""
        spent = self.now.spent_usd if self.spent is None else self.spent()
        return self.now.model_copy(update={"spent_usd": spent})

    def record(self) -> str:
        """Return the record as JSON."""
        return self.order().model_dump_json()

    def tick(self, more: int) -> None:
        """Add documents that were read."""
        done = self.now.done + more
        self.now = self.now.model_copy(update={"done": done, "cells": done * len(self.now.fields)})
