"""Uploads as leased work, with an ingest that does as a test says: arrival, turns, faults, deaths and takeover."""

from __future__ import annotations

import errno
import hashlib
import stat
import threading
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from redis.asyncio import Redis

from orchestrator.ingest.uploads.process import Keeper, Stores
from orchestrator.ingest.uploads.service import MAX_RUNS, Ingester
from orchestrator.ingest.uploads.takeover import locked, take_over
from orchestrator.ingest.uploads.uploads import Uploads, bytes_of
from orchestrator.ingest.uploads.watch import Stopped, Watch, Yielded
from orchestrator.settings import Settings
from orchestrator.tables.served.tables import Tables
from orchestrator.work.files import FolderFiles
from orchestrator.work.items import Limits, NoRoom, Sweeping, of_tenants
from orchestrator.work.store import WorkStore
from posology.corpus.items import Remark
from posology.errors import (
    BadFile,
    BadRecord,
    IndexLocked,
    IngestNotFound,
    InvalidQuery,
    ReaderUnavailable,
    StoreUnavailable,
)
from posology.index.build.report import IngestProgress, IngestReport
from posology.published.ingests import IngestOutput, IngestState
from tests.integration.test_work_store import Clock, lapse
from tests.support.disks import full_disk
from tests.support.waiting import until

pytestmark = pytest.mark.anyio
ROOM = Limits(bytes=1_000, items=3)
#: seconds
LEASE = 10.0
REPORT = IngestReport(
    written=2, unchanged=1, replaced=0, bad=1, bad_files=(), files=1, seconds=0.1,
    bad_records=(BadRecord("has no text", path="/uploads/tenants/acme/x", line=4, record="t:4"),),
    remarked=1, remarks=(Remark(reason="not read", path=Path("/uploads/tenants/acme/x"), line=1, record="page 3"),),
)  # fmt: skip
UNREAD = IngestReport(
    written=0, unchanged=0, replaced=0, bad=0, bad_records=(), files=1, seconds=0.1,
    bad_files=(BadFile("not gzip", path="/uploads/tenants/acme/x"),),
)  # fmt: skip


async def add(
    uploads: Uploads,
    content: bytes = b"text",
    *,
    name: str = "a.txt",
    tenant: str = "acme",
    room: Limits = ROOM,
) -> IngestOutput:
    async with uploads.arriving(tenant, name, room) as arrival:
        arrival.write(content)
        return (await uploads.complete(arrival))[0]


class Does:
    """An ingest that does as a test says, file by file, and lists what it was asked."""

    def __init__(self, *steps: Callable[[Watch], IngestReport]) -> None:
        self.steps = list(steps)
        self.asked: list[tuple[str, str, bytes, bool]] = []

    def __call__(self, path: Path, *, tenant: str, watch: Watch, last: bool) -> IngestReport:
        self.asked.append((tenant, path.name, path.read_bytes(), last))
        return self.steps.pop(0)(watch) if self.steps else REPORT


def fails(error: Exception) -> Callable[[Watch], IngestReport]:
    def step(_: Watch) -> IngestReport:
        raise error

    return step


def ingester(
    uploads: Uploads, does: Does, stop: threading.Event | None = None, turn: float = 30.0
) -> Ingester:
    return Ingester(uploads, does, stop or threading.Event(), lease=LEASE, turn=turn)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "uploads"


@pytest.fixture
def uploads(redis: Redis, redis_url: str, clock: Clock, folder: Path) -> Uploads:
    # of a kind that no other test has
    kind = of_tenants(f"ingest-{uuid.uuid4().hex}")
    return Uploads(WorkStore(redis, redis_url, kind, clock=clock), FolderFiles(folder))


def stores_of(uploads: Uploads) -> Stores:
    """With tables, of which there are none."""
    work = uploads.work
    none = WorkStore(work.redis, work.url, of_tenants(f"table-{uuid.uuid4().hex}"))
    return Stores(uploads=uploads, tables=Tables(none, uploads.files), redis=work.url)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def files_of(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file()]


