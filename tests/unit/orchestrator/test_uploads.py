"""The folder of uploads, and the process that ingests them, with an ingest that does as a test says."""

from __future__ import annotations

import errno
import hashlib
import resource
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from orchestrator.cli.app import app
from orchestrator.ingest.uploads.folder import Busy, NoRoom, Room, Uploads
from orchestrator.ingest.uploads.service import MAX_RUNS, Ingester, Stopped, Watch
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

ROOM = Room(size=1_000, files=3)
REPORT = IngestReport(
    written=2, unchanged=1, replaced=0, bad=1, bad_files=(), files=1, seconds=0.1,
    bad_records=(BadRecord("has no text", path="/uploads/tenants/acme/x", line=4, record="t:4"),),
)  # fmt: skip
UNREAD = IngestReport(
    written=0, unchanged=0, replaced=0, bad=0, bad_records=(), files=1, seconds=0.1,
    bad_files=(BadFile("not gzip", path="/uploads/tenants/acme/x"),),
)  # fmt: skip


def add(
    uploads: Uploads,
    content: bytes = b"text",
    *,
    name: str = "a.txt",
    tenant: str = "acme",
    room: Room = ROOM,
) -> IngestOutput:
    with uploads.arriving(tenant, name, room) as arrival:
        arrival.write(content)
        return uploads.complete(arrival)[0]


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
    uploads: Uploads, does: Does, stop: threading.Event | None = None, retention: float = 60.0
) -> Ingester:
    return Ingester(uploads, does, stop or threading.Event(), retention=retention, again=0.0)


@pytest.fixture
def uploads(tmp_path: Path) -> Uploads:
    return Uploads(tmp_path / "uploads")


def test_a_file_waits_is_ingested_and_leaves_only_its_record(
    uploads: Uploads, tmp_path: Path
) -> None:
    made = add(uploads, b"Aspirin.", name="étude.txt")
    assert made.state is IngestState.WAITING
    assert made.bytes == 8
    assert made.sha256 == hashlib.sha256(b"Aspirin.").hexdigest()
    path = uploads.path(made)
    assert path.read_bytes() == b"Aspirin."
    # the id of a text without one is that of its folder and name
    assert (path.parent.name, path.name) == ("acme", "étude.txt")
    assert path.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "uploads").stat().st_mode & 0o077 == 0

    does = Does()
    assert not ingester(uploads, does).run_waiting()
    assert does.asked == [("acme", "étude.txt", b"Aspirin.", True)]
    ended = uploads.get(made.id, tenant="acme")
    assert ended.state is IngestState.SUCCEEDED
    assert ended.over
    assert (ended.done, ended.written, ended.unchanged, ended.bad) == (4, 2, 1, 1)
    assert [one.model_dump() for one in ended.rejected] == [
        {"line": 4, "record": "t:4", "reason": "has no text"}
    ]
    assert not list((tmp_path / "uploads").rglob("*.txt"))
    assert uploads.pending() == {}
    assert "uploads" not in ended.model_dump_json()


def test_an_upload_that_is_not_completed_leaves_nothing(uploads: Uploads, tmp_path: Path) -> None:
    def cut() -> None:
        with uploads.arriving("acme", "a.txt", ROOM) as arrival:
            arrival.write(b"half")
            raise ConnectionError

    with pytest.raises(ConnectionError):
        cut()
    assert uploads.all("acme") == []
    assert not [p for p in (tmp_path / "uploads").rglob("*") if "a.txt" in p.name]


def test_what_a_killed_process_left_is_removed_by_the_next_upload(
    uploads: Uploads, tmp_path: Path
) -> None:
    add(uploads)
    left = tmp_path / "uploads" / "tenants" / "acme" / "arriving" / "ingest_0" / "acme"
    left.mkdir(parents=True)
    (left / "half.txt").write_bytes(b"x" * 990)
    made = add(uploads, name="b.txt", content=b"y" * 900)
    assert not left.exists()
    assert uploads.get(made.id, tenant="acme") == made


@pytest.mark.parametrize("size", [997, 1_000, 10_000])
def test_files_that_wait_leave_less_room(uploads: Uploads, size: int) -> None:
    add(uploads, b"1234")
    with pytest.raises(NoRoom, match="996"):
        add(uploads, b"x" * size, name="b.txt")
    assert add(uploads, b"x" * 996, name="b.txt").bytes == 996
    # another tenant has its own
    assert add(uploads, b"x" * 1_000, tenant="other").bytes == 1_000
    assert not ingester(uploads, Does()).run_waiting()
    assert add(uploads, b"x" * 1_000, name="c.txt").bytes == 1_000, "what is ingested needs no room"


