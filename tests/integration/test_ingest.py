"""Corpus files on disk into an index on disk, and back as retrievals."""

from __future__ import annotations

import errno
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from posology.errors import (
    BadFile,
    IndexFault,
    IndexLocked,
    IndexMismatch,
    InputError,
    InvalidQuery,
)
from posology.index import maintenance, reader, versions
from posology.index.build import batches
from posology.index.build.ingest import ingest
from posology.index.build.progress import Progress
from posology.index.build.report import IngestProgress
from posology.index.build.rows import RowSource
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.query import make_query
from posology.testing.models.embedder import HashEmbedder
from posology.types import Query, Ranking

pytestmark = pytest.mark.anyio

TOPICS = ("aspirin", "statins", "insulin", "warfarin", "metformin", "ibuprofen", "heparin")


def record(i: int, **fields: object) -> str:
    topic = TOPICS[i % len(TOPICS)]
    text = f"We gave {topic} to {i} patients. It helped {i // 2} of them (note {i})."
    return json.dumps({"id": f"n:{i}", "title": f"A trial of {topic}", "text": text} | fields)


def write(path: Path, *lines: str) -> Path:
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder(dim=64)


@pytest.fixture
def index(tmp_path: Path, embedder: HashEmbedder) -> Index:
    return Index.create(tmp_path / "index", embedder.name, embedder.dim)


def content(index: Index, ids: Sequence[str]) -> list[tuple[object, ...]]:
    return [
        (r.passage, r.sentences, r.vector.tobytes(), r.sentence_vectors.tobytes())
        for r in index.fetch(ids)
    ]


def test_files_and_folders_are_read_and_what_is_wrong_is_reported(
    tmp_path: Path, index: Index, embedder: HashEmbedder
) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    a = write(folder / "a.jsonl", record(0), "{oops", "", record(1), '{"id": "n:9"}')
    write(folder / "b.jsonl.gz", *(record(i) for i in range(2, 7)))
    seen: list[IngestProgress] = []
    paths = [folder, tmp_path / "none.jsonl"]
    report = ingest(paths, index, RowSource(embedder=embedder, batch=2), progress=seen.append)
    assert (report.written, report.unchanged, report.bad, report.files) == (7, 0, 2, 2)
    assert [(b.path, b.line) for b in report.bad_records] == [(str(a), 2), (str(a), 5)]
    assert [f.path for f in report.bad_files] == [str(tmp_path / "none.jsonl")]
    assert report.rate > 0
    assert index.count() == 7
    assert [p.written for p in seen] == sorted(p.written for p in seen)
    assert seen[-1].written == 7


def test_a_second_time_nothing_is_embedded_and_bad_records_are_reported_again(
    tmp_path: Path, index: Index, embedder: HashEmbedder
) -> None:
    good = write(tmp_path / "good.jsonl", *map(record, range(4)))
    bad = write(tmp_path / "bad.jsonl", record(4), "{oops", record(5))
    first = ingest([good, bad], index, RowSource(embedder=embedder))
    version = index.version
    again = ingest([good, bad], index, RowSource(embedder=embedder))
    assert (again.written, again.unchanged, again.bad) == (0, 6, 1)
    assert str(again.bad_records[0]) == str(first.bad_records[0])
    assert embedder.embedded == 6
    assert index.version == version


def test_remarks_are_no_bad_records_and_their_files_are_not_read_again(
    tmp_path: Path, index: Index, embedder: HashEmbedder
) -> None:
    page = write(tmp_path / "a.html", "<p>Aged <img src=ge.gif> 65.")
    report = ingest([page], index, RowSource(embedder=embedder))
    assert (report.good, report.bad, report.remarked) == (1, 0, 1)
    assert "1 place could not be read" in str(report.remarks[0])
    again = ingest([page], index, RowSource(embedder=embedder))
    assert (again.good, again.remarks) == (1, ())