async def test_a_file_waits_is_ingested_and_leaves_only_its_record(
    uploads: Uploads, folder: Path
) -> None:
    made = await add(uploads, b"Aspirin.", name="étude.txt")
    assert made.state is IngestState.WAITING
    assert made.bytes == 8
    assert made.sha256 == hashlib.sha256(b"Aspirin.").hexdigest()
    path = uploads.files.local(bytes_of(made))
    # the id of a text without one is that of its folder and name
    assert (path.parent.name, path.name) == ("acme", "étude.txt")
    assert (mode(path), mode(folder)) == (0o600, 0o700)

    does = Does()
    assert not await ingester(uploads, does).run_waiting()
    assert does.asked == [("acme", "étude.txt", b"Aspirin.", True)]
    ended = await uploads.get(made.id, tenant="acme")
    assert ended.state is IngestState.SUCCEEDED
    assert (ended.over, ended.runs, ended.phase) == (True, 1, None)
    assert (ended.done, ended.written, ended.unchanged, ended.bad) == (4, 2, 1, 1)
    assert [one.model_dump() for one in ended.rejected] == [
        {"line": 4, "record": "t:4", "reason": "has no text"}
    ]
    assert [one.record for one in ended.remarks] == ["page 3"]
    assert files_of(folder) == []
    assert await uploads.pending() == {}
    assert "uploads" not in ended.model_dump_json()


async def test_an_upload_that_is_not_completed_leaves_nothing(
    uploads: Uploads, folder: Path
) -> None:
    async def cut() -> None:
        async with uploads.arriving("acme", "a.txt", ROOM) as arrival:
            arrival.write(b"half")
            raise ConnectionError

    with pytest.raises(ConnectionError):
        await cut()
    assert await uploads.all("acme") == []
    assert files_of(folder) == []


async def test_what_a_crash_left_is_removed_after_a_day(uploads: Uploads, folder: Path) -> None:
    made = await add(uploads)
    ended = await add(uploads, name="ended.txt")
    await uploads.cancel(ended.id, tenant="acme")
    claim = await uploads.work.claim("acme", ended.id, lease=LEASE)
    assert claim is not None
    # killed after the end and before its file was removed, at the offer, and within an upload
    await uploads.work.finish(claim, "cancelled")
    uploads.files.write(b"no record", "ingest/acme/ingest_0/acme/b.txt")
    uploads.files.arriving("c.txt").write_bytes(b"half")
    keeper = Keeper(stores=stores_of(uploads), settings=Settings(), process="")
    await keeper.clear(3_600)
    assert sorted(files_of(folder)) == ["a.txt", "b.txt", "c.txt", "ended.txt"]
    await keeper.clear(-1)
    assert files_of(folder) == ["a.txt"]
    assert (await uploads.get(made.id, tenant="acme")) == made


@pytest.mark.parametrize("size", [997, 1_000, 10_000])
async def test_files_that_wait_leave_less_room(uploads: Uploads, folder: Path, size: int) -> None:
    await add(uploads, b"1234")
    with pytest.raises(NoRoom):
        await add(uploads, b"x" * size, name="b.txt")
    assert files_of(folder) == ["a.txt"]
    assert (await add(uploads, b"x" * 996, name="b.txt")).bytes == 996
    # another tenant has its own
    assert (await add(uploads, b"x" * 1_000, tenant="other")).bytes == 1_000
    assert not await ingester(uploads, Does()).run_waiting()
    made = await add(uploads, b"x" * 1_000, name="c.txt")
    assert made.bytes == 1_000, "what is ingested needs no room"


async def test_files_that_arrive_at_once_have_one_room(uploads: Uploads, folder: Path) -> None:
    """As in several processes of the API."""
    results: list[bool] = []

    async def send(name: str) -> None:
        try:
            await add(uploads, b"x" * 400, name=name)
        except NoRoom:
            results.append(False)
        else:
            results.append(True)

    async with anyio.create_task_group() as group:
        for n in range(8):
            group.start_soon(send, f"{n}.txt")
    assert sorted(results) == [False] * 6 + [True] * 2
    assert len(files_of(folder)) == 2
    # and one file is one ingest
    ids: set[str] = set()

    async def same() -> None:
        ids.add((await add(uploads, tenant="other")).id)

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(same)
    assert len(ids) == 1
    assert len(files_of(folder)) == 3


async def test_no_other_user_reads_what_tenants_send(uploads: Uploads, folder: Path) -> None:
    # a folder of the operator's, as the documentation makes it
    await anyio.Path(folder).mkdir(parents=True)
    await anyio.Path(folder).chmod(0o755)
    await add(uploads)
    own = folder / "ingest" / "acme"
    assert [mode(one) for one in (folder, own.parent, own)] == [0o755, 0o700, 0o700]