def test_no_other_user_reads_what_tenants_send(tmp_path: Path) -> None:
    place = tmp_path / "srv" / "uploads"
    place.mkdir(parents=True)
    # a folder of the operator's, as the documentation makes it
    place.chmod(0o755)
    uploads = Uploads(place)
    add(uploads)
    own = place / "tenants" / "acme"
    assert [stat.S_IMODE(one.stat().st_mode) for one in (place, own.parent, own)] == [
        0o755,
        0o700,
        0o700,
    ]


def test_a_tenant_has_only_so_many_files_waiting(uploads: Uploads) -> None:
    for name in "abc":
        add(uploads, name=f"{name}.txt")
    with pytest.raises(NoRoom, match="3 of 3"):
        add(uploads, name="d.txt")


def test_one_file_of_a_tenant_arrives_at_a_time(uploads: Uploads) -> None:
    with uploads.arriving("acme", "a.txt", ROOM):
        with pytest.raises(Busy), uploads.arriving("acme", "b.txt", ROOM):
            pass
        add(uploads, tenant="other")


def test_the_same_file_that_waits_is_the_same_ingest(uploads: Uploads) -> None:
    made = add(uploads)
    assert add(uploads).id == made.id
    assert add(uploads, b"other").id != made.id
    assert add(uploads, name="b.txt").id != made.id
    assert not ingester(uploads, Does()).run_waiting()
    assert add(uploads).id != made.id, "once it has ended, it is read again"


@pytest.mark.parametrize(
    "ingest",
    ["", ".", "..", "../..", "ingest_", "ingest_0199a1b2c3d45f6e7a8b9c0d1e2f\n", "../acme/pending/x",
     "ingest_0199a1b2c3d45f6e7a8b9c0d1e2f"],
)  # fmt: skip
def test_what_is_no_id_is_not_found(uploads: Uploads, ingest: str) -> None:
    add(uploads)
    with pytest.raises(IngestNotFound):
        uploads.get(ingest, tenant="acme")


def test_a_tenant_finds_only_its_own(uploads: Uploads) -> None:
    made = add(uploads)
    with pytest.raises(IngestNotFound):
        uploads.get(made.id, tenant="other")
    assert uploads.all("other") == []
    assert uploads.all("acme") == [made]
    with pytest.raises(InvalidQuery):
        uploads.all("../acme")


def test_tenants_take_turns(uploads: Uploads) -> None:
    for name in "abc":
        add(uploads, name=f"{name}.txt")
    add(uploads, tenant="beta")
    add(uploads, tenant="gamma")
    does = Does()
    assert not ingester(uploads, does).run_waiting()
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
def test_a_file_that_breaks_its_reader_fails_alone(
    uploads: Uploads, error: Exception, kind: str, message: str
) -> None:
    bad, good = add(uploads, name="bad.txt"), add(uploads, name="good.txt")
    assert not ingester(uploads, Does(fails(error))).run_waiting()
    found = uploads.get(bad.id, tenant="acme")
    assert found.state is IngestState.FAILED
    assert found.error is not None
    assert found.error.type == kind
    assert message in found.error.message
    assert "/uploads" not in found.model_dump_json()
    assert uploads.get(good.id, tenant="acme").state is IngestState.SUCCEEDED


def test_a_file_of_which_nothing_is_read_has_failed(uploads: Uploads) -> None:
    made = add(uploads)
    assert not ingester(uploads, Does(lambda _: UNREAD)).run_waiting()
    found = uploads.get(made.id, tenant="acme")
    assert found.state is IngestState.FAILED
    assert found.unread == "not gzip"
    assert "/uploads" not in found.model_dump_json()


@pytest.mark.parametrize(
    "error",
    [IndexLocked("another process writes it", index="/index"), StoreUnavailable("no Redis", address="")],
)  # fmt: skip
def test_files_wait_while_the_service_cannot_ingest(uploads: Uploads, error: Exception) -> None:
    made = add(uploads)
    does = Does(*[fails(error)] * (2 * MAX_RUNS))
    serving = ingester(uploads, does)
    for _ in range(2 * MAX_RUNS):
        assert serving.run_waiting()
        found = uploads.get(made.id, tenant="acme")
        assert found.state is IngestState.WAITING
        assert found.runs == 0, "the file has no part in it"
    assert not serving.run_waiting()
    assert uploads.get(made.id, tenant="acme").state is IngestState.SUCCEEDED


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


