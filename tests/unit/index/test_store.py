from __future__ import annotations

import errno
import gc
import json
import os
import shutil
import threading
import weakref
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import lancedb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.errors import IndexFault, IndexLocked, IndexMismatch, IndexMissing
from posology.index import reader as reading
from posology.index import schema, versions
from posology.index.schema import TABLE, own_flags
from posology.index.store import Index
from posology.index.view import View
from posology.testing.models.embedder import HashEmbedder
from posology.types import Growth, Pages, Passage
from tests.support.private_parts import BRANCHES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.unit.index.conftest import MakeRows

ASPIRIN = Passage(
    id="p:1", title="Aspirin", text="Aspirin thins the blood. It is cheap.", year=1999
)
STATIN = Passage(id="p:2", title="Statins", text="Statins lower cholesterol.", mesh=("Statins",))
FAKE = Passage(id="p:3", title="Aspirin cures all", text="Aspirin cures.", retracted=True)

ODD_IDS = (
    "it's",
    'a "b"',
    "back\\slash",
    "日本",
    "per%cent",
    "null",
    "a, b",
    "'; DROP TABLE x; --",
)


def test_passages_come_back_in_the_order_asked_for(index: Index, make_rows: MakeRows) -> None:
    index.upsert(make_rows([ASPIRIN, STATIN, FAKE]))
    found = index.fetch(["p:3", "p:1"])
    assert [retrieved.passage for retrieved in found] == [
        replace(FAKE, flags=own_flags(FAKE)),
        ASPIRIN,
    ]
    assert [s.of(ASPIRIN.text) for s in found[1].sentences] == [
        "Aspirin thins the blood.",
        "It is cheap.",
    ]
    assert found[1].sentence_vectors.shape == (2, 64)


def test_what_is_not_there_is_named(index: Index, make_rows: MakeRows) -> None:
    index.upsert(make_rows([ASPIRIN]))
    with pytest.raises(IndexFault, match=r"index@\d+ does not hold p:9"):
        index.fetch(["p:1", "p:9"])
    assert index.fetch([]) == ()


def test_an_empty_index_answers_nothing(index: Index, embedder: HashEmbedder) -> None:
    vector = embedder.embed_queries(["aspirin"])[0]
    for _ in range(2):
        assert index.count() == 0
        assert index.dense(vector, 5).ids == ()
        assert index.bm25("aspirin", 5).ids == ()
        index.finish()


@pytest.mark.parametrize("finished", [False, True])
def test_what_is_written_is_found_before_and_after_finishing(
    index: Index, embedder: HashEmbedder, make_rows: MakeRows, *, finished: bool
) -> None:
    index.upsert(make_rows([ASPIRIN, STATIN]))
    if finished:
        index.finish(exact_from=1)
    vector = embedder.embed_queries(["Statins lower cholesterol"])[0]
    dense = index.dense(vector, 5)
    assert dense.ids == ("p:2", "p:1")
    expected = float(vector @ index.fetch(["p:2"])[0].vector)
    assert dense.hits[0].score == pytest.approx(expected, abs=1e-5)
    assert index.bm25("Does cholesterol fall?", 5).ids == ("p:2",)
    assert index.bm25("statin", 5).ids == ("p:2",)
    assert index.bm25("ASPIRIN", 5).ids == ("p:1",)


@pytest.mark.parametrize("finished", [False, True])
def test_an_upsert_replaces_and_nothing_stale_is_found(
    index: Index, embedder: HashEmbedder, make_rows: MakeRows, *, finished: bool
) -> None:
    index.upsert(make_rows([ASPIRIN, STATIN]))
    index.finish(exact_from=1)
    index.upsert(make_rows([replace(ASPIRIN, title="Heparin", text="Heparin is injected.")]))
    if finished:
        index.finish(exact_from=1)
    assert index.count() == 2
    assert index.bm25("aspirin", 5).ids == ()
    assert index.bm25("heparin", 5).ids == ("p:1",)
    old = embedder.embed_queries(["Aspirin Aspirin thins the blood. It is cheap."])[0]
    assert max(hit.score for hit in index.dense(old, 5).hits) < 0.6
    assert index.fetch(["p:1"])[0].passage.text == "Heparin is injected."