async def test_a_tenant_has_only_so_many_files_waiting(uploads: Uploads) -> None:
    for name in "abc":
        await add(uploads, name=f"{name}.txt")
    with pytest.raises(NoRoom) as full:
        await add(uploads, name="d.txt")
    assert (full.value.limit, full.value.used) == ("items", 3)


async def test_the_same_file_that_waits_is_the_same_ingest(uploads: Uploads) -> None:
    made = await add(uploads)
    assert (await add(uploads)).id == made.id
    assert (await add(uploads, b"other")).id != made.id
    assert (await add(uploads, name="b.txt")).id != made.id
    assert not await ingester(uploads, Does()).run_waiting()
    assert (await add(uploads)).id != made.id, "once it has ended, it is read again"


async def test_a_tenant_finds_and_cancels_only_its_own(uploads: Uploads) -> None:
    made = await add(uploads)
    for ingest in (made.id, "", "../acme", "ingest_0199a1b2c3d45f6e7a8b9c0d1e2f"):
        with pytest.raises(IngestNotFound):
            await uploads.get(ingest, tenant="other")
        with pytest.raises(IngestNotFound):
            await uploads.cancel(ingest, tenant="other")
    assert await uploads.all("other") == []
    assert await uploads.all("acme") == [made]
    with pytest.raises(InvalidQuery):
        await uploads.all("../acme")
    item = await uploads.work.get("acme", made.id)
    assert item is not None
    assert not item.cancelled


async def test_tenants_take_turns(uploads: Uploads) -> None:
    for name in "abc":
        await add(uploads, name=f"{name}.txt")
    await add(uploads, tenant="beta")
    await add(uploads, tenant="gamma")
    does = Does()
    assert not await ingester(uploads, does).run_waiting()
    assert [(tenant, name) for tenant, name, *_ in does.asked] == [
        ("acme", "a.txt"), ("beta", "a.txt"), ("gamma", "a.txt"), ("acme", "b.txt"), ("acme", "c.txt"),
    ]  # fmt: skip
    # the search indices are updated once
    assert [last for *_, last in does.asked] == [False] * 4 + [True]


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [(BadFile("no records", path="/uploads/x"), "BadFile", "no records"),
     (ReaderUnavailable("install it", package="pypdf"), "ReaderUnavailable", "install it"),
     (ZeroDivisionError("/uploads/secret"), "Defect", "ask its operator")],
)  # fmt: skip
async def test_a_file_that_breaks_its_reader_fails_alone(
    uploads: Uploads, error: Exception, kind: str, message: str
) -> None:
    bad, good = await add(uploads, name="bad.txt"), await add(uploads, name="good.txt")
    assert not await ingester(uploads, Does(fails(error))).run_waiting()
    found = await uploads.get(bad.id, tenant="acme")
    assert found.state is IngestState.FAILED
    assert found.error is not None
    assert found.error.type == kind
    assert message in found.error.message
    assert "/uploads" not in found.model_dump_json()
    assert (await uploads.get(good.id, tenant="acme")).state is IngestState.SUCCEEDED


async def test_a_file_of_which_nothing_is_read_has_failed(uploads: Uploads) -> None:
    made = await add(uploads)
    assert not await ingester(uploads, Does(lambda _: UNREAD)).run_waiting()
    found = await uploads.get(made.id, tenant="acme")
    assert found.state is IngestState.FAILED
    assert found.unread == "not gzip"
    assert "/uploads" not in found.model_dump_json()


@pytest.mark.parametrize(
    "error",
    [IndexLocked("another process writes it", index="/index"), StoreUnavailable("no Redis", address=""),
     OSError(errno.EROFS, "Read-only file system")],
)  # fmt: skip
async def test_files_wait_while_the_service_cannot_ingest(
    uploads: Uploads, error: Exception
) -> None:
    made = await add(uploads)
    serving = ingester(uploads, Does(*[fails(error)] * (2 * MAX_RUNS)))
    for _ in range(2 * MAX_RUNS):
        assert await serving.run_waiting()
        found = await uploads.get(made.id, tenant="acme")
        assert (found.state, found.phase) == (
            IngestState.WAITING,
            "waiting for the index to be writable",
        )
        assert found.runs == 0, "the file has no part in it"
    assert not await serving.run_waiting()
    assert (await uploads.get(made.id, tenant="acme")).state is IngestState.SUCCEEDED


