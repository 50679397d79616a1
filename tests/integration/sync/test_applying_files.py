"""A folder of files, kept in an index: what comes, goes and is warned of, and what readers see meanwhile."""

from __future__ import annotations

import gzip
from datetime import timedelta
from pathlib import Path

import pytest

from posology.corpus.items import NoticeKind
from posology.errors import BadFile, IndexUnfinished, SyncRefused, VersionGone
from posology.index import reader as reading
from posology.index import versions
from posology.index.build.ingest import ingest
from posology.index.build.rows import RowSource
from posology.index.schema import TABLE
from posology.index.store import Index
from posology.index.sync.report import SyncProgress
from posology.index.sync.sync import sync
from posology.testing.models.embedder import HashEmbedder
from tests.support.pubmed_files import Citation, name, write
from tests.support.sync import Crash, citations, flags, names, texts


def test_files_are_applied_in_order_once_each(
    folder: Path, index: Index, embedder: HashEmbedder
) -> None:
    write(folder, 2, citations(2, text="Second."), deleted=[3])
    write(folder, 1, citations(1, 2, 3))
    report = sync(folder, index, RowSource(embedder=embedder))
    assert names(report) == [name(1), name(2)]
    assert texts(index) == {"pmid:1": "Aspirin helps. Number 1.", "pmid:2": "Second. Number 2."}
    assert (report.ingest.written, report.ingest.removed) == (4, 1)
    assert [(f.records, f.deletions, f.bad, f.version) for f in report.applied] == [
        (3, 0, 0, report.version),
        (1, 1, 0, report.version),
    ]
    assert index.version == f"index@{report.version}"
    embedded, version = embedder.embedded, index.version
    again = sync(folder, index, RowSource(embedder=embedder))
    assert again.nothing
    assert (again.plan.done, again.version) == (2, report.version)
    assert (embedder.embedded, index.version) == (embedded, version)


def test_a_deletion_takes_an_article_s_parts(index: Index, tmp_path: Path) -> None:
    lines = [
        '{"id": "pmcid:PMC1#1", "text": "One.", "parent": "pmcid:PMC1"}',
        '{"id": "pmcid:PMC1#2", "text": "Two.", "parent": "pmcid:PMC1"}',
        '{"id": "pmcid:PMC11#1", "text": "Another.", "parent": "pmcid:PMC11"}',
        '{"id": "o\'clock", "text": "Odd."}',
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines))
    ingest([path], index, RowSource(embedder=HashEmbedder(dim=16)))
    assert index.delete(["pmcid:PMC1", "o'clock", "nothing"]) == 3
    assert index.ids() == ["pmcid:PMC11#1"]
    version = index.version
    assert index.delete(["pmcid:PMC1"]) == 0
    assert index.version == version


@pytest.mark.parametrize("order", [(1, 2), (2, 1), (1, 1)])
def test_a_notice_reaches_what_comes_before_after_and_with_it(
    folder: Path, index: Index, embedder: HashEmbedder, order: tuple[int, int]
) -> None:
    notice = Citation(pmid=9, text="We retract it.", retracts=(1,), concerns=(2,))
    files: dict[int, list[Citation]] = {}
    for number, found in zip(order, (citations(1, 2, 3), [notice]), strict=True):
        files.setdefault(number, []).extend(found)
    for number, found in files.items():
        write(folder, number, found)
    sync(folder, index, RowSource(embedder=embedder))
    assert flags(index) == {
        "pmid:1": (True, False),
        "pmid:2": (False, True),
        "pmid:3": (False, False),
        "pmid:9": (False, False),
    }
    assert "pmid:1" not in index.bm25("aspirin", 5).ids
    # a revision that does not know of it is warned of all the same, and nothing else is written again
    write(folder, max(order) + 1, citations(1, text="Revised."))
    report = sync(folder, index, RowSource(embedder=embedder))
    assert (report.ingest.written, report.ingest.warned) == (1, 0)
    assert flags(index)["pmid:1"] == (True, False)
    write(folder, max(order) + 2, citations(1, text="Revised."))
    assert sync(folder, index, RowSource(embedder=embedder)).ingest.written == 0


