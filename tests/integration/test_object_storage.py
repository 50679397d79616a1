"""An index on object storage, over a server that speaks S3."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import anyio
import pytest
from typer.testing import CliRunner, Result

from orchestrator.cli.app import app
from orchestrator.jobs.store import open_store
from orchestrator.question.request import JobRequest
from orchestrator.settings import Settings
from orchestrator.stack.options import StackOptions
from orchestrator.stack.up import running_stack
from posology.errors import ConfigurationError, IndexFault, IndexLocked, IndexMissing, PosologyError
from posology.index.build.ingest import ingest
from posology.index.build.rows import RowSource
from posology.index.locking.lease import OBJECT, ObjectLease
from posology.index.locking.lock import WriteLock
from posology.index.places import Place, s3_options
from posology.index.schema import Row, digest
from posology.index.store import Index
from posology.index.sync.rebuild import rebuild
from posology.index.sync.sync import sync
from posology.testing.models.embedder import HashEmbedder
from posology.text.sentences import split
from posology.types import Filters, JobState, Passage
from tests.support import s3
from tests.support.s3 import KEY, S3, SECRET

EMBEDDER = HashEmbedder(dim=32)
#: seconds in which whatever is wrong with storage must be told
SOON = 60


@pytest.fixture(scope="module")
def server() -> Iterator[S3]:
    with s3.running() as started:
        yield started


def rows(numbers: range, *, said: str = "helps") -> list[Row]:
    made = []
    for number in numbers:
        passage = Passage(
            id=f"p:{number}",
            text=f"Aspirin {said} in study {number}.",
            year=2000 + number % 20,
            journal="Lancet" if number % 3 else "BMJ",
        )
        sentences = split(passage.text)
        (encoded,) = EMBEDDER.embed_passages([passage], [sentences])
        made.append(Row(passage=passage, sentences=sentences, encoded=encoded, digest=digest(passage)))  # fmt: skip
    return made


def create(place: Place | Path) -> Index:
    return Index.create(place, EMBEDDER.name, EMBEDDER.dim)


def fence(place: Place) -> int:
    return int(json.loads(bytes(place.store().get(OBJECT).bytes()))["fence"])


def test_an_index_there_is_as_one_in_a_folder(server: S3, tmp_path: Path) -> None:
    place = server.place()
    found = []
    for where in (place, tmp_path / "index"):
        index = create(where)
        index.upsert(rows(range(60)))
        index.upsert(rows(range(50, 70), said="does nothing"))
        index.finish(exact_from=10)
        view = Index.open(where).view()
        vector = EMBEDDER.embed_queries(["aspirin in study 7"])[0]
        filters = Filters(since=2010, journals=("lancet",))
        found.append(
            (
                view.count(),
                view.dense(vector, 8),
                view.bm25("study 55 nothing", 5),
                view.dense(vector, 8, filters=filters).ids,
                [r.passage for r in view.fetch(["p:3", "p:55"])],
                sorted(view.ids()),
            )
        )
        assert Index.open(where).info().vector_index == "IvfFlat"
    assert found[0] == found[1]
    assert place.uri in repr(index) or str(place) == place.uri
    assert SECRET not in repr(place) + str(place) + repr(Index.open(place).info())
    assert Index.open(place).name == "index"


def test_old_versions_are_read_there_too(server: S3) -> None:
    index = create(server.place())
    index.upsert(rows(range(5)))
    then = Index.open(index.place).view().number
    index.upsert(rows(range(5), said="harms"))
    old, new = index.view_at(then), Index.open(index.place).view()
    assert "helps" in old.fetch(["p:1"])[0].passage.text
    assert "harms" in new.fetch(["p:1"])[0].passage.text


def test_what_is_not_there_is_missing(server: S3) -> None:
    with pytest.raises(IndexMissing):
        Index.open(server.place())
    place = server.place()
    create(place)
    with pytest.raises(IndexFault, match="already"):
        create(place)


def test_a_second_writer_is_refused_and_comes_next(server: S3) -> None:
    first = create(server.place())
    second = Index.open(first.place)
    with first.lock:
        first.upsert(rows(range(3)))
        with pytest.raises(IndexLocked, match=f"process {os.getpid()} on"):
            second.upsert(rows(range(3, 6)))
        assert second.count() == 0 or second.count() == 3
    second.upsert(rows(range(2, 6)))
    assert sorted(Index.open(first.place).ids()) == [f"p:{n}" for n in range(6)]


@pytest.mark.parametrize("there", ["nothing", "free", "run out"])
def test_of_writers_that_race_one_wins(server: S3, there: str) -> None:
    for _ in range(3):
        place = server.place()
        if there != "nothing":
            before = ObjectLease(place, lease=1.0)
            before.take()
            if there == "free":
                before.release()
            else:
                # as a process does that dies
                before._stop.set()
                assert before._renewing is not None
                before._renewing.join()
                time.sleep(3.2)
        racers = [ObjectLease(place) for _ in range(6)]
        won: list[ObjectLease] = []
        refused: list[ObjectLease] = []
        start = threading.Barrier(len(racers))

        def race(one: ObjectLease, start: threading.Barrier = start, won: list[ObjectLease] = won,
                 refused: list[ObjectLease] = refused) -> None:  # fmt: skip
            start.wait()
            try:
                one.take()
            except IndexLocked:
                refused.append(one)
            else:
                won.append(one)

        threads = [threading.Thread(target=race, args=(one,)) for one in racers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(won), len(refused)) == (1, 5)
        won[0].check()
        assert fence(place) == (1 if there == "nothing" else 2)
        won[0].release()
        if there == "run out":
            break  # once is slow enough


@pytest.mark.slow
def test_a_writer_that_lives_keeps_it_for_longer_than_a_lease(server: S3) -> None:
    place = server.place()
    one, other = ObjectLease(place, lease=4.0), ObjectLease(place)
    one.take()
    # the server tells whole seconds: it has run out two seconds later at the latest
    until = time.monotonic() + 6.5
    while time.monotonic() < until:
        one.check()
        with pytest.raises(IndexLocked):
            other.take()
        time.sleep(0.3)
    one.release()
    other.take()
    other.release()


_WRITER = """
import sys
from pathlib import Path
from posology.errors import IndexLocked
from posology.index.build.ingest import ingest
from posology.index.build.rows import RowSource
from posology.index.locking.lock import WriteLock
from posology.index.locking.lease import ObjectLease
from posology.index.places import Place, s3_options
from posology.index.store import Index
from posology.testing.models.embedder import HashEmbedder

