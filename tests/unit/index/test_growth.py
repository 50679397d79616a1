"""A first ingest, read while it runs: what readers see, what they are told, and how many versions it makes."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from posology.index import reader, versions
from posology.index.build import pace
from posology.index.build.ingest import ingest
from posology.index.build.pace import PUBLISH_RECORDS, Pace
from posology.index.build.report import IngestProgress, Tally
from posology.index.build.rows import RowSource
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.query import make_query
from posology.testing.models.embedder import HashEmbedder
from posology.types import Growth

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "FRESH", -1.0)


def write(path: Path, numbers: range, text: str = "We gave aspirin to {} patients.") -> Path:
    rows = (
        {"id": f"n:{i}", "title": f"Aspirin, part {i}", "text": text.format(i)} for i in numbers
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_readers_see_each_commit_of_a_first_ingest_and_how_far_it_is(
    tmp_path: Path, index: Index, embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "PUBLISH_RECORDS", 3)
    other = Index.open(index.uri)
    seen: list[tuple[int, Growth | None]] = []

    def look(_: IngestProgress) -> None:
        seen.append((other.count(), other.growth))

    path = write(tmp_path / "a.jsonl", range(10))
    source = RowSource(embedder=embedder, batch=4)
    ingest([path], index, source, total=10, progress=look)
    assert seen[:2] == [(4, Growth(done=4, total=10)), (8, Growth(done=8, total=10))]
    assert (other.count(), other.growth) == (10, None)
    assert other.info().growth is None


def test_rows_are_written_in_time_also_within_a_batch(
    tmp_path: Path, index: Index, embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "COMMIT_SECONDS", 0.0)
    other = Index.open(index.uri)
    seen: list[int] = []
    path = write(tmp_path / "a.jsonl", range(5))
    ingest(
        [path],
        index,
        RowSource(embedder=embedder),
        total=5,
        row=lambda: seen.append(other.count()),
    )
    # each row is written after it is counted
    assert seen == [0, 1, 2, 3, 4]
    assert (other.count(), other.growth) == (5, None)


def test_a_later_ingest_is_seen_at_its_end_together(
    tmp_path: Path, index: Index, embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "PUBLISH_RECORDS", 1)
    ingest([write(tmp_path / "a.jsonl", range(3))], index, RowSource(embedder=embedder), total=3)
    other = Index.open(index.uri)
    seen: list[int] = []
    again = write(tmp_path / "b.jsonl", range(2, 9), text="Later, {} had it.")
    ingest(
        [again],
        index,
        RowSource(embedder=embedder, batch=2),
        total=7,
        progress=lambda _: seen.append(other.count()),
    )
    assert set(seen) == {3}
    assert (other.count(), other.growth) == (9, None)


def test_after_a_crash_readers_are_still_told_until_a_run_completes_it(
    tmp_path: Path, index: Index, embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "PUBLISH_RECORDS", 1)
    path = write(tmp_path / "a.jsonl", range(6))

    def crash(now: IngestProgress) -> None:
        if now.written == 4:
            raise KeyboardInterrupt

    source = RowSource(embedder=embedder, batch=2)
    with pytest.raises(KeyboardInterrupt):
        ingest([path], index, source, total=6, progress=crash)
    other = Index.open(index.uri)
    assert (other.count(), other.growth) == (4, Growth(done=4, total=6))
    assert "4 of 6" in (other.info().growth or "")
    report = ingest([path], Index.open(index.uri), source, total=6)
    assert (report.written, report.unchanged) == (2, 4)
    assert (other.count(), other.growth) == (6, None)


async def test_what_is_retrieved_says_how_far_the_index_was(
    tmp_path: Path, index: Index, embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever = Retriever(Index.open(index.uri), embedder)
    query = make_query("aspirin")
    empty = await retriever.retrieve(query, k=3)
    assert (empty.passages, empty.growth) == ((), Growth(done=0))
    monkeypatch.setattr(pace, "PUBLISH_RECORDS", 1)

    def crash(_: IngestProgress) -> None:
        raise KeyboardInterrupt

    path = write(tmp_path / "a.jsonl", range(6))
    with pytest.raises(KeyboardInterrupt):
        ingest([path], index, RowSource(embedder=embedder, batch=2), total=6, progress=crash)
    growing = await retriever.retrieve(query, k=3)
    assert growing.growth == Growth(done=2, total=6)
    ingest([path], Index.open(index.uri), RowSource(embedder=embedder), total=6)
    whole = await retriever.retrieve(query, k=3)
    assert whole.growth is None
    # an answer from the growing index can be replayed for a while
    before = await retriever.retrieve(query, k=3, version=growing.index_version)
    assert before.growth == Growth(done=2, total=6)
    assert [p.passage.id for p in before.passages] == [p.passage.id for p in growing.passages]


def test_versions_of_a_growing_index_are_kept_for_an_hour_only(
    tmp_path: Path, index: Index, embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "PUBLISH_RECORDS", 1)
    path = write(tmp_path / "a.jsonl", range(4))
    ingest([path], index, RowSource(embedder=embedder, batch=2), total=4)
    kinds = [one.growth for one in index.versions()]
    assert kinds == [None, Growth(done=2, total=4), Growth(done=4, total=4), None]
    monkeypatch.setattr(versions, "LEAST", timedelta(0))
    index.finish()
    # the empty first version is kept like every complete one; the last is what the removal of files left
    assert [one.growth for one in index.versions()] == [None, None, None]


def test_the_number_of_versions_grows_with_the_logarithm_of_the_index() -> None:
    published: list[Growth] = []

    class Recorder:
        def publish(self, growth: Growth) -> None:
            published.append(growth)

    tally = Tally()
    paced = Pace(index=Recorder(), tally=tally, total=1_000_000, clock=lambda: 0.0)  # type: ignore[arg-type]
    for _ in range(0, 1_000_000, 512):
        tally.add(written=512)
        paced.end()
    assert published[0].done == 512
    assert all(b.done - a.done >= PUBLISH_RECORDS for a, b in pairwise(published))
    assert 100 < len(published) < 300
    assert published[-1].done > 0.97 * 1_000_000


def test_slow_rows_are_committed_by_the_clock() -> None:
    now = [0.0]
    upserted: list[int] = []
    shown: list[int] = []

    class Recorder:
        def upsert(self, rows: list[object]) -> None:
            upserted.append(len(rows))

        def publish(self, growth: Growth) -> None:
            shown.append(growth.done)

    paced = Pace(index=Recorder(), tally=Tally(), total=100, clock=lambda: now[0])  # type: ignore[arg-type]
    rows: list[object] = []
    for _ in range(12):
        now[0] += 5.0
        rows.append(object())
        paced.take(rows)  # type: ignore[arg-type]
    assert upserted == [4, 4, 4]
    assert shown == [4, 8, 12]
    assert rows == []