def test_a_notice_is_taken_back_with_its_record(
    folder: Path, index: Index, embedder: HashEmbedder
) -> None:
    own = Citation(pmid=2, text="Retracted by itself.", retracted=True)
    write(folder, 1, [*citations(1), own])
    write(folder, 2, [Citation(pmid=9, text="We retract both.", retracts=(1, 2))])
    write(folder, 3, [Citation(pmid=8, text="We worry.", concerns=(1,))])
    sync(folder, index, RowSource(embedder=embedder))
    assert flags(index)["pmid:1"] == (True, True)
    write(folder, 4, citations(9, text="We were wrong."), deleted=[8])
    report = sync(folder, index, RowSource(embedder=embedder))
    assert report.ingest.warned == 1
    assert flags(index) == {
        "pmid:1": (False, False),
        "pmid:2": (True, False),
        "pmid:9": (False, False),
    }


def test_targets_are_found_by_every_number_that_a_passage_has(
    index: Index, tmp_path: Path, embedder: HashEmbedder
) -> None:
    lines = [
        '{"id": "mine:1", "text": "One.", "pmid": "11"}',
        '{"id": "mine:2", "text": "Two.", "doi": "10.1/ab"}',
        '{"id": "mine:3#1", "text": "Three.", "pmcid": "PMC3", "parent": "mine:3"}',
        '{"id": "mine:4#1", "text": "Four.", "parent": "mine:4"}',
        '{"id": "mine:5", "text": "Five.", "pmid": "111"}',
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines))
    said = {
        t: frozenset({NoticeKind.RETRACTION})
        for t in ("pmid:11", "doi:10.1/AB", "pmcid:pmc3", "mine:4")
    }
    other = Index.create(tmp_path / "other", embedder.name, embedder.dim)
    for one, first in ((index, True), (other, False)):
        if first:
            ingest([path], one, RowSource(embedder=embedder))
        assert one.warn({"by": said}) == (4 if first else 0)
        if not first:
            ingest([path], one, RowSource(embedder=embedder))
        warned = {i for i, (retracted, _) in flags(one).items() if retracted}
        assert warned == {"mine:1", "mine:2", "mine:3#1", "mine:4#1"}
        assert one.warn({"by": said}) == 0


def test_readers_see_whole_syncs_only(
    folder: Path, index: Index, embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "FRESH", -1.0)
    write(folder, 1, citations(*range(1, 21)))
    reader = Index.open(index.uri)
    seen: list[int] = []
    sync(
        folder,
        index,
        RowSource(embedder=embedder, batch=5),
        progress=lambda _: seen.append(reader.count()),
    )
    assert set(seen) == {0}
    assert reader.count() == 20
    write(folder, 2, citations(30))
    write(folder, 3, citations(31))
    seen.clear()
    sync(
        folder,
        index,
        RowSource(embedder=embedder),
        publish_each=True,
        progress=lambda _: seen.append(reader.count()),
    )
    assert sorted(set(seen)) == [20, 21]


def test_an_index_whose_maker_died_before_it_was_published_shows_nothing_half_done(
    folder: Path, index: Index, embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "FRESH", -1.0)
    table = index.connection.open_table(TABLE)
    for one in index.versions():
        table.branches.delete(one.branch)
    write(folder, 1, citations(*range(1, 10)))
    opened, reader = Index.open(index.uri), Index.open(index.uri)
    seen: list[int] = []
    sync(
        folder,
        opened,
        RowSource(embedder=embedder, batch=2),
        progress=lambda _: seen.append(reader.count()),
    )
    assert len(seen) > 3
    assert set(seen) == {0}
    assert reader.count() == 9


def test_a_broken_off_sync_is_finished_before_anything_else_is_written(
    folder: Path, index: Index, embedder: HashEmbedder, tmp_path: Path
) -> None:
    write(folder, 1, citations(*range(1, 11)))
    write(folder, 2, citations(*range(11, 20)), deleted=[1])

    def crash(now: SyncProgress) -> None:
        if now.applied == 1:
            raise Crash

    with pytest.raises(Crash):
        sync(folder, index, RowSource(embedder=embedder, batch=4), progress=crash)
    assert index.count() == 0
    plain = tmp_path / "a.jsonl"
    plain.write_text('{"id": "a", "text": "A."}')
    with pytest.raises(IndexUnfinished, match=name(1)):
        ingest([plain], index, RowSource(embedder=embedder))
    (folder / name(2)).rename(tmp_path / name(2))
    with pytest.raises(SyncRefused, match=r"[Pp]ut it back"):
        sync(folder, index, RowSource(embedder=embedder))
    (tmp_path / name(2)).rename(folder / name(2))
    embedded = embedder.embedded
    report = sync(folder, Index.open(index.uri), RowSource(embedder=embedder, batch=4))
    assert names(report) == [name(2)]
    assert embedder.embedded - embedded < 10
    assert sorted(index.ids()) == sorted(f"pmid:{i}" for i in range(2, 20))
    assert ingest([plain], index, RowSource(embedder=embedder)).written == 1