uri, url, key, secret, first, second = sys.argv[1:]
place = Place.of(uri, s3_options(key=key, secret=secret, endpoint=url))
index = Index.open(place)
index.lock = WriteLock(place, taken=index._catch_up, by=ObjectLease(place, lease=5.0))
try:
    with index.lock:
        ingest([Path(first)], index, RowSource(embedder=HashEmbedder(dim=32)))
        print("held", flush=True)
        sys.stdin.readline()
        ingest([Path(second)], index, RowSource(embedder=HashEmbedder(dim=32)))
    print("written", flush=True)
except IndexLocked as error:
    print(f"refused: {error}", flush=True)
"""


def _writer(place: Place, server: S3, folder: Path) -> subprocess.Popen[str]:
    files = []
    for name, numbers in (("first", range(5)), ("second", range(5, 15))):
        files.append(folder / f"{name}.jsonl")
        notes = [{"id": f"p:{n}", "text": f"Note {n} of the one that lost it."} for n in numbers]
        files[-1].write_text("".join(json.dumps(n) + "\n" for n in notes), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-c", _WRITER, place.uri, server.url, KEY, SECRET, *map(str, files)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
def test_what_a_writer_held_that_died_or_hung_lapses(
    server: S3, end: signal.Signals, tmp_path: Path
) -> None:
    """Another goes on after the lease, and one that wakes up again writes nothing."""
    place = server.place()
    index = create(place)
    with _writer(place, server, tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.send_signal(end)
            with pytest.raises(IndexLocked, match=f"process {process.pid} on .* 5 s after"):
                index.upsert(rows(range(1)))
            time.sleep(7.2)
            index.upsert(rows(range(8), said="is of the next"))
            if end is signal.SIGSTOP:
                process.send_signal(signal.SIGCONT)
                process.stdin.write("go on\n")
                process.stdin.flush()
                assert process.stdout.readline().startswith("refused: the lease on s3://")
        finally:
            process.kill()
    found = Index.open(place)
    assert sorted(found.ids()) == [f"p:{n}" for n in range(8)]
    assert all("next" in one.passage.text for one in found.fetch(["p:0", "p:7"]))
    assert fence(place) >= 2


@pytest.mark.slow
def test_commits_of_two_that_both_think_they_hold_it_double_no_id(server: S3) -> None:
    place = server.place()
    create(place)
    writers = [Index.open(place) for _ in range(3)]
    for writer in writers:
        # as if a lease had been lost between the look at it and the commit
        writer.lock = WriteLock(None, taken=writer._catch_up)
    failed: list[IndexFault] = []
    start = threading.Barrier(len(writers))

    def write(writer: Index, said: str) -> None:
        for batch in range(3):
            start.wait()
            try:
                writer.upsert(rows(range(batch * 4, batch * 4 + 8), said=said))
            except IndexFault as error:
                failed.append(error)

    threads = [
        threading.Thread(target=write, args=(w, f"is of {i}")) for i, w in enumerate(writers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = Index.open(place).ids()
    assert len(ids) == len(set(ids)) == 16
    assert len(failed) < 9


class _Silent:
    """A server that takes connections and never says a word."""

    def __enter__(self) -> str:
        self._socket = socket.create_server(("127.0.0.1", 0))
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __exit__(self, *_: object) -> None:
        self._socket.close()


@pytest.mark.parametrize(
    ("wrong", "kind", "said"),
    [
        ("bucket", IndexFault, "no such bucket"),
        ("keys", ConfigurationError, "AWS_ACCESS_KEY_ID"),
        ("endpoint", IndexFault, "POSOLOGY_S3_ENDPOINT"),
        ("silent", IndexFault, "POSOLOGY_S3_ENDPOINT"),
    ],
)
@pytest.mark.parametrize("work", ["open", "create"])
def test_what_is_wrong_is_told_soon_and_without_keys(
    server: S3, monkeypatch: pytest.MonkeyPatch, wrong: str, kind: type[PosologyError], said: str, work: str
) -> None:  # fmt: skip
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    with ExitStack() as stack:
        url = {"endpoint": "http://127.0.0.1:9", "silent": ""}.get(wrong, server.url)
        url = url or stack.enter_context(_Silent())
        keys = {} if wrong == "keys" else {"key": KEY, "secret": SECRET}
        bucket = "nobody-made-this-bucket" if wrong == "bucket" else server.bucket()
        place = Place.of(f"s3://{bucket}/index", s3_options(endpoint=url, **keys))
        started = time.monotonic()
        with pytest.raises(kind, match=said) as raised:
            Index.open(place) if work == "open" else create(place)
        assert time.monotonic() - started < SOON
    told = f"{raised.value!r} {raised.value.details} {raised.value.__cause__}"
    assert SECRET not in told
    assert KEY not in told


@pytest.mark.slow
def test_storage_that_goes_away_is_told_as_a_fault_of_the_index() -> None:
    with s3.running() as short:
        place = short.place()
        index = create(place)
        index.upsert(rows(range(5)))
        view = index.view()
    started = time.monotonic()
    with pytest.raises(IndexFault, match="POSOLOGY_S3_ENDPOINT") as raised:
        Index.open(place)
    assert time.monotonic() - started < SOON
    assert SECRET not in str(raised.value)
    with pytest.raises(IndexFault, match="POSOLOGY_S3_ENDPOINT") as raised:
        view.fetch(["p:1"])
    assert time.monotonic() - started < SOON
    assert SECRET not in str(raised.value)


def test_ingest_goes_on_there_where_it_stopped(server: S3, tmp_path: Path) -> None:
    lines = [json.dumps({"id": f"n:{n}", "text": f"Note {n} is on aspirin."}) for n in range(40)]
    notes = tmp_path / "notes.jsonl"
    notes.write_text("\n".join(lines[:25]) + "\n", encoding="utf-8")
    index = create(server.place())
    assert ingest([notes], index, RowSource(embedder=EMBEDDER)).written == 25
    notes.write_text("\n".join(lines) + "\n", encoding="utf-8")
    again = ingest([notes], Index.open(index.place), RowSource(embedder=EMBEDDER))
    assert (again.written, again.unchanged) == (15, 25)
    assert Index.open(index.place).count() == 40


@pytest.mark.slow
def test_a_folder_of_files_is_kept_in_step_there(server: S3, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()

    def add(name: str, numbers: range, said: str) -> None:
        notes = [{"id": f"n:{n}", "text": f"Note {n} {said}."} for n in numbers]
        (folder / name).write_text("".join(json.dumps(n) + "\n" for n in notes), encoding="utf-8")

    index = create(server.place())
    add("a.jsonl", range(10), "is new")
    assert len(sync(folder, index, RowSource(embedder=EMBEDDER)).applied) == 1
    before = Index.open(index.place).view().number
    add("b.jsonl", range(5, 12), "is revised")
    assert [
        one.name
        for one in sync(folder, Index.open(index.place), RowSource(embedder=EMBEDDER)).applied
    ] == ["b.jsonl"]
    now = Index.open(index.place)
    assert now.count() == 12
    assert "revised" in now.fetch(["n:7"])[0].passage.text
    assert "new" in now.view_at(before).fetch(["n:7"])[0].passage.text
    assert sync(folder, now, RowSource(embedder=EMBEDDER)).applied == ()
    # and is all there is, when it is said so
    (folder / "a.jsonl").unlink()
    report = rebuild(folder, now, RowSource(embedder=EMBEDDER), allow_removals=True)
    assert (report.ingest.written, report.ingest.removed) == (0, 5)
    assert sorted(Index.open(index.place).ids()) == sorted(f"n:{n}" for n in range(5, 12))


NOTES = [
    {"id": "t:1", "text": "Aspirin lowered the risk of stroke in adults.", "year": 2001},
    {"id": "t:2", "text": "Sleep is good for the heart of adults.", "year": 2015},
]


def _notes(folder: Path) -> Path:
    path = folder / "notes.jsonl"
    path.write_text("".join(json.dumps(note) + "\n" for note in NOTES), encoding="utf-8")
    return path


@pytest.mark.slow
def test_the_commands_take_its_address(server: S3, tiny_encoder: Path, tmp_path: Path) -> None:
    place = f"s3://{server.bucket()}/index"

    def posology(*arguments: str, index: str = place) -> Result:
        environment = {
            **server.environment,
            "POSOLOGY_INDEX": index,
            "POSOLOGY_EMBEDDER": str(tiny_encoder),
            "POSOLOGY_HOME": str(tmp_path / "home"),
        }
        return CliRunner().invoke(app, [*arguments, "--json"], env=environment)

    made = posology("ingest", str(_notes(tmp_path)))
    assert made.exit_code == 0, made.stderr
    assert json.loads(made.stdout)["written"] == 2
    found = json.loads(posology("search", "adults", "--since", "2010", "--k", "5").stdout)
    assert [hit["passage"]["id"] for hit in found["hits"]] == ["t:2"]
    assert found["filters"]["since"] == 2010
    answered = posology("ask", "Did aspirin lower the risk of stroke?", "--until", "2001")
    assert json.loads(answered.stdout)["retrieved"][0]["passage"]["id"] == "t:1"
    info = json.loads(posology("index", "info").stdout)
    assert (info["passages"], info["uri"]) == (2, place)
    missing = posology("search", "aspirin", index="s3://nobody-made-this-bucket/index")
    assert missing.exit_code == IndexFault.exit_code
    assert "no such bucket" in json.loads(missing.stdout)["error"]["message"]
    assert SECRET not in missing.stdout + missing.stderr


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.timeout(400)
async def test_a_worker_answers_from_it(server: S3, tiny_encoder: Path, tmp_path: Path) -> None:
    from orchestrator.ingest.ingest import run_ingest

    environment = {
        **os.environ,
        **server.environment,
        "POSOLOGY_INDEX": f"s3://{server.bucket()}/index",
        "POSOLOGY_EMBEDDER": str(tiny_encoder),
    }
    settings = Settings.model_validate(environment)
    run_ingest([_notes(tmp_path)], settings)
    options = StackOptions(environment=environment, folder=tmp_path / "stack", api=False)
    filters = {"since": 2010, "languages": []}
    asked = JobRequest.parse({"question": "Is sleep good for the heart?", "filters": filters})
    async with (
        running_stack(options) as info,
        open_store(info.redis_url, retention=600) as store,
    ):
        job = (await store.submit(asked.settled(settings))).job
        with anyio.fail_after(300):
            while (found := await store.get(job)).ended is None:  # noqa: ASYNC110
                await anyio.sleep(0.2)
    assert found.state is JobState.SUCCEEDED, found.error
    assert found.result is not None
    assert [one.passage.id for one in found.result.retrieved] == ["t:2"]
    assert found.result.filters == Filters(since=2010)
    assert found.request["filters"]["since"] == 2010