class Steps(threading.Event):
    """A stop that is asked for by the last of some waits."""

    def __init__(self, waits: int) -> None:
        super().__init__()
        self.waits = waits

    def wait(self, timeout: float | None = None) -> bool:
        del timeout
        self.waits -= 1
        if not self.waits:
            self.set()
        return self.is_set()


async def test_redis_is_waited_for(redis: Redis, redis_url: str, folder: Path) -> None:
    class Away(WorkStore):
        faults = 2

        async def waiting(self) -> dict[str, int]:
            self.faults -= 1
            if self.faults >= 0:
                raise StoreUnavailable("no Redis", address="")
            return await super().waiting()

    kind = of_tenants(f"ingest-{uuid.uuid4().hex}")
    uploads = Uploads(Away(redis, redis_url, kind), FolderFiles(folder))
    made = await add(uploads)
    await ingester(uploads, Does(), Steps(3)).run()
    assert (await uploads.get(made.id, tenant="acme")).state is IngestState.SUCCEEDED


async def test_an_upload_that_finds_no_room_leaves_nothing(uploads: Uploads, folder: Path) -> None:
    async def send() -> None:
        async with uploads.arriving("acme", "a.txt", ROOM) as arrival:
            with full_disk():
                arrival.write(b"text")
                await uploads.complete(arrival)

    with pytest.raises(OSError, match="large"):
        await send()
    assert files_of(folder) == []
    assert await uploads.all("acme") == []


async def test_a_stop_leaves_the_file_waiting(uploads: Uploads) -> None:
    made = await add(uploads)
    stop = threading.Event()

    def stopped(watch: Watch) -> IngestReport:
        watch.count(10)
        stop.set()
        with pytest.raises(Stopped):
            committed(watch)
        raise Stopped

    assert await ingester(uploads, Does(stopped), stop).run_waiting()
    found = await uploads.get(made.id, tenant="acme")
    assert (found.state, found.done, found.total, found.runs) == (IngestState.WAITING, 3, 10, 0)


def committed(watch: Watch) -> None:
    watch.committed(
        IngestProgress(path="x", line=3, written=3, unchanged=0, replaced=0, bad=0, seconds=1.0)
    )


def until_ended(works: Callable[[Watch], None], watch: Watch) -> None:
    """Work on until the watch ends it."""
    until(lambda: works(watch))


async def test_a_long_file_gives_way_to_another_tenants_note_and_resumes(uploads: Uploads) -> None:
    large, more = await add(uploads, name="a.txt"), await add(uploads, name="b.txt")
    note = await add(uploads, tenant="beta")

    def long(watch: Watch) -> IngestReport:
        watch.count(10)
        with pytest.raises(Yielded):
            until_ended(committed, watch)
        raise Yielded

    does = Does(long)
    assert not await ingester(uploads, does, turn=0.0).run_waiting()
    assert [(tenant, name) for tenant, name, *_ in does.asked] == [
        ("acme", "a.txt"), ("beta", "a.txt"), ("acme", "a.txt"), ("acme", "b.txt"),
    ]  # fmt: skip
    for one, tenant in ((large, "acme"), (more, "acme"), (note, "beta")):
        found = await uploads.get(one.id, tenant=tenant)
        assert (found.state, found.runs) == (IngestState.SUCCEEDED, 1)


@pytest.mark.parametrize(
    "works", [Watch.row, committed, Watch.look, lambda watch: watch.phase("x")]
)
async def test_an_ingest_is_cancelled_while_it_runs(
    uploads: Uploads, folder: Path, works: Callable[[Watch], None]
) -> None:
    made, other = await add(uploads, name="a.txt"), await add(uploads, name="b.txt")
    began = threading.Event()

    def step(watch: Watch) -> IngestReport:
        watch.count(10)
        began.set()
        until_ended(works, watch)
        raise AssertionError

    async with anyio.create_task_group() as group:
        group.start_soon(ingester(uploads, Does(step)).run_waiting)
        await anyio.to_thread.run_sync(began.wait, 90)
        assert (await uploads.cancel(made.id, tenant="acme")).state is IngestState.RUNNING
    found = await uploads.get(made.id, tenant="acme")
    assert (found.state, found.error, found.total) == (IngestState.CANCELLED, None, 10)
    assert found.ended is not None
    assert (await uploads.get(other.id, tenant="acme")).state is IngestState.SUCCEEDED
    assert files_of(folder) == []
    assert await uploads.cancel(made.id, tenant="acme") == found, "it has ended"