def test_a_file_that_did_not_arrive_whole_stops_the_sync_before_it(
    folder: Path, index: Index, embedder: HashEmbedder
) -> None:
    write(folder, 1, citations(1))
    bad = write(folder, 2, citations(2))
    write(folder, 3, citations(3))
    whole = bad.read_bytes()
    bad.write_bytes(whole[:-9])
    report = sync(folder, index, RowSource(embedder=embedder))
    assert names(report) == [name(1)]
    assert report.waiting == (name(2), name(3))
    assert ["MD5" in f.reason for f in report.ingest.bad_files] == [True]
    assert index.ids() == ["pmid:1"]
    bad.with_name(bad.name + ".md5").unlink()
    report = sync(folder, index, RowSource(embedder=embedder))
    assert report.waiting == (name(2), name(3))
    assert [f.path for f in report.ingest.bad_files] == [str(bad)]
    bad.write_bytes(whole)
    assert names(sync(folder, index, RowSource(embedder=embedder))) == [name(2), name(3)]


def test_bad_records_are_told_and_the_others_kept(
    folder: Path, index: Index, embedder: HashEmbedder
) -> None:
    empty = Citation(pmid=2, text="")
    remarked = Citation(pmid=3, text="Aged &lt;img src='a.gif'/&gt; 65.")
    write(folder, 1, [*citations(1), empty, remarked])
    report = sync(folder, index, RowSource(embedder=embedder))
    assert [(Path(b.path).name, b.record) for b in report.ingest.bad_records] == [
        (name(1), "pmid:2")
    ]
    assert [one.record for one in report.ingest.remarks] == ["pmid:3"]
    assert report.applied[0].bad == 1
    assert sorted(index.ids()) == ["pmid:1", "pmid:3"]


def test_xml_that_breaks_off_is_told_and_what_is_read_is_kept(
    folder: Path, index: Index, embedder: HashEmbedder
) -> None:
    path = write(folder, 1, citations(1, 2), md5=False)
    content = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(content[: content.rindex(b"<PubmedArticle>") + 40]))
    write(folder, 2, citations(3))
    report = sync(folder, index, RowSource(embedder=embedder))
    assert names(report) == [name(1), name(2)]
    assert report.applied[0].broken is not None
    assert sorted(index.ids()) == ["pmid:1", "pmid:3"]
    # fetched again it is another file, and applied again
    path = write(folder, 1, citations(1, 2))
    report = sync(folder, index, RowSource(embedder=embedder))
    assert report.plan.revised == (name(1),)
    assert report.plan.again == (name(2),)
    assert sorted(index.ids()) == ["pmid:1", "pmid:2", "pmid:3"]


def test_a_revised_file_does_not_overwrite_what_is_newer(
    folder: Path, index: Index, embedder: HashEmbedder, tmp_path: Path
) -> None:
    write(folder, 1, citations(1, 2))
    write(folder, 2, citations(1, text="Newer."))
    sync(folder, index, RowSource(embedder=embedder))
    write(folder, 1, citations(1, 2, text="Mended."))
    (folder / name(2)).rename(tmp_path / name(2))
    before = texts(index)
    with pytest.raises(SyncRefused, match=r"[Pp]ut it back"):
        sync(folder, index, RowSource(embedder=embedder))
    assert texts(index) == before
    (tmp_path / name(2)).rename(folder / name(2))

    def crash(now: SyncProgress) -> None:
        raise Crash

    with pytest.raises(Crash):
        sync(folder, index, RowSource(embedder=embedder), progress=crash)
    assert texts(index) == before
    sync(folder, index, RowSource(embedder=embedder))
    assert texts(index) == {"pmid:1": "Newer. Number 1.", "pmid:2": "Mended. Number 2."}


