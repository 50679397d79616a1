"""An index that is made anew from a folder: what goes, what stays, what is encoded, and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from posology.errors import IndexUnfinished, SyncRefused
from posology.index import reader as reading
from posology.index.build.ingest import ingest
from posology.index.build.rows import RowSource
from posology.index.store import Index
from posology.index.sync.prospect import SURVEY, prospect
from posology.index.sync.rebuild import rebuild
from posology.index.sync.report import SyncProgress
from posology.index.sync.sync import sync
from posology.testing.models.embedder import HashEmbedder
from tests.support.pubmed_files import Citation, name, write
from tests.support.sync import Crash, citations, content, flags, literature, names, texts


def anew(folder: Path, where: Path, embedder: HashEmbedder) -> Index:
    """An index that was built from this folder alone, by applying its files."""
    made = Index.create(where, embedder.name, embedder.dim)
    sync(folder, made, RowSource(embedder=embedder))
    return made


def test_the_next_year_s_baseline_takes_the_place_of_the_old_one(
    folder: Path, index: Index, embedder: HashEmbedder, tmp_path: Path
) -> None:
    write(folder, 1, citations(*range(1, 31)))
    write(folder, 2, [Citation(pmid=90, text="We retract it.", retracts=(1, 2))])
    old = sync(folder, index, RowSource(embedder=embedder))
    before = texts(index)
    following = tmp_path / "2027"
    # what was retracted by a record that is gone, and by one that says less, is shown as it was; 30 and 90 are gone
    write(following, 1, citations(*range(1, 25)), year=27)
    write(following, 2, [*citations(*range(25, 30)), *citations(31)], year=27)
    write(
        following,
        3,
        [*citations(4, text="Revised."), Citation(pmid=91, text="We worry.", concerns=(3,))],
        year=27,
    )
    with pytest.raises(SyncRefused, match="--rebuild"):
        sync(following, index, RowSource(embedder=embedder))
    embedded = embedder.embedded
    report = rebuild(following, index, RowSource(embedder=embedder))
    assert embedder.embedded - embedded < 10
    assert names(report) == [name(number, 27) for number in (1, 2, 3)]
    assert report.rebuilt is not None
    told = report.rebuilt
    assert (told.passages, told.new, told.changed, told.unchanged) == (31, 2, 1, 28)
    assert (told.removed, told.published) == (2, 31)
    assert told.forgotten == (name(1), name(2))
    done = report.ingest
    assert (done.written, done.unchanged, done.replaced, done.removed) == (3, 28, 1, 2)
    assert done.warned == 3
    assert content(index) == content(anew(following, tmp_path / "other", embedder))
    assert flags(index)["pmid:1"] == (False, False)
    assert flags(index)["pmid:3"] == (False, True)
    # numbers go on, and old versions are read as ever
    assert report.version > old.version
    view = index.view_at(old.version)
    assert {r.passage.id: r.passage.text for r in view.fetch(sorted(before))} == before
    assert not (tmp_path / "index" / SURVEY).exists()
    # from then on it is kept current as any other
    assert sync(following, index, RowSource(embedder=embedder)).nothing
    write(following, 4, citations(40), year=27)
    assert names(sync(following, index, RowSource(embedder=embedder))) == [name(4, 27)]
    assert index.info().files == 4


def test_nothing_that_is_the_same_is_encoded_again_or_published_again(
    folder: Path, index: Index, embedder: HashEmbedder, tmp_path: Path
) -> None:
    literature(folder)
    sync(folder, index, RowSource(embedder=embedder))
    before, embedded, version = content(index), embedder.embedded, index.version
    report = rebuild(folder, index, RowSource(embedder=embedder))
    assert report.nothing
    assert (report.plan.done, report.index) == (4, version)
    assert (embedder.embedded, content(index), index.version) == (embedded, before, version)
    (folder / "a.jsonl").write_text('{"id": "a", "text": "A."}')
    rebuild(folder, index, RowSource(embedder=embedder))
    assert embedder.embedded - embedded <= 2  # the passage and its sentence
    assert content(index) == content(anew(folder, tmp_path / "other", embedder))


def test_what_only_a_revised_file_s_old_content_did_is_undone(
    folder: Path, index: Index, embedder: HashEmbedder
) -> None:
    write(folder, 1, citations(*range(1, 21)))
    write(folder, 2, citations(30), deleted=[1])
    sync(folder, index, RowSource(embedder=embedder))
    assert "pmid:1" not in index.ids()
    write(folder, 2, citations(31))
    sync(folder, index, RowSource(embedder=embedder))
    assert {"pmid:30", "pmid:31"} <= set(index.ids())
    rebuild(folder, index, RowSource(embedder=embedder))
    assert set(index.ids()) == {f"pmid:{i}" for i in [*range(1, 21), 31]}


def test_what_ingest_put_there_goes_and_can_be_ingested_again(
    folder: Path, index: Index, embedder: HashEmbedder, tmp_path: Path
) -> None:
    write(folder, 1, citations(*range(1, 21)))
    sync(folder, index, RowSource(embedder=embedder))
    notes = tmp_path / "notes.jsonl"
    rows = [{"id": f"n#{i}", "text": f"Note {i}.", "parent": "n"} for i in range(1, 6)]
    # an article of which the folder holds parts, too: its id among those that go takes nothing else along
    rows += [{"id": "pmid:1", "text": "Ours."}, {"id": "n", "text": "All notes."}]
    notes.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "a.jsonl").write_text('{"id": "n#7", "text": "Kept.", "parent": "n"}')
    assert ingest([notes], index, RowSource(embedder=embedder)).written == 7
    with pytest.raises(SyncRefused, match=r"6 of the 26 passages .* 10%.*--allow-removals"):
        rebuild(folder, index, RowSource(embedder=embedder))
    assert index.count() == 26
    report = rebuild(folder, index, RowSource(embedder=embedder), allow_removals=True)
    assert report.rebuilt is not None
    assert report.rebuilt.ingested == (str(notes.resolve()),)
    assert report.rebuilt.removed == 6
    assert texts(index)["pmid:1"] == "Aspirin helps. Number 1."
    assert texts(index)["n#7"] == "Kept."
    assert index.count() == 21
    assert ingest([notes], index, RowSource(embedder=embedder)).written == 7


def test_where_too_much_would_go_nothing_is_written(
    folder: Path, index: Index, embedder: HashEmbedder, tmp_path: Path
) -> None:
    write(folder, 1, citations(*range(1, 21)))
    write(folder, 2, citations(21, 22, 23))
    sync(folder, index, RowSource(embedder=embedder))
    before, version = content(index), index.version
    less = tmp_path / "less"
    write(less, 1, citations(*range(1, 21), text="Other."))
    embedded = embedder.embedded
    with pytest.raises(SyncRefused, match="--allow-removals") as refused:
        rebuild(less, index, RowSource(embedder=embedder), allow_gaps=True)
    assert refused.value.files == (name(2),)
    assert (embedder.embedded, index.version, content(index)) == (embedded, version, before)
    # the index is not in the middle of anything
    assert sync(folder, index, RowSource(embedder=embedder)).nothing
    report = rebuild(
        less, index, RowSource(embedder=embedder), allow_gaps=True, allow_removals=True
    )
    assert report.ingest.removed == 3


def test_what_an_earlier_run_took_out_counts_as_long_as_readers_see_it(
    folder: Path, index: Index, embedder: HashEmbedder
) -> None:
    write(folder, 1, citations(*range(1, 41)))
    sync(folder, index, RowSource(embedder=embedder))
    write(folder, 1, citations(*range(4, 41), 50, text="Aspirin helps."))

    def crash(now: SyncProgress) -> None:
        if not now.reading:
            raise Crash

    with pytest.raises(Crash):
        rebuild(folder, index, RowSource(embedder=embedder), progress=crash)
    index.connection.open_table("passages").delete("id IN ('pmid:1', 'pmid:2', 'pmid:3')")
    write(folder, 1, citations(*range(6, 41), 50))
    with pytest.raises(SyncRefused, match="5 of the 40"):
        rebuild(folder, index, RowSource(embedder=embedder))
    write(folder, 1, citations(*range(5, 41), 50))
    report = rebuild(folder, index, RowSource(embedder=embedder))
    assert report.rebuilt is not None
    assert (report.rebuilt.removed, index.count()) == (4, 37)


def test_a_file_that_cannot_be_read_to_its_end_leaves_all_as_it_is(
    folder: Path, index: Index, embedder: HashEmbedder
) -> None:
    write(folder, 1, citations(*range(1, 31)))
    sync(folder, index, RowSource(embedder=embedder))
    before, version = content(index), index.version
    write(folder, 1, citations(*range(1, 30)))
    cut = write(folder, 2, citations(41, 42), md5=False)
    whole = cut.read_bytes()
    xml = gzip.decompress(whole)
    for broken in (
        whole[:-9],
        gzip.compress(xml[: xml.rindex(b"<PubmedArticle>") + 40]),
    ):
        cut.write_bytes(broken)
        report = rebuild(folder, index, RowSource(embedder=embedder))
        assert (report.applied, report.rebuilt) == ((), None)
        assert report.waiting == (name(1), name(2))
        assert [Path(f.path).name for f in report.ingest.bad_files] == [name(2)]
        assert (index.version, content(index)) == (version, before)
    cut.write_bytes(whole)
    rebuild(folder, index, RowSource(embedder=embedder))
    assert set(index.ids()) == {f"pmid:{i}" for i in [*range(1, 30), 41, 42]}


def test_bad_records_are_told_also_by_a_run_that_goes_on(
    folder: Path, index: Index, embedder: HashEmbedder
) -> None:
    remarked = Citation(pmid=3, text="Aged &lt;img src='a.gif'/&gt; 65.")
    write(folder, 1, [*citations(1), Citation(pmid=2, text=""), remarked])
    cut = write(folder, 2, citations(4), md5=False)
    whole = cut.read_bytes()
    xml = gzip.decompress(whole)
    cut.write_bytes(gzip.compress(xml[:-9]))
    assert rebuild(folder, index, RowSource(embedder=embedder)).waiting
    cut.write_bytes(whole)
    report = rebuild(folder, index, RowSource(embedder=embedder))
    assert [(b.record, Path(b.path).name) for b in report.ingest.bad_records] == [
        ("pmid:2", name(1))
    ]
    assert report.ingest.remarked == 1
    assert [one.record for one in report.ingest.remarks] == ["pmid:3"]
    assert [file.bad for file in report.applied] == [1, 0]
    assert sorted(index.ids()) == ["pmid:1", "pmid:3", "pmid:4"]


def test_until_a_rebuild_is_finished_nothing_else_is_written(
    folder: Path,
    index: Index,
    embedder: HashEmbedder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "FRESH", -1.0)
    write(folder, 1, citations(*range(1, 31)))
    sync(folder, index, RowSource(embedder=embedder))
    before = content(index)
    write(folder, 1, citations(*range(2, 31), text="Revised."))

    def crash(now: SyncProgress) -> None:
        if now.ingest.written >= 10:
            raise Crash

    with pytest.raises(Crash):
        rebuild(folder, index, RowSource(embedder=embedder, batch=5), progress=crash)
    reader = Index.open(index.uri)
    assert content(reader) == before
    assert reader.info().unfinished == (name(1),)
    with pytest.raises(SyncRefused, match="--rebuild"):
        sync(folder, index, RowSource(embedder=embedder))
    notes = tmp_path / "a.jsonl"
    notes.write_text('{"id": "a", "text": "A."}')
    with pytest.raises(IndexUnfinished, match="--rebuild"):
        ingest([notes], index, RowSource(embedder=embedder))
    embedded = embedder.embedded
    report = rebuild(folder, Index.open(index.uri), RowSource(embedder=embedder, batch=5))
    assert report.ingest.written == 19
    assert embedder.embedded - embedded < 19 * 4
    assert texts(reader) == {f"pmid:{i}": f"Revised. Number {i}." for i in range(2, 31)}
    assert ingest([notes], index, RowSource(embedder=embedder)).written == 1


def test_a_sync_that_was_broken_off_is_no_hindrance(
    folder: Path, index: Index, embedder: HashEmbedder, tmp_path: Path
) -> None:
    write(folder, 1, citations(*range(1, 31)))
    sync(folder, index, RowSource(embedder=embedder))
    write(folder, 2, citations(*range(1, 31), text="Never finished."))

    def crash(now: SyncProgress) -> None:
        raise Crash

    with pytest.raises(Crash):
        sync(folder, index, RowSource(embedder=embedder, batch=4), progress=crash)
    (folder / name(2)).unlink()
    with pytest.raises(SyncRefused, match="--rebuild"):
        sync(folder, index, RowSource(embedder=embedder))
    rebuild(folder, index, RowSource(embedder=embedder))
    assert content(index) == content(anew(folder, tmp_path / "other", embedder))
    assert sync(folder, index, RowSource(embedder=embedder)).nothing


def test_what_is_not_one_whole_year_is_refused(
    folder: Path, index: Index, embedder: HashEmbedder
) -> None:
    write(folder, 2, citations(2))
    write(folder, 4, citations(4))
    with pytest.raises(SyncRefused, match="--allow-gaps") as gaps:
        rebuild(folder, index, RowSource(embedder=embedder))
    assert gaps.value.files == (name(1), name(3))
    assert rebuild(folder, index, RowSource(embedder=embedder), allow_gaps=True).plan.missing == (
        name(1),
        name(3),
    )
    write(folder, 1, citations(1), year=27)
    with pytest.raises(SyncRefused, match="2026, 2027") as years:
        rebuild(folder, index, RowSource(embedder=embedder), allow_gaps=True)
    assert years.value.files == (name(2), name(4))


def test_a_file_that_is_changed_between_reading_and_encoding_stops_it(
    folder: Path, index: Index, embedder: HashEmbedder
) -> None:
    write(folder, 1, citations(*range(1, 31)))
    write(folder, 2, citations(31))

    def change(now: SyncProgress) -> None:
        if not now.reading and now.applied == 0:
            write(folder, 2, citations(31, text="Changed."))

    with pytest.raises(SyncRefused, match=name(2)):
        rebuild(folder, index, RowSource(embedder=embedder, batch=10), progress=change)
    assert index.count() == 0
    rebuild(folder, index, RowSource(embedder=embedder))
    assert texts(index)["pmid:31"] == "Changed. Number 31."


def test_a_prospect_tells_what_would_be_done_and_the_rebuild_reads_nothing_twice(
    folder: Path, index: Index, embedder: HashEmbedder, tmp_path: Path
) -> None:
    write(folder, 1, citations(*range(1, 31)))
    sync(folder, index, RowSource(embedder=embedder))
    before = content(index)
    write(folder, 1, [*citations(*range(2, 30)), *citations(30, 31, text="Revised.")])
    read: list[int] = []

    def progress(now: SyncProgress) -> None:
        if now.reading:
            read.append(now.ingest.unchanged)

    with index.lock, prospect(folder, index, progress=progress) as found:
        assert found.rebuilt is not None
        told = found.rebuilt
        lots = [record.passage.id for lot in found.batches(10) for record in lot.records]
    assert (told.new, told.changed, told.unchanged, told.removed) == (1, 1, 28, 1)
    assert lots == ["pmid:30", "pmid:31"]
    assert content(index) == before
    assert read
    read.clear()
    rebuild(folder, index, RowSource(embedder=embedder), progress=progress)
    assert not read
    with prospect(folder, None) as found:
        assert found.rebuilt is not None
        assert (found.rebuilt.new, found.rebuilt.published) == (30, 0)


def test_a_survey_that_is_damaged_is_made_anew(
    folder: Path, index: Index, embedder: HashEmbedder, tmp_path: Path
) -> None:
    (tmp_path / "index" / SURVEY).write_bytes(b"no database at all" * 100)
    write(folder, 1, citations(1))
    rebuild(folder, index, RowSource(embedder=embedder))
    assert index.ids() == ["pmid:1"]
