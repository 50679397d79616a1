"""A rebuild whose folder is older than the index, whose survey is another's, or whose lock is lost."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from posology.errors import IndexLocked, SyncRefused
from posology.index.build.rows import RowSource
from posology.index.locking.lock import WriteLock
from posology.index.store import Index
from posology.index.sync.prospect import SURVEY, prospect
from posology.index.sync.rebuild import rebuild
from posology.index.sync.report import SyncProgress
from posology.index.sync.sync import sync
from posology.testing.models.embedder import HashEmbedder
from tests.support.pubmed_files import Citation, name, write
from tests.support.sync import Crash, citations, content, flags, texts

TEXT = "Aspirin lowered the risk of stroke in adults who took it. "


def look(folder: Path, index: Index) -> None:
    """Leave a survey of a folder beside an index, as ``--dry-run`` does."""
    with index.lock, prospect(folder, index):
        pass


def test_files_that_were_applied_after_the_folder_s_last_are_missing(
    folder: Path, index: Index, embedder: HashEmbedder
) -> None:
    write(folder, 1, citations(*range(1, 31)))
    update = write(folder, 2, [Citation(pmid=5, text="We retract it.", retracts=(1,))], deleted=[3])
    sync(folder, index, RowSource(embedder=embedder))
    before = content(index)
    update.unlink()
    # nothing would go, and yet a retraction would be taken back, and a withdrawn record come again
    with pytest.raises(SyncRefused, match="--allow-gaps") as refused:
        rebuild(folder, index, RowSource(embedder=embedder))
    assert refused.value.files == (name(2),)
    assert content(index) == before

    def crash(now: SyncProgress) -> None:
        if not now.reading:
            raise Crash

    with pytest.raises(Crash):
        rebuild(folder, index, RowSource(embedder=embedder), allow_gaps=True, progress=crash)
    # also while a rebuild is unfinished
    with pytest.raises(SyncRefused, match="--allow-gaps"):
        rebuild(folder, index, RowSource(embedder=embedder))
    assert rebuild(folder, index, RowSource(embedder=embedder), allow_gaps=True).plan.missing == (
        name(2),
    )
    assert flags(index)["pmid:1"] == (False, False)
    assert "pmid:3" in index.ids()
    assert sync(folder, index, RowSource(embedder=embedder)).nothing


def test_a_rebuild_that_was_broken_off_does_not_make_files_applied_ones(
    folder: Path, index: Index, embedder: HashEmbedder
) -> None:
    write(folder, 1, citations(*range(1, 21)))
    second = write(folder, 2, citations(21))

    def crash(now: SyncProgress) -> None:
        if not now.reading:
            raise Crash

    with pytest.raises(Crash):
        rebuild(folder, index, RowSource(embedder=embedder), progress=crash)
    second.unlink()
    assert rebuild(folder, index, RowSource(embedder=embedder)).plan.missing == ()
    assert index.count() == 20


def test_an_older_year_s_baseline_does_not_take_the_place_of_a_newer_one(
    folder: Path, index: Index, embedder: HashEmbedder, tmp_path: Path
) -> None:
    older = tmp_path / "2026"
    write(older, 1, citations(*range(1, 21)))
    write(older, 2, citations(21))
    write(folder, 1, citations(*range(1, 21), text="Revised."), year=27)
    sync(folder, index, RowSource(embedder=embedder))
    with pytest.raises(SyncRefused) as refused:
        rebuild(older, index, RowSource(embedder=embedder), allow_removals=True)
    assert refused.value.files == (name(1, 27),)
    assert texts(index)["pmid:1"] == "Revised. Number 1."


def test_a_survey_is_of_its_folder_alone(
    folder: Path, index: Index, embedder: HashEmbedder, tmp_path: Path
) -> None:
    (folder / "b.txt").write_text(TEXT * 5)
    look(folder, index)
    # its size and times stay as they are, and its article's id is by the folder's name
    moved = folder.rename(tmp_path / "other")
    rebuild(moved, index, RowSource(embedder=embedder))
    assert index.ids() == ["file:other/b.txt#1"]


def test_a_survey_of_another_version_is_not_believed(
    folder: Path, index: Index, embedder: HashEmbedder, tmp_path: Path
) -> None:
    write(folder, 1, citations(1, 2))
    look(folder, index)
    with closing(sqlite3.connect(tmp_path / "index" / SURVEY)) as survey, survey:
        survey.execute("DELETE FROM records WHERE id = 'pmid:2'")
        survey.execute("PRAGMA user_version = 1")
    rebuild(folder, index, RowSource(embedder=embedder))
    assert sorted(index.ids()) == ["pmid:1", "pmid:2"]


@pytest.mark.parametrize(
    "damage", ["UPDATE records SET digest = zeroblob(16)", "UPDATE records SET id = id || '0'"]
)
def test_a_survey_that_does_not_fit_its_files_is_believed_once_at_most(
    folder: Path, index: Index, embedder: HashEmbedder, tmp_path: Path, damage: str
) -> None:
    write(folder, 1, citations(1, 2))
    look(folder, index)
    with closing(sqlite3.connect(tmp_path / "index" / SURVEY)) as survey, survey:
        survey.execute(damage)
    with pytest.raises(SyncRefused, match="changed while"):
        rebuild(folder, index, RowSource(embedder=embedder))
    assert index.count() == 0
    rebuild(folder, index, RowSource(embedder=embedder))
    assert sorted(index.ids()) == ["pmid:1", "pmid:2"]


class Lapsed:
    """A lock that was lost after it was taken, as a lease whose time ran out while files were read."""

    def take(self) -> None:
        """Nothing: it is had."""

    def check(self) -> None:
        """It is lost."""
        raise IndexLocked("another process writes the index now", index="index")

    def release(self) -> None:
        """Nothing: it is another's."""


def test_whoever_lost_the_index_while_reading_writes_nothing_at_all(
    folder: Path, index: Index, embedder: HashEmbedder, tmp_path: Path
) -> None:
    write(folder, 1, citations(*range(1, 21)))
    sync(folder, index, RowSource(embedder=embedder))
    write(folder, 2, citations(21))
    late = Index.open(index.uri)
    late.lock = WriteLock(None, taken=late._catch_up, by=Lapsed())
    with pytest.raises(IndexLocked):
        rebuild(folder, late, RowSource(embedder=embedder))
    # for whoever has it, no rebuild was begun
    assert Index.open(index.uri).info().unfinished == ()
    assert sync(folder, index, RowSource(embedder=embedder)).ingest.written == 1