def test_a_begun_file_begins_anew_where_an_earlier_one_comes(
    folder: Path, index: Index, embedder: HashEmbedder
) -> None:
    write(folder, 1, citations(8))
    write(folder, 3, [*citations(1, 2, 3, text="Third."), *citations(4, 5)])

    class Died(Exception):
        pass

    def die(now: SyncProgress) -> None:
        if now.ingest.written >= 4:
            raise Died

    with pytest.raises(Died):
        sync(folder, index, RowSource(embedder=embedder, batch=3), allow_gaps=True, progress=die)
    # what is committed of the third file must come to stand over the second once more
    write(folder, 2, citations(1, 2, 7, text="Second."))
    report = sync(folder, index, RowSource(embedder=embedder, batch=3), reapply=True)
    assert names(report) == [name(2), name(3)]
    assert texts(index)["pmid:1"] == "Third. Number 1."
    assert texts(index)["pmid:7"] == "Second. Number 7."


def test_what_cannot_be_in_order_is_refused(
    folder: Path, index: Index, embedder: HashEmbedder
) -> None:
    write(folder, 3, citations(1, text="Third."))
    sync(folder, index, RowSource(embedder=embedder))
    write(folder, 6, citations(6))
    with pytest.raises(SyncRefused, match=name(4)) as missing:
        sync(folder, index, RowSource(embedder=embedder))
    assert missing.value.files == (name(4), name(5))
    assert names(sync(folder, index, RowSource(embedder=embedder), allow_gaps=True)) == [name(6)]
    write(folder, 2, citations(1, 2, text="Second."))
    with pytest.raises(SyncRefused, match="reapply") as late:
        sync(folder, index, RowSource(embedder=embedder), allow_gaps=True)
    assert late.value.files == (name(2),)
    assert "pmid:2" not in index.ids()
    report = sync(folder, index, RowSource(embedder=embedder), allow_gaps=True, reapply=True)
    assert names(report) == [name(2), name(3), name(6)]
    assert texts(index)["pmid:1"] == "Third. Number 1."
    write(folder, 1, citations(1), year=27)
    with pytest.raises(SyncRefused, match="--rebuild"):
        sync(folder, index, RowSource(embedder=embedder), allow_gaps=True)


def test_other_files_come_in_the_order_of_their_names(
    folder: Path, index: Index, embedder: HashEmbedder, tmp_path: Path
) -> None:
    (folder / "b.jsonl").write_text('{"id": "x", "text": "B."}')
    (folder / "a.jsonl").write_text('{"id": "x", "text": "A."}')
    (folder / "notes.md5").write_text("")
    assert names(sync(folder, index, RowSource(embedder=embedder))) == ["a.jsonl", "b.jsonl"]
    assert texts(index) == {"x": "B."}
    with pytest.raises(BadFile, match="no such folder"):
        sync(tmp_path / "none", index, RowSource(embedder=embedder))


def test_old_versions_are_read_until_their_time_is_over(
    folder: Path, index: Index, embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, 1, citations(1, text="Heparin."))
    first = sync(folder, index, RowSource(embedder=embedder)).version
    hits = index.view_at(first).bm25("heparin", 5)
    for number in range(2, 7):
        write(folder, number, citations(number, text="Heparin."), deleted=[number - 1])
        last = sync(folder, index, RowSource(embedder=embedder)).version
    assert index.bm25("heparin", 5).ids == ("pmid:6",)
    assert Index.open(index.uri).view_at(first).bm25("heparin", 5) == hits
    assert index.view_at(first).version == f"index@{first}"
    assert len(index.versions()) == 7  # the empty one, too
    with pytest.raises(VersionGone):
        index.view_at(last + 1)
    monkeypatch.setattr(versions, "LEAST", timedelta(0))
    index.keep = timedelta(0)
    index.finish()
    # the one that was current until this moment was replaced only now
    assert next(one.number for one in index.versions()) == last
    with pytest.raises(VersionGone) as gone:
        Index.open(index.uri).view_at(first)
    assert (gone.value.version, gone.value.index) == (first, "index")
    assert index.bm25("heparin", 5).ids == ("pmid:6",)