async def test_one_that_waits_is_cancelled_before_its_turn(uploads: Uploads) -> None:
    first, made = await add(uploads, name="a.txt"), await add(uploads, name="b.txt")
    assert await uploads.cancel(made.id, tenant="acme") == made
    does = Does()
    assert not await ingester(uploads, does).run_waiting()
    assert [name for _, name, *_ in does.asked] == ["a.txt"]
    found = await uploads.get(made.id, tenant="acme")
    assert (found.state, found.started, found.runs) == (IngestState.CANCELLED, None, 0)
    assert (await uploads.get(first.id, tenant="acme")).state is IngestState.SUCCEEDED


async def test_a_file_that_kills_the_process_is_given_up(uploads: Uploads, clock: Clock) -> None:
    killer, other = await add(uploads, name="a.txt"), await add(uploads, name="b.txt")
    rules = Sweeping(lease=LEASE)
    for run in range(1, MAX_RUNS + 1):
        # a process that is killed after its claim
        assert (await uploads.work.claim("acme", lease=LEASE, at_once=1)) is not None
        found = await uploads.get(killer.id, tenant="acme")
        assert (found.state, found.runs) == (IngestState.RUNNING, run)
        assert not await ingester(uploads, Does()).run_waiting(), "another process lets it be"
        assert await lapse(uploads.work, clock, "acme", rules) == 1
    does = Does()
    assert not await ingester(uploads, does).run_waiting()
    assert [name for _, name, *_ in does.asked] == ["b.txt"]
    found = await uploads.get(killer.id, tenant="acme")
    assert found.error is not None
    assert (found.error.type, found.runs) == ("Crashed", MAX_RUNS)
    assert (await uploads.get(other.id, tenant="acme")).state is IngestState.SUCCEEDED


async def test_a_process_that_was_too_slow_ends_nothing(uploads: Uploads, clock: Clock) -> None:
    made = await add(uploads)
    reached, go = threading.Event(), threading.Event()

    def slow(watch: Watch) -> IngestReport:
        reached.set()
        assert go.wait(90)
        # by the next step, too
        if watch.lease.standing == "lost":
            watch.row()
        return UNREAD

    async with anyio.create_task_group() as group:
        group.start_soon(ingester(uploads, Does(slow)).run_waiting)
        await anyio.to_thread.run_sync(reached.wait, 90)
        # the other process claims it before the next heartbeat
        claim = None
        while claim is None:
            await lapse(uploads.work, clock, "acme", Sweeping(lease=LEASE))
            claim = await uploads.work.claim("acme", lease=LEASE)
        go.set()
    found = await uploads.get(made.id, tenant="acme")
    assert (found.state, found.runs, found.error) == (IngestState.RUNNING, 2, None)
    assert uploads.files.local(bytes_of(made)).read_bytes() == b"text"
    assert claim is not None
    assert await uploads.work.heartbeat(claim, lease=LEASE) == "held"


async def test_records_expire(uploads: Uploads, clock: Clock) -> None:
    for name in ("a.txt", "b.txt"):
        await add(uploads, name=name)
        assert not await ingester(uploads, Does()).run_waiting()
        clock.pass_by(3_600)
    waiting = await add(uploads, name="c.txt")
    await uploads.work.sweep("acme", Sweeping(lease=LEASE, retention=5_400))
    assert [one.name for one in await uploads.all("acme")] == ["c.txt", "b.txt"]
    clock.pass_by(86_400)
    await uploads.work.sweep("acme", Sweeping(lease=LEASE, retention=5_400))
    assert await uploads.all("acme") == [waiting], "what waits does not expire"


async def test_what_another_version_wrote_is_passed_over(uploads: Uploads) -> None:
    await uploads.work.offer("acme", "ingest_1", '{"id": 1}')
    assert await uploads.all("acme") == []
    with pytest.raises(IngestNotFound):
        await uploads.get("ingest_1", tenant="acme")
    made = await add(uploads)
    assert not await ingester(uploads, Does()).run_waiting()
    assert (await uploads.get(made.id, tenant="acme")).over