def test_of_two_rows_with_one_id_the_later_wins(index: Index, make_rows: MakeRows) -> None:
    index.upsert(make_rows([ASPIRIN, STATIN, replace(ASPIRIN, text="Later.")]))
    assert index.count() == 2
    assert index.fetch(["p:1"])[0].passage.text == "Later."


def test_odd_ids_are_only_ids(index: Index, make_rows: MakeRows) -> None:
    index.upsert(make_rows(replace(STATIN, id=i) for i in ODD_IDS))
    assert [r.passage.id for r in index.fetch(ODD_IDS)] == list(ODD_IDS)
    assert set(index.digests([*ODD_IDS, "other"])) == set(ODD_IDS)


@pytest.mark.parametrize("finished", [False, True])
def test_retracted_passages_must_be_asked_for(
    index: Index, embedder: HashEmbedder, make_rows: MakeRows, *, finished: bool
) -> None:
    index.upsert(make_rows([ASPIRIN, STATIN, FAKE]))
    if finished:
        index.finish(exact_from=1)
    vector = embedder.embed_queries(["Aspirin cures"])[0]
    assert "p:3" not in index.dense(vector, 5).ids
    assert "p:3" not in index.bm25("aspirin cures", 5).ids
    assert index.dense(vector, 5, retracted=True).ids[0] == "p:3"
    assert index.bm25("aspirin cures", 5, retracted=True).ids[0] == "p:3"
    # the others fill its place
    assert index.dense(vector, 2).ids == ("p:1", "p:2")


@given(st.text() | st.text("\"\\(){}[]+-~*?:^&|!/' aspirin ANDORNOT\0", min_size=1))
def test_no_text_is_a_syntax_error(index: Index, make_rows: MakeRows, text: str) -> None:
    if not index.count():
        index.upsert(make_rows([ASPIRIN, STATIN]))
        index.finish()
    assert set(index.bm25(text, 3).ids) <= {"p:1", "p:2"}


def test_a_lone_surrogate_is_searched_for_like_any_text(index: Index, make_rows: MakeRows) -> None:
    index.upsert(make_rows([ASPIRIN]))
    assert index.bm25("aspirin \ud800", 3).ids == ("p:1",)


def test_it_opens_as_it_was_made(index: Index, make_rows: MakeRows) -> None:
    index.upsert(make_rows([ASPIRIN, FAKE]))
    index.finish(exact_from=1)
    info = Index.open(index.uri).info()
    assert info == index.info()
    assert (info.passages, info.retracted, info.embedder, info.dim) == (2, 1, "hash-64", 64)
    assert info.version.startswith("index@")
    assert info.vector_index == "IvfFlat"


def test_a_version_is_a_version(index: Index, make_rows: MakeRows) -> None:
    index.upsert(make_rows([ASPIRIN]))
    view = index.view()
    index.upsert(make_rows([STATIN]))
    index.finish()
    assert view.count() == 1
    assert view.bm25("statins", 5).ids == ()
    assert index.count() == 2
    assert index.view().number > view.number


def test_a_reader_takes_up_what_another_writes(
    index: Index, make_rows: MakeRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "FRESH", 3_600.0)
    reader = Index.open(index.uri)
    assert reader.count() == 0
    index.upsert(make_rows([ASPIRIN]))
    assert reader.count() == 0
    monkeypatch.setattr(reading, "FRESH", -1.0)
    assert reader.count() == 1