@contextmanager
def full_disk() -> Iterator[Callable[[], None]]:
    """No file of this process may grow until the function is called, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))

    def free() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    try:
        yield free
    finally:
        free()


def test_a_full_disk_is_waited_for(uploads: Uploads) -> None:
    made, does = add(uploads), Does()
    with full_disk() as free:
        ingester(uploads, does, Steps(free, lambda: None)).run()
    assert len(does.asked) == 1
    ended = uploads.get(made.id, tenant="acme")
    assert (ended.state, ended.runs) == (IngestState.SUCCEEDED, 1)


def test_a_disk_that_fills_during_an_ingest_is_waited_for(uploads: Uploads) -> None:
    made, does = add(uploads), Does(fails(OSError(errno.EROFS, "Read-only file system")))
    nothing = lambda: None  # noqa: E731
    ingester(uploads, does, Steps(nothing, nothing)).run()
    assert len(does.asked) == 2
    assert uploads.get(made.id, tenant="acme").state is IngestState.SUCCEEDED


def test_an_upload_that_finds_no_room_says_so_once(uploads: Uploads, tmp_path: Path) -> None:
    opening = uploads.arriving("acme", "a.txt", ROOM)
    arrival = opening.__enter__()
    with full_disk():
        arrival.write(b"text")
        with pytest.raises(OSError, match="large"):
            uploads.complete(arrival)
        # its end, which has nothing more to say, is that of the request
        opening.__exit__(None, None, None)
    assert not list((tmp_path / "uploads").rglob("a.txt"))


def test_a_stop_leaves_the_file_waiting(uploads: Uploads) -> None:
    made = add(uploads)
    stop = threading.Event()

    def stopped(watch: Watch) -> IngestReport:
        watch.count(10)
        stop.set()
        progress = IngestProgress(
            path="x", line=3, written=3, unchanged=0, replaced=0, bad=0, seconds=1.0
        )
        with pytest.raises(Stopped):
            watch.committed(progress)
        raise Stopped

    assert ingester(uploads, Does(stopped), stop).run_waiting()
    found = uploads.get(made.id, tenant="acme")
    assert (found.state, found.done, found.total, found.runs) == (IngestState.WAITING, 3, 10, 0)


def committed(watch: Watch) -> None:
    watch.committed(
        IngestProgress(path="x", line=3, written=3, unchanged=0, replaced=0, bad=0, seconds=1.0)
    )


def long(watch: Watch) -> IngestReport:
    watch.count(10)
    committed(watch)
    return REPORT


def test_a_long_file_gives_way_to_another_tenants_note_and_resumes(uploads: Uploads) -> None:
    large, more = add(uploads, name="a.txt"), add(uploads, name="b.txt")
    note = add(uploads, tenant="beta")
    does = Does(long)
    serving = Ingester(uploads, does, threading.Event(), retention=60.0, turn=0.0)
    assert not serving.run_waiting()
    assert [(tenant, name) for tenant, name, *_ in does.asked] == [
        ("acme", "a.txt"), ("beta", "a.txt"), ("acme", "a.txt"), ("acme", "b.txt"),
    ]  # fmt: skip
    for one, tenant in ((large, "acme"), (more, "acme"), (note, "beta")):
        found = uploads.get(one.id, tenant=tenant)
        assert (found.state, found.runs) == (IngestState.SUCCEEDED, 1)


def test_a_tenant_alone_has_every_turn(uploads: Uploads) -> None:
    add(uploads, name="a.txt")
    add(uploads, name="b.txt")
    does = Does(long, long)
    assert not Ingester(uploads, does, threading.Event(), retention=60.0, turn=0.0).run_waiting()
    assert [name for _, name, *_ in does.asked] == ["a.txt", "b.txt"]


@pytest.mark.parametrize(
    "works", [Watch.row, committed, Watch.look, lambda watch: watch.phase("x")]
)
def test_an_ingest_is_cancelled_while_it_runs(
    uploads: Uploads, tmp_path: Path, works: Callable[[Watch], None]
) -> None:
    made, other = add(uploads, name="a.txt"), add(uploads, name="b.txt")

    def step(watch: Watch) -> IngestReport:
        watch.count(10)
        uploads.cancel(made.id, tenant="acme")
        # it looks about once a second
        clock.append(clock[-1] + 2.0)
        works(watch)
        raise AssertionError

    clock = [0.0]
    does = Does(step)
    serving = Ingester(uploads, does, threading.Event(), retention=60.0, clock=lambda: clock[-1])
    assert not serving.run_waiting()
    found = uploads.get(made.id, tenant="acme")
    assert (found.state, found.over, found.error, found.total) == (
        IngestState.CANCELLED,
        True,
        None,
        10,
    )
    assert found.ended is not None
    assert uploads.get(other.id, tenant="acme").state is IngestState.SUCCEEDED
    assert not list((tmp_path / "uploads").rglob("a.txt"))
    assert uploads.cancel(made.id, tenant="acme") == found, "it has ended"


def test_one_that_waits_is_cancelled_before_its_turn(uploads: Uploads) -> None:
    first, made = add(uploads, name="a.txt"), add(uploads, name="b.txt")
    assert uploads.cancel(made.id, tenant="acme") == made
    does = Does()
    assert not ingester(uploads, does).run_waiting()
    assert [name for _, name, *_ in does.asked] == ["a.txt"]
    assert uploads.get(made.id, tenant="acme").state is IngestState.CANCELLED
    assert uploads.get(first.id, tenant="acme").state is IngestState.SUCCEEDED


def test_nobody_cancels_anothers(uploads: Uploads) -> None:
    made = add(uploads)
    with pytest.raises(IngestNotFound):
        uploads.cancel(made.id, tenant="other")
    assert not uploads.is_cancelled(made)


def test_operators_list_and_cancel_ingests_of_all_tenants(
    uploads: Uploads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = add(uploads)
    monkeypatch.setenv("POSOLOGY_UPLOADS", str(tmp_path / "uploads"))
    runner = CliRunner()
    listed = runner.invoke(app, ["uploads", "list"])
    assert listed.stdout.split()[:3] == [made.id, "acme", "waiting"]
    assert runner.invoke(app, ["uploads", "cancel", made.id]).exit_code == 0
    assert uploads.is_cancelled(made)
    absent = runner.invoke(app, ["uploads", "cancel", "ingest_0"])
    assert absent.exit_code == IngestNotFound.exit_code


def test_a_file_that_kills_the_process_is_given_up(uploads: Uploads) -> None:
    killer, other = add(uploads, name="a.txt"), add(uploads, name="b.txt")

    class Killed(BaseException):
        pass

    for run in range(1, MAX_RUNS + 1):
        with pytest.raises(Killed):
            ingester(uploads, Does(fails(Killed()))).run_waiting()  # type: ignore[arg-type]  # as a kill is none
        assert uploads.get(killer.id, tenant="acme").runs == run
        assert uploads.get(killer.id, tenant="acme").state is IngestState.RUNNING
    does = Does()
    assert not ingester(uploads, does).run_waiting()
    assert [name for _, name, *_ in does.asked] == ["b.txt"]
    found = uploads.get(killer.id, tenant="acme")
    assert found.error is not None
    assert found.error.type == "Crashed"
    assert uploads.get(other.id, tenant="acme").state is IngestState.SUCCEEDED


def test_an_end_that_was_interrupted_is_completed(uploads: Uploads, tmp_path: Path) -> None:
    made = add(uploads)
    over = made.model_copy(update={"state": IngestState.SUCCEEDED, "ended": datetime.now(UTC)})
    uploads.save(over)
    does = Does()
    assert not ingester(uploads, does).run_waiting()
    assert does.asked == []
    assert uploads.get(made.id, tenant="acme") == over
    assert not list((tmp_path / "uploads").rglob("a.txt"))


def test_records_expire(uploads: Uploads) -> None:
    old, new = add(uploads, name="a.txt"), add(uploads, name="b.txt")
    assert not ingester(uploads, Does()).run_waiting()
    waiting = add(uploads, name="c.txt")
    ended = uploads.get(new.id, tenant="acme").ended
    assert ended is not None
    uploads.sweep(ended)
    assert [one.id for one in uploads.all("acme")] == [waiting.id, new.id]
    with pytest.raises(IngestNotFound):
        uploads.get(old.id, tenant="acme")
    uploads.sweep(ended + timedelta(days=1))
    assert uploads.all("acme") == [waiting], "what waits does not expire"


def test_one_process_ingests(uploads: Uploads, tmp_path: Path) -> None:
    assert not uploads.is_served()
    with uploads.serving():
        program = (
            "import sys, threading\nfrom pathlib import Path\n"
            "from orchestrator.ingest.uploads.folder import Busy, Uploads\n"
            "uploads = Uploads(Path(sys.argv[1]))\nassert uploads.is_served()\n"
            "try:\n    with uploads.serving(): pass\nexcept Busy: sys.exit(7)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "uploads")],
            cwd=Path(__file__).parents[3],
            check=False,
        )
        assert done.returncode == 7
    assert not uploads.is_served()
    with uploads.serving():
        pass


def test_what_another_version_wrote_is_passed_over(uploads: Uploads, tmp_path: Path) -> None:
    made = add(uploads)
    (record,) = (tmp_path / "uploads").rglob("record.json")
    record.write_text('{"id": 1}', encoding="utf-8")
    assert uploads.all("acme") == []
    with pytest.raises(IngestNotFound):
        uploads.get(made.id, tenant="acme")
