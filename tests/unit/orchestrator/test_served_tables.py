"""The folder of tables, and the process that reads them where it cannot."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from orchestrator.api.routes.health import TablesCollector
from orchestrator.ingest.uploads.process import reading_tables
from orchestrator.models import Models
from orchestrator.settings import Settings
from orchestrator.tables.documents import Papers
from orchestrator.tables.served.folder import MAX_KEPT, MAX_WAITING, NoRoom, NoSpace, Tables
from orchestrator.tables.served.plan import Plan
from orchestrator.tables.served.reader import MAX_RUNS, TableReader
from orchestrator.tables.served.request import TableRequest
from orchestrator.work.files import Busy
from posology.errors import InvalidQuery, TableNotFound
from posology.published.tables.forms import TableEstimate, TableOutput
from posology.published.tables.orders import TableFailure, TableOrder, TableState
from posology.types import Passage
from posology.types.tables import Document
from tests.support.disks import full_disk

NOW = datetime(2026, 1, 15, tzinfo=UTC)
FREE = Decimal(0)
ROOM = 2**20
ESTIMATE = TableEstimate(
    documents=1, read=0, calls=1, free=True, input_tokens=0, output_tokens=0, low_usd=FREE, expected_usd=FREE, worst_usd=FREE,
    spent_usd=FREE, cap_usd=None, balances=(),
)  # fmt: skip


class Steps(threading.Event):
    """A stop that is asked for by the last of some steps, one for each wait."""

    def __init__(self, *steps: Callable[[], None]) -> None:
        super().__init__()
        self.steps = list(steps)

    def wait(self, timeout: float | None = None) -> bool:
        del timeout
        self.steps.pop(0)()
        if not self.steps:
            self.set()
        return self.is_set()


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(tmp_path)


def plan(text: str = "It helps.", **fields: object) -> Plan:
    request = TableRequest.parse({"documents": ["1"], "model": "offline:extractive", **fields})
    document = Document(id="1", passages=(Passage(id="1", text=text),))
    return Plan(
        request=request, papers=Papers(documents=(document,), bad=(), retracted=frozenset())
    )


def order(table: str, tenant: str = "acme", **fields: object) -> TableOrder:
    given = {
        "id": table, "tenant": tenant, "state": TableState.WAITING, "model": "offline:extractive", "fields": ("n",),
        "index": "index@1", "documents": 1, "done": 0, "cells": 0, "values": None, "runs": 0, "submitted": NOW,
        "started": None, "ended": None, "spent_usd": 0, "cap_usd": None, "estimate": ESTIMATE, "error": None,
    }  # fmt: skip
    return TableOrder.model_validate({**given, **fields})


def add(tables: Tables, asked: Plan, tenant: str = "acme") -> TableOrder:
    with tables.adding(tenant, asked, ROOM) as adding:
        made = order(adding.id, tenant)
        tables.complete(adding, made)
    return made


def failed(one: TableOrder, at: datetime = NOW) -> TableOrder:
    error = TableFailure(type="BudgetExhausted", message="spent")
    return one.model_copy(update={"state": TableState.FAILED, "ended": at, "error": error})


def test_no_other_user_reads_a_table(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    add(Tables(tmp_path), plan())
    found = [one for one in tmp_path.iterdir() if one.is_dir()]
    assert [stat.S_IMODE(one.stat().st_mode) for one in found] == [0o700]


def test_the_maximum_cost_alone_makes_no_other_table(tables: Tables) -> None:
    made = add(tables, plan())
    for same in (plan(), plan(max_cost_usd="1")):
        with tables.adding("acme", same, ROOM) as adding:
            assert adding.known == made
    for other in (plan("It does not."), plan(part_words=300)):
        with tables.adding("acme", other, ROOM) as adding:
            assert adding.known is None
    with tables.adding("other", plan(), ROOM) as adding:
        assert adding.known is None
    assert tables.all("acme") == [made]


@pytest.mark.slow
def test_every_process_finds_the_same_digest() -> None:
    """Else the same request to another process would make and pay for a second table."""
    code = (
        "from dataclasses import replace; from tests.unit.orchestrator.test_served_tables import plan; one = plan(); "
        "print(replace(one, papers=replace(one.papers, retracted=frozenset('abcdefgh'))).digest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_a_table_that_ended_early_continues_with_its_replies(tables: Tables) -> None:
    made = add(tables, plan(max_cost_usd="0"))
    tables.run(made).write_text("replies", encoding="utf-8")
    tables.cancel(made)
    assert tables.get(made.id, tenant="acme").state is TableState.CANCELLING
    tables.end(failed(made), None)
    assert tables.waiting() == []
    assert tables.get(made.id, tenant="acme").error is not None
    with tables.adding("acme", plan(max_cost_usd="1"), ROOM) as adding:
        assert adding.id == made.id
        assert adding.run.read_text(encoding="utf-8") == "replies"
        tables.complete(adding, made)
    assert tables.waiting() == [made]
    assert not tables.is_cancelled(made)
    assert str(tables.plan(made).request.max_cost_usd) == "1"
    assert tables.run(made).read_text(encoding="utf-8") == "replies"


def test_tables_have_so_many_bytes(tables: Tables, tmp_path: Path) -> None:
    made = add(tables, plan())
    asked = plan("It does not.")
    files = (path for path in (tmp_path / "tables" / "acme").rglob("*") if path.is_file())
    used = sum(path.stat().st_size for path in files)
    with (
        pytest.raises(NoSpace, match="tables would have"),
        tables.adding("acme", asked, used + len(asked.dump()) - 1),
    ):
        pass
    with tables.adding("acme", asked, used + len(asked.dump())) as adding:
        assert adding.known is None
    # the same table needs no space, neither while it is read nor after an early end: its replies were paid for
    for ended in (made, failed(made)):
        with tables.adding("acme", plan(), 1) as adding:
            assert adding.known is not None
            assert adding.known.state is ended.state
        if not ended.over:
            tables.end(failed(made), None)
    with tables.adding("other", asked, len(asked.dump())) as adding:
        assert adding.known is None


def test_a_complete_table_needs_no_room(tables: Tables) -> None:
    made = add(tables, plan())
    done = made.model_copy(update={"state": TableState.SUCCEEDED, "ended": NOW})
    out = TableOutput(model=made.model, fields=(), rows=(), left_out=(), estimate=None, spent_usd=FREE)  # fmt: skip
    tables.end(done, out)
    for words in range(MAX_WAITING):
        add(tables, plan(part_words=200 + words))
    with tables.adding("acme", plan(), 1) as adding:
        assert adding.known == done
    with pytest.raises(NoRoom, match="20 of 20"), tables.adding("acme", plan("other"), ROOM):
        pass


def test_metrics_of_tables(tables: Tables, tmp_path: Path) -> None:
    def counts() -> dict[str, float]:
        (states,) = TablesCollector(tables).collect()
        return {sample.labels["state"]: sample.value for sample in states.samples}

    assert counts() == {"waiting": 0, "running": 0, "cancelling": 0}
    tables.end(failed(add(tables, plan())), None)
    add(tables, plan("a"))
    tables.cancel(add(tables, plan(), "other"))
    (tmp_path / "tables" / "lost+found").mkdir()
    assert counts() == {"waiting": 1, "running": 0, "cancelling": 1}


def test_a_request_that_is_given_up_leaves_nothing(tables: Tables, tmp_path: Path) -> None:
    with pytest.raises(InvalidQuery), tables.adding("acme", plan(), ROOM):
        raise InvalidQuery("no", field="documents")
    assert tables.all("acme") == []
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".lock"]
    assert left == []


def test_what_a_crash_left_is_read(tables: Tables, tmp_path: Path) -> None:
    made = add(tables, plan())
    # killed between the last two steps of an end, or of a continuation
    own = tmp_path / "tables" / "acme"
    (own / "ended").mkdir()
    (own / "pending" / made.id).rename(own / "ended" / made.id)
    assert tables.waiting() == []
    assert tables.get(made.id, tenant="acme") == made
    tables.sweep(NOW)
    assert tables.waiting() == [made]


def test_a_table_whose_end_was_interrupted_is_found_and_cancelled(
    tables: Tables, tmp_path: Path
) -> None:
    made = add(tables, plan())
    own = tmp_path / "tables" / "acme"
    (own / "ended").mkdir()
    (own / "pending" / made.id).rename(own / "ended" / made.id)
    # else the same request would make and pay for a second table
    with tables.adding("acme", plan(), ROOM) as adding:
        assert adding.known == made
    assert tables.cancel(made).state is TableState.CANCELLING
    # the end of a table that is being read is not a crash
    tables.sweep(NOW, {"acme"})
    assert tables.waiting() == []
    tables.sweep(NOW, {"other"})
    (waiting,) = tables.waiting()
    assert (waiting.id, waiting.state) == (made.id, TableState.CANCELLING)
    tables.end(failed(made), None)
    assert tables.cancel(made).state is TableState.FAILED


def test_a_full_disk_at_the_end_leaves_the_table_waiting(tables: Tables) -> None:
    made = add(tables, plan())
    with full_disk(), pytest.raises(OSError, match="large"):
        tables.end(failed(made), None)
    assert tables.waiting() == [made]


def test_ended_tables_expire(tables: Tables) -> None:
    old = add(tables, plan("a"))
    tables.end(failed(old), None)
    made = [add(tables, plan(str(n))) for n in range(3)]
    for one in made[:2]:
        tables.end(failed(one, NOW + timedelta(days=2)), None)
    # of a tenant with a table that is being read, too
    tables.sweep(NOW + timedelta(days=1), {"acme"})
    assert {one.id for one in tables.all("acme")} == {one.id for one in made}
    with pytest.raises(TableNotFound):
        tables.get(old.id, tenant="acme")
    assert MAX_KEPT > 2


@pytest.mark.parametrize("table", ["../acme", "table_1", f"table_{'g' * 28}", ""])
def test_no_other_name_is_looked_up(tables: Tables, table: str) -> None:
    add(tables, plan())
    with pytest.raises(TableNotFound):
        tables.get(table, tenant="acme")
    with pytest.raises(InvalidQuery):
        tables.all("../acme")


def reader_of(tables: Tables, stop: threading.Event | None = None) -> TableReader:
    settings = Settings()
    models = Models(settings.embedder, settings.embedding)
    return TableReader(
        tables=tables, settings=settings, models=models, stop=stop or threading.Event()
    )


class OneLook(Tables):
    """The reader looks once for tables."""

    def __init__(self, uploads: Path) -> None:
        super().__init__(uploads)
        self.stop = threading.Event()

    def waiting(self) -> list[TableOrder]:
        self.stop.set()
        return super().waiting()


def test_a_busy_reader_clears_up(tmp_path: Path) -> None:
    tables = OneLook(tmp_path)
    old, interrupted = add(tables, plan("a")), add(tables, plan("b"))
    tables.end(failed(old), None)
    own = tmp_path / "tables" / "acme"
    (own / "pending" / interrupted.id).rename(own / "ended" / interrupted.id)
    add(tables, plan(), "other")
    reader_of(tables, tables.stop).run()
    assert [one.id for one in tables.all("acme")] == [interrupted.id]
    assert {one.tenant for one in tables.waiting()} == {"acme", "other"}


class ReadOnly(OneLook):
    """The disk is read-only at the start."""

    def __init__(self, uploads: Path, error: int) -> None:
        super().__init__(uploads)
        self._faults = [OSError(error, os.strerror(error))]

    @contextmanager
    def serving(self) -> Iterator[None]:
        if self._faults:
            raise self._faults.pop()
        with super().serving():
            yield


def test_a_read_only_disk_at_the_start_is_waited_for(tmp_path: Path) -> None:
    tables = ReadOnly(tmp_path, errno.EROFS)
    reader_of(tables, Steps(lambda: None, lambda: None)).run()
    assert tables.stop.is_set(), "it has looked for tables"
    with pytest.raises(OSError, match="denied"):
        reader_of(ReadOnly(tmp_path, errno.EACCES)).run()


def test_one_process_reads_tables(tables: Tables, tmp_path: Path) -> None:
    stop = threading.Event()
    with (
        tables.serving(),
        pytest.raises(Busy),
        reading_tables(Settings(), tmp_path, Models(None), stop),
    ):
        assert stop.wait(400)


@pytest.mark.anyio
async def test_a_full_disk_is_waited_for(tables: Tables) -> None:
    made = add(tables, plan())
    with full_disk():
        for _ in range(MAX_RUNS + 1):
            assert not await reader_of(tables).read(made)
    assert tables.waiting() == [made]


@pytest.mark.anyio
async def test_a_table_that_ends_its_process_each_time_is_given_up(tables: Tables) -> None:
    made = add(tables, plan()).model_copy(update={"runs": MAX_RUNS})
    tables.save(made)
    assert await reader_of(tables).read(made)
    ended = tables.get(made.id, tenant="acme")
    assert ended.state is TableState.FAILED
    assert ended.error is not None
    assert ended.error.type == "Crashed"
