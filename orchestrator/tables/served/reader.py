"""The reader of tables: it runs beside the ingests, in their process, and pays for calls through each tenant's budget."""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

import anyio
from anyio import to_thread

from orchestrator.logs.events import note
from orchestrator.models import Models
from orchestrator.settings import Settings
from orchestrator.tables.rows import RunFile, open_run
from orchestrator.tables.served.folder import Tables
from orchestrator.training.paid.run import buy, prepare
from orchestrator.work.files import STORAGE
from posology.errors import (
    BadFile,
    ConfigurationError,
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
#: seconds between two looks at the folder, while Redis or the disk fails, and between two sweeps
_LOOK, _AGAIN, _SWEEP = 1.0, 10.0, 60.0
#: characters of a reason
_REASON = 500
_WITHHELD = (
    "the service failed to read the table: ask its operator, who finds the reason in the logs"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class TableReader:
    """Reads the tables of a folder.

    Args:
        tables: the folder.
        settings: the configuration.
        models: judge what values and their quotes say.
        stop: set when the process must stop.
    """

    tables: Tables
    settings: Settings
    models: Models
    stop: threading.Event

    def run(self) -> None:
        """Read until the process must stop. Blocking. A table that is being read resumes at the next start.

        Raises:
            Busy: another process reads.
        """
        while not self.stop.is_set():
            try:
                with self.tables.serving():
                    self._serve()
            except OSError as error:
                if error.errno not in STORAGE:
                    raise
                # as for files, in the same process
                _log.error("tables wait: %s", error)
                self.stop.wait(_AGAIN)

    def _serve(self) -> None:
        while not self.stop.is_set():
            try:
                anyio.run(self._run)
            except Exception:  # noqa: BLE001 - begun again, as a process of its own would be
                _log.exception("the reader of tables failed")
                self.stop.wait(_AGAIN)

    async def _run(self) -> None:
        reading: set[str] = set()
        sweep = -_SWEEP

        async def one(order: TableOrder) -> None:
            try:
                # by the same record: a run that waited does not count, even if the disk could not record that
                while not self.stop.is_set():
                    if await self.read(order):
                        return
                    await anyio.sleep(_AGAIN)
            except OSError:
                _log.exception("tables wait", extra={"fields": {"table": order.id}})
                await anyio.sleep(_AGAIN)
            finally:
                reading.discard(order.tenant)

        async with anyio.create_task_group() as group:
            while not self.stop.is_set():
                try:
                    # first: it finds the tables whose end a crash interrupted
                    if anyio.current_time() >= sweep + _SWEEP:
                        sweep = anyio.current_time()
                        retention = timedelta(seconds=self.settings.retention)
                        self.tables.sweep(datetime.now(UTC) - retention, reading)
                    for order in self.tables.waiting():
                        if order.tenant not in reading and len(reading) < AT_ONCE:
                            reading.add(order.tenant)
                            group.start_soon(one, order)
                except OSError:
                    _log.exception("tables wait")
                await to_thread.run_sync(self.stop.wait, _LOOK)
            group.cancel_scope.cancel()

    async def read(self, order: TableOrder) -> bool:
        """Read a table to its end; false: it waits for Redis, or for a disk that is full, read-only or broken."""
        progress = _Progress(now=order)
        try:
            await self._read(progress)
        except anyio.get_cancelled_exc_class():
            # the process stops, which is no crash
            self._wait(progress.now, order.runs)
            raise
        except Exception as fault:
            if not _waits(fault):
                raise
            _log.error("tables wait: %s", fault)
            self._wait(progress.now, order.runs)
            return False
        return True

    async def _read(self, progress: _Progress) -> None:
        order = progress.now
        if order.runs >= MAX_RUNS:
            message = f"the service ended {order.runs} times while it read this table: send the same request again, or ask the operator"
            self._end(order, TableFailure(type="Crashed", message=message))
            return
        self.tables.check_room(order)
        progress.now = order.model_copy(
            update={
                "state": TableState.RUNNING,
                "runs": order.runs + 1,
                "started": order.started or datetime.now(UTC),
            }
        )
        # before the work: a crash counts
        self.tables.save(progress.now)
        note("table started", tenant=order.tenant, table=order.id, documents=order.documents)
        out, error = None, None
        try:
            out, error = await self._table(progress)
        except Exception as fault:
            if _waits(fault):
                raise
            # one table must not keep all others waiting
            error = _failure(fault, order.id)
        self._end(progress.now, error, out)

    async def _table(self, progress: _Progress) -> tuple[TableOutput, TableFailure | None]:
        """Make the missing calls, and return the table with the reason why not all were made.

        Raises:
            StoreUnavailable: Redis is out of reach.
            BadFile: a reply cannot be kept.
            PosologyError: the plan failed.
        """
        order = progress.now
        plan = await to_thread.run_sync(self.tables.plan, order)
        wanted, settings = plan.wanted(), self.settings
        terms = plan.terms(
            order.tenant, settings=settings, models=self.models, redis=settings.redis
        )
        error: TableFailure | None = None
        with open_run(self.tables.run(order)) as file:
            paid, quote = await prepare(terms, order.model, lambda _: wanted.plan(file))
            progress.tick(order.documents - len(paid.todo) - order.done)
            try:
                if not self.tables.is_cancelled(order):
                    work = partial(buy, terms, paid, progress.tick)
                    await self._until_cancelled(progress, file, work)
            except Exception as fault:
                if _waits(fault):
                    raise
                # the replies before it make a table
                error = _failure(fault, order.id)
            progress.now = progress.now.model_copy(update={"spent_usd": file.content.spent})
            estimate = wanted.estimate(quote, len(paid.todo))
            return await wanted.conclude(file, estimate, self.models.judge), error

    async def _until_cancelled(
        self, progress: _Progress, file: RunFile, work: Callable[[], Awaitable[None]]
    ) -> None:
        """Work until the table is cancelled, and record the progress meanwhile. Calls in progress are paid for."""
        raised: list[Exception] = []

        async def watch() -> None:
            while not self.tables.is_cancelled(progress.now):
                now = progress.now.model_copy(update={"spent_usd": file.content.spent})
                if now != progress.saved:
                    progress.now = progress.saved = now
                    # the next look tries again
                    with suppress(OSError):
                        self.tables.save(now)
                await anyio.sleep(_LOOK)
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - raised below, out of the group's wrapping
                raised.append(error)
            group.cancel_scope.cancel()
        if raised:
            raise raised[0]

    def _wait(self, order: TableOrder, runs: int) -> None:
        with suppress(OSError):
            self.tables.save(order.model_copy(update={"state": TableState.WAITING, "runs": runs}))

    def _end(
        self, order: TableOrder, error: TableFailure | None, out: TableOutput | None = None
    ) -> None:
        state = TableState.SUCCEEDED if error is None else TableState.FAILED
        if self.tables.is_cancelled(order):
            state, error = TableState.CANCELLED, None
        found: dict[str, int] = {}
        if out is not None:
            cells = [cell for row in out.rows if row.error is None for cell in row.cells]
            found = {"cells": len(cells), "values": sum(one.value is not None for one in cells)}
        ended = order.model_copy(
            update={"state": state, "ended": datetime.now(UTC), "error": error, **found}
        )
        self.tables.end(ended, out)
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


def _waits(error: Exception) -> bool:
    """Return whether a table waits for an error to be mended: Redis is out of reach, or the disk cannot be written."""
    if isinstance(error, BadFile):
        return isinstance(error.__cause__, OSError) and error.__cause__.errno in STORAGE
    if isinstance(error, OSError):
        return error.errno in STORAGE
    return isinstance(error, StoreUnavailable)


def _failure(error: Exception, table: str) -> TableFailure:
    """Return an error for its tenant: faults of the service may name hosts, files or variables."""
    known = isinstance(error, PosologyError)
    kind = type(error).__name__ if known else "Defect"
    ours = isinstance(error, BadFile | ConfigurationError)
    if known and (not ours or isinstance(error, UnknownModel | UnpricedModel)):
        return TableFailure(type=kind, message=public(str(error))[:_REASON])
    _log.error("table failed", exc_info=error, extra={"fields": {"table": table}})
    return TableFailure(type=kind, message=_WITHHELD)


@dataclass(kw_only=True, slots=True)
class _Progress:
    """How far a table is."""

    now: TableOrder
    #: as it was recorded last
    saved: TableOrder | None = None

    def tick(self, more: int) -> None:
        """Add documents that were read."""
        done = self.now.done + more
        self.now = self.now.model_copy(update={"done": done, "cells": done * len(self.now.fields)})