def test_of_files_that_are_given_once_nothing_is_kept(
    tmp_path: Path, index: Index, embedder: HashEmbedder
) -> None:
    """Uploads have new names, and are removed: what is kept of each would only grow."""
    kept = write(tmp_path / "kept.jsonl", record(0))
    ingest([kept], index, RowSource(embedder=embedder))
    for number in range(1, 4):
        path = write(tmp_path / f"upload-{number}.jsonl", record(number))
        report = ingest([path], index, RowSource(embedder=embedder), once=True)
        assert report.written == 1
        path.unlink()
    assert Progress(index.connection).paths == (str(kept),)
    assert index.count() == 4


def test_expired_versions_of_a_small_index_are_removed_too(
    tmp_path: Path, index: Index, embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its few files need no compaction, with which others are removed."""
    path = tmp_path / "a.jsonl"
    for number in range(6):
        write(path, record(0, text=f"Revision {number}."))
        ingest([path], index, RowSource(embedder=embedder))
    table = index.connection.open_table("passages")
    assert len(table.list_versions()) > 6
    monkeypatch.setattr(versions, "LEAST", timedelta(0))
    monkeypatch.setattr(maintenance, "KEEP", timedelta(milliseconds=1))
    index.keep = timedelta(0)
    index.finish()
    assert len(table.list_versions()) < 6
    assert index.fetch(["n:0"])[0].passage.text == "Revision 5."


def test_only_what_changed_is_embedded_again(
    tmp_path: Path, index: Index, embedder: HashEmbedder
) -> None:
    path = write(tmp_path / "a.jsonl", *map(record, range(4)))
    ingest([path], index, RowSource(embedder=embedder))
    write(path, record(0), record(1, text="Something else."), record(2), record(3), record(4))
    report = ingest([path], index, RowSource(embedder=embedder))
    assert (report.written, report.unchanged) == (2, 3)
    assert embedder.embedded == 6
    assert index.fetch(["n:1"])[0].passage.text == "Something else."
    assert index.bm25("else", 5).ids == ("n:1",)


def test_the_last_record_of_an_id_is_kept(
    tmp_path: Path, index: Index, embedder: HashEmbedder
) -> None:
    a = write(tmp_path / "a.jsonl", record(0), "{oops", record(0, text="Second."), record(1))
    b = write(tmp_path / "b.jsonl", record(0, text="Third."))
    for batch in (1, 10):
        report = ingest([a, b], index, RowSource(embedder=embedder, batch=batch))
        assert report.good == 4
        assert index.count() == 2
        assert index.fetch(["n:0"])[0].passage.text == "Third."


def test_the_later_file_wins_also_when_an_earlier_one_alone_is_read_again(
    tmp_path: Path, index: Index, embedder: HashEmbedder
) -> None:
    a = write(tmp_path / "a's.jsonl", record(0), record(1))
    b = write(tmp_path / "b's.jsonl", record(0, text="Later."), "{oops")
    c = write(tmp_path / "c.jsonl", record(1, text="Last."))
    ingest([a, b, c], index, RowSource(embedder=embedder))
    os.utime(a, ns=(1, 1))
    report = ingest([a, b, c], index, RowSource(embedder=embedder))
    assert (report.good, report.bad) == (4, 1)
    assert [r.passage.text for r in index.fetch(["n:0", "n:1"])] == ["Later.", "Last."]
    embedded = embedder.embedded
    assert ingest([a, b, c], index, RowSource(embedder=embedder)).unchanged == 4
    assert embedder.embedded == embedded


def test_the_later_file_wins_also_after_a_crash_between_the_two(
    tmp_path: Path, index: Index, embedder: HashEmbedder
) -> None:
    a = write(tmp_path / "a.jsonl", record(0))
    b = write(tmp_path / "b.jsonl", record(0, text="Later."))
    ingest([a, b], index, RowSource(embedder=embedder))
    os.utime(a, ns=(1, 1))

    def crash(done: IngestProgress) -> None:
        if done.path == str(a):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingest([a, b], index, RowSource(embedder=embedder, batch=1), progress=crash)
    ingest([a, b], index, RowSource(embedder=embedder))
    assert index.fetch(["n:0"])[0].passage.text == "Later."


def test_long_records_make_small_batches(
    tmp_path: Path, index: Index, embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_CHARACTERS", 25_000)
    short = [record(i) for i in range(5)]
    long = [record(i, text="word " * 2_000) for i in range(5, 11)]
    seen: list[int] = []
    path = write(tmp_path / "a.jsonl", *short, *long)
    ingest([path], index, RowSource(embedder=embedder), progress=lambda p: seen.append(p.written))
    assert seen == [8, 11, 11]
    assert index.count() == 11


def test_an_ingest_goes_on_from_what_was_written_since_the_index_was_opened(
    tmp_path: Path, index: Index, embedder: HashEmbedder
) -> None:
    opened = Index.open(index.uri)
    ingest([write(tmp_path / "a.jsonl", record(0))], opened, RowSource(embedder=embedder))
    ingest(
        [write(tmp_path / "b.jsonl", record(0, text="Other."))], index, RowSource(embedder=embedder)
    )
    # what it knew of n:0 is older than b
    report = ingest([write(tmp_path / "c.jsonl", record(0))], opened, RowSource(embedder=embedder))
    assert report.written == 1
    fresh = Index.open(index.uri)
    assert fresh.count() == 1
    assert fresh.fetch(["n:0"])[0].passage.text.startswith("We gave")


def test_a_truncated_file_is_kept_as_far_as_it_goes_and_completed_later(
    tmp_path: Path, index: Index, embedder: HashEmbedder
) -> None:
    lines = [record(i, source=str(i**9)) for i in range(2_000)]
    path = write(tmp_path / "a.jsonl.gz", *lines)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1_000])
    report = ingest([path], index, RowSource(embedder=embedder))
    assert [type(f) for f in report.bad_files] == [BadFile]
    assert 0 < report.written == index.count() < 2_000
    assert report.bad_files[0].line == report.written
    path.write_bytes(whole)
    rest = ingest([path], index, RowSource(embedder=embedder))
    assert (rest.written, rest.unchanged) == (2_000 - report.written, report.written)
    assert rest.bad_files == ()
    assert index.count() == 2_000


def test_an_empty_file_is_no_error(tmp_path: Path, index: Index, embedder: HashEmbedder) -> None:
    path = tmp_path / "a.jsonl"
    path.touch()
    assert ingest([path], index, RowSource(embedder=embedder)).good == 0


def test_a_mark_that_cannot_be_written_is_a_typed_error(
    tmp_path: Path, index: Index, embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.jsonl"
    path.touch()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(type(index._table), "merge_insert", full)
    with pytest.raises(IndexFault, match="No space left"):
        ingest([path], index, RowSource(embedder=embedder))


KILLED = """
import sys
from pathlib import Path
from posology.index.build.ingest import ingest
from posology.index.build.rows import RowSource
from posology.index.store import Index
from posology.testing.models.embedder import HashEmbedder

where, corpus = sys.argv[1:]
embedder = HashEmbedder(dim=64, delay=0.4)
index = Index.open_or_create(where, embedder.name, embedder.dim)
source = RowSource(embedder=embedder, batch=10)
ingest([Path(corpus)], index, source, progress=lambda p: print(p.written, flush=True))
"""


@pytest.mark.slow
def test_what_kill_9_interrupts_goes_on_where_it_was(
    tmp_path: Path, index: Index, embedder: HashEmbedder
) -> None:
    lines = [record(i) for i in range(200)]
    lines[55] = "{oops"
    corpus = write(tmp_path / "corpus.jsonl.gz", *lines)
    where = tmp_path / "killed"
    writer = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(where), str(corpus)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert writer.stdout is not None
    with writer.stdout as output:
        while int(output.readline()) < 50:
            pass
        with pytest.raises(IndexLocked):
            ingest([corpus], Index.open(where), RowSource(embedder=embedder))
        time.sleep(0.05)
        writer.send_signal(signal.SIGKILL)
    assert writer.wait() == -signal.SIGKILL

    killed = Index.open(where)
    assert killed.count() == 0  # readers see what is whole
    committed = len(killed.digests([f"n:{i}" for i in range(200)]))
    assert 50 <= committed < 199
    report = ingest([corpus], killed, RowSource(embedder=embedder, batch=10))
    # a batch may have been written without the note that it was: it is found to be unchanged
    assert report.written == embedder.embedded == 199 - committed
    assert report.unchanged == committed
    assert [bad.line for bad in report.bad_records] == [56]

    ingest([corpus], index, RowSource(embedder=embedder))
    ids = [f"n:{i}" for i in range(200) if i != 55]
    assert killed.count() == index.count() == 199
    assert content(killed, ids) == content(index, ids)
    for question in ("aspirin", "metformin 41"):
        vector = embedder.embed_queries([question])[0]
        assert named(killed.bm25(question, 20)) == named(index.bm25(question, 20))
        assert named(killed.dense(vector, 20)) == named(index.dense(vector, 20))


def named(ranking: Ranking) -> set[tuple[float, str]]:
    """Equal scores come in the order of rows, which differs between the two."""
    cut = ranking.hits[-1].score
    return {(round(h.score, 4), h.passage_id) for h in ranking.hits if h.score > cut + 1e-4}


def unit(rows: int, dim: int = 64) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    random = np.random.default_rng(0).normal(size=(rows, dim)).astype(np.float32)
    return np.asarray(random / np.linalg.norm(random, axis=1, keepdims=True))


def test_given_vectors_belong_to_the_lines_that_are_not_blank(
    tmp_path: Path, index: Index, embedder: HashEmbedder
) -> None:
    path = write(tmp_path / "a.jsonl", record(0), "", "{oops", record(1))
    vectors = unit(3)
    np.save(tmp_path / "v.npy", vectors.astype(np.float16))
    for written in (2, 0):
        report = ingest([path], index, RowSource(embedder=embedder), vectors=tmp_path / "v.npy")
        assert report.written == written
    first, second = index.fetch(["n:0", "n:1"])
    assert first.vector == pytest.approx(vectors[0], abs=1e-3)
    assert second.vector == pytest.approx(vectors[2], abs=1e-3)
    assert second.sentence_vectors.shape == (2, 64)
    # without them the embedder's own vectors take their place
    assert ingest([path], index, RowSource(embedder=embedder)).written == 2
    assert index.fetch(["n:0"])[0].vector != pytest.approx(vectors[0], abs=1e-3)


def test_vectors_that_do_not_fit_are_refused_before_anything_is_written(
    tmp_path: Path, index: Index, embedder: HashEmbedder
) -> None:
    path = write(tmp_path / "a.jsonl.gz", record(0), record(1))
    np.save(tmp_path / "v.npy", unit(3))
    with pytest.raises(InputError, match=r"2 records and .* 3 vectors"):
        ingest([path], index, RowSource(embedder=embedder), vectors=tmp_path / "v.npy")
    np.save(tmp_path / "w.npy", unit(2, dim=32))
    with pytest.raises(InputError, match="64"):
        ingest([path], index, RowSource(embedder=embedder), vectors=tmp_path / "w.npy")
    other = write(tmp_path / "b.jsonl", record(2))
    with pytest.raises(InputError, match="2"):
        ingest([path, other], index, RowSource(embedder=embedder), vectors=tmp_path / "v.npy")
    assert index.count() == 0


def test_an_embedder_of_another_name_is_refused(tmp_path: Path, index: Index) -> None:
    other = HashEmbedder(dim=32)
    with pytest.raises(IndexMismatch, match="hash-64"):
        ingest([write(tmp_path / "a.jsonl", record(0))], index, RowSource(embedder=other))
    with pytest.raises(IndexMismatch, match="hash-32"):
        Retriever(index, other)


@pytest.fixture
def filled(tmp_path: Path, index: Index, embedder: HashEmbedder) -> Index:
    fake = record(90, title="aspirin aspirin", text="Aspirin aspirin.", retracted=True)
    ingest(
        [write(tmp_path / "filled.jsonl", *map(record, range(70)), fake)],
        index,
        RowSource(embedder=embedder),
    )
    return index


@pytest.mark.parametrize("mode", ["dense", "bm25", "fused"])
async def test_a_retrieval_holds_every_ranking_and_the_passages_of_the_asked_one(
    filled: Index, embedder: HashEmbedder, mode: str
) -> None:
    query = make_query("Does aspirin help 14 patients?")
    found = await Retriever(filled, embedder).retrieve(query, 5, mode)  # type: ignore[arg-type]
    rankings = {"dense": found.dense, "bm25": found.bm25, "fused": found.fused}
    assert {name: ranking.method for name, ranking in rankings.items()} == {
        name: name for name in rankings
    }
    assert all(len(ranking.hits) == 5 for ranking in rankings.values())
    assert tuple(r.passage.id for r in found.passages) == rankings[mode].ids
    assert found.bm25_rerank.method == "bm25_rerank"
    assert sorted(found.bm25_rerank.ids) == sorted(found.dense.ids)
    assert found.query == query
    assert found.query_vector.shape == (64,)
    assert found.index_version == filled.version
    assert found.bm25.ids == filled.bm25(query.text, 100).top(5).ids
    assert found.dense.ids == filled.dense(found.query_vector, 100).top(5).ids
    assert set(found.fused.ids[:1]) <= {*found.dense.ids, *found.bm25.ids}


async def test_retracted_passages_are_retrieved_only_when_asked_for(
    filled: Index, embedder: HashEmbedder
) -> None:
    retriever = Retriever(filled, embedder)
    query = make_query("aspirin aspirin")
    without = await retriever.retrieve(query, 70)
    assert "n:90" not in {*without.dense.ids, *without.bm25.ids, *without.fused.ids}
    assert (await retriever.retrieve(query, 70, retracted=True)).fused.ids[0] == "n:90"


async def test_small_indices_give_what_they_have(
    tmp_path: Path, index: Index, embedder: HashEmbedder
) -> None:
    retriever = Retriever(index, embedder)
    query = make_query("???")
    nothing = await retriever.retrieve(query, 16)
    assert nothing.passages == ()
    assert nothing.dense.hits == nothing.bm25_rerank.hits == ()
    ingest([write(tmp_path / "a.jsonl", record(0), record(1))], index, RowSource(embedder=embedder))
    assert len((await retriever.retrieve(query, 16)).passages) == 2
    assert (await retriever.retrieve(query, 16, "bm25")).passages == ()


async def test_one_retriever_serves_many_at_once(filled: Index, embedder: HashEmbedder) -> None:
    import anyio

    retriever = Retriever(filled, embedder)
    alone = {topic: await retriever.retrieve(Query(text=topic), 5) for topic in TOPICS}
    together: dict[str, tuple[str, ...]] = {}

    async def ask(topic: str) -> None:
        together[topic] = (await retriever.retrieve(Query(text=topic), 5)).fused.ids

    async with anyio.create_task_group() as group:
        for topic in TOPICS:
            group.start_soon(ask, topic)
    assert together == {topic: found.fused.ids for topic, found in alone.items()}


@pytest.mark.parametrize("k", [0, -1, 1_001])
async def test_k_is_checked(filled: Index, embedder: HashEmbedder, k: int) -> None:
    with pytest.raises(InvalidQuery, match="k must"):
        await Retriever(filled, embedder).retrieve(make_query("aspirin"), k)


async def test_an_error_of_the_embedder_comes_out_as_it_is(filled: Index) -> None:
    class Broken(HashEmbedder):
        def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
            raise RuntimeError("no such device")

    with pytest.raises(RuntimeError, match="no such device"):
        await Retriever(filled, Broken(dim=64)).retrieve(make_query("aspirin"), 3)


async def test_a_retriever_takes_up_what_is_written_meanwhile(
    tmp_path: Path, filled: Index, embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "FRESH", 0.0)
    retriever = Retriever(Index.open(filled.uri), embedder)
    query = make_query("colchicine")
    before = await retriever.retrieve(query, 3, "bm25")
    ingest(
        [
            write(tmp_path / "b.jsonl", record(99, text="Colchicine.")),
        ],
        filled,
        RowSource(embedder=embedder),
    )
    after = await retriever.retrieve(query, 3, "bm25")
    assert before.passages == ()
    assert [r.passage.id for r in after.passages] == ["n:99"]
    assert before.index_version != after.index_version