def old_ingest(folder: Path, place: str, record: IngestOutput, content: bytes | None) -> Path:
    """An ingest as the earlier version wrote it."""
    entry = folder / "tenants" / record.tenant / place / record.id
    entry.mkdir(parents=True)
    (entry / "record.json").write_text(record.model_dump_json(), encoding="utf-8")
    if content is not None:
        (entry / record.tenant).mkdir()
        (entry / record.tenant / record.name).write_bytes(content)
    return entry


def old_record(number: int, tenant: str = "acme", **fields: object) -> IngestOutput:
    made = IngestOutput(
        id=f"ingest_0199a1b2c3d45f6e7a8b9c0d1e{number:02}", tenant=tenant, name=f"{number}.txt", bytes=4,
        sha256=hashlib.sha256(b"text").hexdigest(), state=IngestState.WAITING, phase=None, done=0, total=None, runs=0,
        submitted=datetime.now(UTC), started=None, ended=None, written=0, unchanged=0, replaced=0, bad=0, rejected=(),
        unread=None, error=None,
    )  # fmt: skip
    return made.model_copy(update=fields)


async def test_a_folder_of_an_earlier_version_is_finished(
    redis: Redis, redis_url: str, folder: Path
) -> None:
    kind = of_tenants(f"ingest-{uuid.uuid4().hex}")
    uploads = Uploads(WorkStore(redis, redis_url, kind), FolderFiles(folder))
    now = datetime.now(UTC)
    ended: dict[str, Any] = {
        "state": IngestState.SUCCEEDED,
        "ended": now - timedelta(hours=1),
        "written": 7,
    }
    waits, running, cancelled = old_record(1), old_record(2, state=IngestState.RUNNING, runs=1), old_record(3)  # fmt: skip
    old, new = old_record(4, **ended | {"ended": now - timedelta(days=9)}), old_record(5, **ended)
    # the earlier version was killed between the last two steps, or within an upload
    between, theirs = old_record(6, **ended), old_record(7, "other")
    for record in (waits, running, theirs):
        old_ingest(folder, "pending", record, b"text")
    (old_ingest(folder, "pending", cancelled, b"text") / "cancel").touch()
    old_ingest(folder, "pending", between, None)
    for record in (old, new):
        old_ingest(folder, "ended", record, None)
    (folder / "tenants" / "acme" / "arriving" / "ingest_0" / "acme").mkdir(parents=True)
    (folder / "tenants" / "acme" / "upload.lock").touch()
    with locked(folder / "service.lock"):
        await take_over(uploads, stores_of(uploads).tables)
    assert await uploads.all("acme") == [], "its process still runs"

    # this one is killed after any step, and begins again
    (folder / "ingest" / "acme" / waits.id).mkdir(parents=True)
    (folder / "tenants" / "acme" / "pending" / waits.id / "acme").rename(
        folder / "ingest" / "acme" / waits.id / "acme"
    )
    await uploads.work.offer("acme", running.id, running.model_dump_json(), size=4)
    for _ in range(2):
        await take_over(uploads, stores_of(uploads).tables)
    assert not (folder / "tenants").exists()
    assert not (folder / "service.lock").exists()
    assert [one.id for one in (await uploads.pending())["acme"]] == [
        waits.id,
        running.id,
        cancelled.id,
    ]
    await uploads.work.sweep("acme", Sweeping(lease=LEASE, retention=7 * 86_400))
    assert await uploads.get(new.id, tenant="acme") == new
    with pytest.raises(IngestNotFound):
        await uploads.get(old.id, tenant="acme")
    does = Does()
    assert not await ingester(uploads, does).run_waiting()
    assert sorted(one[:3] for one in does.asked) == [
        ("acme", "1.txt", b"text"),
        ("acme", "2.txt", b"text"),
        ("other", "7.txt", b"text"),
    ]
    states = {one.name: one.state.value for one in await uploads.all("acme")}
    assert states == {
        "1.txt": "succeeded", "2.txt": "succeeded", "3.txt": "cancelled", "5.txt": "succeeded", "6.txt": "succeeded",
    }  # fmt: skip
    assert (await uploads.get(theirs.id, tenant="other")).state is IngestState.SUCCEEDED
    assert files_of(folder) == []