def test_replaced_versions_leave_the_caches(
    index: Index, make_rows: MakeRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "FRESH", -1.0)
    monkeypatch.setattr(reading, "SPARE", 0)
    reader = Index.open(index.uri)
    held: list[int] = []
    first: View | None = None
    for number in range(12):
        index.upsert(make_rows([replace(ASPIRIN, title=f"Aspirin {number}")]))
        index.finish()
        view = reader.view()
        first = first or view
        assert view.fetch(["p:1"])[0].passage.title == f"Aspirin {number}"
        assert view.bm25("aspirin", 5).ids == ("p:1",)
        held.append(reader.session.size_bytes)
    assert max(held) < 4 * held[0]
    # open views keep reading, and earlier versions are found by the new connection
    assert first is not None
    assert first.fetch(["p:1"])[0].passage.title == "Aspirin 0"
    assert reader.view_at(first.number).fetch(["p:1"])[0].passage.title == "Aspirin 0"


def test_caches_before_go_with_the_connection(
    index: Index, make_rows: MakeRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        index.upsert(make_rows([replace(ASPIRIN, title=f"Aspirin {number}")]))
    oldest, middle, newest = (one.number for one in Index.open(index.uri).versions()[-3:])
    reader = Index.open(index.uri)
    reader.view_at(middle)
    before = weakref.ref(reader.view())
    monkeypatch.setattr(reading, "SPARE", -(1 << 40))
    reader.view_at(oldest)
    monkeypatch.undo()
    assert reader.view().number == newest
    assert before() is None


def test_a_dropped_index_goes_at_once_with_its_caches(index: Index, make_rows: MakeRows) -> None:
    gc.collect()
    gc.disable()
    try:
        writer = Index.open(index.uri)
        writer.upsert(make_rows([ASPIRIN]))
        writer.finish()
        assert writer.view().count() == 1
        gone = weakref.ref(writer.connection)
        del writer
        assert gone() is None
    finally:
        gc.enable()


class _Branches:
    """A table that counts how often LanceDB lists its branches."""

    def __init__(self, names: Sequence[str]) -> None:
        self.branches = self
        self.lists = 0
        self._names = names

    def list(self) -> Sequence[str]:
        self.lists += 1
        return self._names


def test_versions_of_a_folder_are_listed_without_reading_a_file_of_each(
    index: Index, make_rows: MakeRows
) -> None:
    table = lancedb.connect(index.uri).open_table(TABLE)
    table.branches.create("growing-1-20261126T120000000001Z-1-3", from_version=1)
    for word in ("one", "two"):
        index.upsert(make_rows([replace(ASPIRIN, text=f"Aspirin {word}.")]))
        index.finish()
    by_lance = _Branches(list(table.branches.list()))
    by_name = _Branches([])
    assert versions.published(by_lance, "s3://bucket/index")[0] == versions.Published(
        number=1,
        at=datetime(2026, 11, 26, 12, 0, 0, 1, tzinfo=UTC),
        branch="growing-1-20261126T120000000001Z-1-3",
        growth=Growth(done=1, total=3),
    )
    known = versions.published(by_lance, "s3://bucket/index")
    assert versions.published(by_name, index.uri) == known, BRANCHES.changed
    assert (by_name.lists, by_lance.lists) == (0, 2), BRANCHES.changed


def test_branches_that_are_not_where_they_were_are_listed_by_lancedb(index: Index) -> None:
    table = lancedb.connect(index.uri).open_table(TABLE)
    known = index.versions()
    moved = _Branches(list(table.branches.list()))
    refs = Path(index.uri, f"{TABLE}.lance", "_refs")
    (refs / "branches").rename(refs / "elsewhere")
    assert versions.published(moved, index.uri) == known
    assert moved.lists == 1


def test_none_is_said_with_what_to_do(tmp_path: Path) -> None:
    for place in (tmp_path / "none", tmp_path):
        with pytest.raises(IndexMissing, match="posology ingest"):
            Index.open(place)
    assert list(tmp_path.iterdir()) == []


def test_a_second_is_not_made_over_the_first(index: Index) -> None:
    with pytest.raises(IndexFault, match="already"):
        Index.create(index.uri, "other", 3)
    assert Index.open_or_create(index.uri, "hash-64", 64).meta == index.meta


def test_a_place_that_cannot_hold_one_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for place in (tmp_path / "file", tmp_path / "file" / "index"):
        with pytest.raises(IndexMissing):
            Index.open(place)
        with pytest.raises(IndexFault, match="cannot be written"):
            Index.create(place, "hash-64", 64)


def test_another_embedder_is_refused(index: Index) -> None:
    with pytest.raises(IndexMismatch, match=r"made with hash-64 .* not with other"):
        Index.open_or_create(index.uri, "other", 64)


@pytest.mark.parametrize("metadata", [None, {b"posology": b"{}"}, {b"posology": b"!"}])
def test_a_strangers_table_is_refused(tmp_path: Path, metadata: dict[bytes, bytes] | None) -> None:
    import lancedb

    schema = pa.schema([("id", pa.string())], metadata=metadata)
    lancedb.connect(tmp_path).create_table(TABLE, schema=schema)
    with pytest.raises(IndexMismatch, match="build a new"):
        Index.open(tmp_path)


def test_another_format_is_refused(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "FORMAT", 99)
    with pytest.raises(IndexMismatch, match="build a new"):
        Index.open(index.uri)


def test_an_index_without_pages_is_read_and_gets_them_when_it_is_written(
    index: Index, make_rows: MakeRows
) -> None:
    index.upsert(make_rows([ASPIRIN]))
    # as the tables of before were
    index.connection.open_table(TABLE).drop_columns(["pages", "unread_pages"])
    old = Index.open(index.uri)
    assert old.newest().fetch(["p:1"])[0].passage == ASPIRIN
    paged = replace(STATIN, pages=Pages(numbers=(3, 4), starts=(0, 8)), unread_pages=2)
    old.upsert(make_rows([paged]))
    found = Index.open(index.uri).newest().fetch(["p:1", "p:2"])
    assert [one.passage for one in found] == [ASPIRIN, paged]


def test_a_damaged_index_is_a_typed_error(index: Index) -> None:
    for manifest in (Path(index.uri) / f"{TABLE}.lance" / "_versions").iterdir():
        manifest.write_bytes(b"damaged")
    with pytest.raises(IndexFault, match="cannot be read"):
        Index.open(index.uri)


def test_lost_data_files_are_a_typed_error(
    index: Index, embedder: HashEmbedder, make_rows: MakeRows
) -> None:
    index.upsert(make_rows([ASPIRIN, STATIN]))
    index.finish()
    rows = make_rows([replace(STATIN, text="Statins again.")])
    vector = embedder.embed_queries(["aspirin"])[0]
    opened = Index.open(index.uri)
    for kind in ("data", "_indices"):
        shutil.rmtree(Path(index.uri) / f"{TABLE}.lance" / kind)
    for use in (
        lambda: opened.dense(vector, 5),
        lambda: opened.bm25("aspirin", 5),
        lambda: opened.fetch(["p:1"]),
        lambda: opened.digests(["p:1"]),
        lambda: opened.view().take(["0"]),
        lambda: opened.upsert(rows),
        opened.warm,
    ):
        with pytest.raises(IndexFault, match="build a new"):
            use()


@pytest.mark.parametrize("method", ["merge_insert", "optimize"])
def test_a_full_disk_is_a_typed_error(
    index: Index, make_rows: MakeRows, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(type(index._table), method, full)
    writes = {
        "merge_insert": (lambda: index.upsert(make_rows([ASPIRIN])),),
        "optimize": (index.compact, lambda: index.finish(exact_from=0)),
    }
    for write in writes[method]:
        with pytest.raises(IndexFault, match="No space left"):
            write()


def test_an_upsert_builds_on_what_others_wrote_since_it_was_opened(
    index: Index, make_rows: MakeRows
) -> None:
    other = Index.open(index.uri)
    assert index.digests(["p:1"]) == {}
    other.upsert(make_rows([ASPIRIN]))
    changed = replace(ASPIRIN, text="Aspirin is bitter.")
    with index.lock:
        assert set(index.digests(["p:1"])) == {"p:1"}
        index.upsert(make_rows([changed]))
    assert index.count() == 1
    assert index.fetch(["p:1"])[0].passage == changed


def test_a_lock_is_free_again_when_the_newest_version_cannot_be_read(
    index: Index, make_rows: MakeRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_: object) -> None:
        raise RuntimeError("no such version")

    with monkeypatch.context() as patched:
        patched.setattr(type(index._table), "checkout_latest", gone)
        with pytest.raises(IndexFault, match="no such version"):
            index.upsert(make_rows([ASPIRIN]))
    Index.open(index.uri).upsert(make_rows([ASPIRIN]))
    index.upsert(make_rows([STATIN]))
    assert index.count() == 2


def test_a_name_that_is_too_long_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(IndexFault):
        Index.open(tmp_path / ("x" * 300))
    with pytest.raises(IndexFault):
        Index.open_or_create(tmp_path / ("x" * 300), "hash-64", 64)


def test_only_one_writes(index: Index, make_rows: MakeRows) -> None:
    other = Index.open(index.uri)
    with index.lock:
        index.upsert(make_rows([ASPIRIN]))
        with pytest.raises(IndexLocked, match="another process"):
            other.upsert(make_rows([STATIN]))
        with pytest.raises(IndexLocked):
            other.finish()
    other.upsert(make_rows([STATIN]))
    assert other.count() == 2


def test_only_one_thread_writes(index: Index) -> None:
    failures: list[Exception] = []

    def write() -> None:
        try:
            index.finish()
        except IndexLocked as error:
            failures.append(error)

    with index.lock:
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
    assert len(failures) == 1


def test_a_forked_process_is_told_to_open_it_itself(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(IndexFault, match="forked"):
        index.view()


@pytest.mark.parametrize(
    ("approximate_from", "kind"),
    [pytest.param(1_000, "IvfPq", marks=pytest.mark.slow), (10**9, "IvfFlat")],
)
def test_both_vector_indices_find_what_reading_all_finds(
    index: Index, approximate_from: int, kind: str
) -> None:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(1_500, 64)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    write_vectors(index, vectors[:1_400])
    index.finish(exact_from=1_000, approximate_from=approximate_from)
    # what is written later is not in the index yet, and is found too
    write_vectors(index, vectors[1_400:], first=1_400)
    assert index.info().vector_index == kind
    queries = random.normal(size=(50, 64)).astype(np.float32)
    found = 0
    for query in queries / np.linalg.norm(queries, axis=1, keepdims=True):
        exact = {f"v:{i}" for i in np.argsort(-(vectors @ query))[:10]}
        found += len(exact & set(index.dense(query, 10).ids))
    assert found / 500 >= (1.0 if kind == "IvfFlat" else 0.9)


def write_vectors(index: Index, vectors: np.ndarray, *, first: int = 0) -> None:
    from posology.index.schema import Row
    from posology.types import Encoded

    none = np.zeros((0, vectors.shape[1]), dtype=np.float32)
    index.upsert(
        [
            Row(
                passage=Passage(id=f"v:{first + i}", text="x"),
                sentences=(),
                encoded=Encoded(vector=vector, sentence_vectors=none),
                digest=json.dumps(i),
            )
            for i, vector in enumerate(vectors)
        ]
    )


def test_an_index_of_before_authors_is_read_and_written(
    index: Index, make_rows: MakeRows, tmp_path: Path
) -> None:
    index.upsert(make_rows([ASPIRIN, STATIN]))
    index.connection.open_table(TABLE).drop_columns(["authors"])
    old = Index.open(tmp_path / "index")
    with old.staged():
        pass
    before = old.view()
    assert [one.passage for one in before.fetch(["p:1", "p:2"])] == [ASPIRIN, STATIN]
    signed = replace(STATIN, authors=("Doe, A", "Salt Study Group"))
    old.upsert(make_rows([signed]))
    assert [one.passage for one in old.fetch(["p:1", "p:2"])] == [ASPIRIN, signed]
    again = Index.open(tmp_path / "index")
    again.upsert(make_rows([replace(ASPIRIN, authors=("Roe, B",))]))
    assert again.fetch(["p:1"])[0].passage.authors == ("Roe, B",)
    # the version from before is still read
    assert before.fetch(["p:2"])[0].passage == STATIN
