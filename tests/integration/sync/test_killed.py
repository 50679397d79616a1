"""A sync is killed, at several places, and goes on: nothing is lost, and readers see the old index or the new."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from posology.errors import IndexLocked
from posology.index import reader as reading
from posology.index.build.rows import RowSource
from posology.index.store import Index
from posology.index.sync.rebuild import rebuild
from posology.index.sync.sync import sync
from posology.testing.models.embedder import HashEmbedder
from tests.support.pubmed_files import Citation, write
from tests.support.sync import content, literature

#: applies a folder to an index; waits for a line after each of its own, so that it cannot end before it is killed
RUN = """
import sys
from pathlib import Path
from posology.index.build.rows import RowSource
from posology.index.store import Index
from posology.index.sync.{verb} import {verb}
from posology.testing.models.embedder import HashEmbedder

def wait(now):
    print(now.applied, flush=True)
    sys.stdin.readline()

embedder = HashEmbedder(dim=16)
print("ready", flush=True)
source = RowSource(embedder=embedder, batch=5)
{verb}(Path(sys.argv[2]), Index.open(sys.argv[1]), source, progress=wait)
print("done", flush=True)
"""


def _kill(
    verb: str,
    where: Path,
    folder: Path,
    *,
    after: int,
    waiting: Callable[[], None],
    ended: Callable[[], None],
) -> None:
    """Kill a process after so many of its batches, and look while it waits and when it has ended."""
    with subprocess.Popen(
        [sys.executable, "-c", RUN.format(verb=verb), str(where), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for _ in range(after):
            assert process.stdout.readline().strip().isdigit()
            waiting()
            process.stdin.write("go on\n")
            process.stdin.flush()
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    ended()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", [(2,), pytest.param((0, 2, 3, 1, 4), marks=pytest.mark.slow)])
def test_kill_9_at_any_place_loses_nothing_and_shows_nothing_half_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: tuple[int, ...]
) -> None:
    monkeypatch.setattr(reading, "FRESH", -1.0)
    embedder = HashEmbedder(dim=16)
    folder, where = tmp_path / "pubmed", tmp_path / "killed"
    index = Index.create(where, embedder.name, embedder.dim)
    write(folder, 1, [Citation(pmid=100, text="It was here before.")])
    sync(folder, index, RowSource(embedder=embedder))
    before = content(index)
    (folder / "pubmed26n0001.xml.gz").unlink()  # applied files may go
    literature_folder = tmp_path / "rest"
    literature(literature_folder)
    for path in sorted(literature_folder.iterdir()):
        number = int(path.name[9:13]) + 1
        fresh = path.name.replace(path.name[9:13], f"{number:04}")
        told = path.read_bytes().replace(path.name[:-4].encode(), fresh[:-4].encode())
        (folder / fresh).write_bytes(told if fresh.endswith(".md5") else path.read_bytes())
    whole = Index.create(tmp_path / "whole", embedder.name, embedder.dim)
    write(tmp_path / "first", 1, [Citation(pmid=100, text="It was here before.")])
    sync(tmp_path / "first", whole, RowSource(embedder=embedder))
    sync(folder, whole, RowSource(embedder=embedder, batch=7))

    reader = Index.open(where)

    def unchanged() -> None:
        assert content(reader) == before

    def locked() -> None:
        unchanged()
        with pytest.raises(IndexLocked):
            sync(folder, Index.open(where), RowSource(embedder=embedder))

    for after in kills:
        _kill("sync", where, folder, after=after, waiting=locked, ended=unchanged)
    report = sync(folder, Index.open(where), RowSource(embedder=embedder, batch=5))
    assert report.applied
    assert content(reader) == content(whole)
    assert sync(folder, Index.open(where), RowSource(embedder=embedder)).nothing


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_rebuild_that_is_killed_anywhere_goes_on_and_shows_nothing_half_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "FRESH", -1.0)
    embedder = HashEmbedder(dim=16)
    old, new, where = tmp_path / "old", tmp_path / "new", tmp_path / "killed"
    index = Index.create(where, embedder.name, embedder.dim)
    literature(old, seed=1)
    literature(new, seed=2)
    # more than enough that stays, so that what goes is no tenth
    stays = [Citation(pmid=1_000 + i, text=f"Text {i}.") for i in range(400)]
    for folder in (old, new):
        write(folder, 5, stays)
    sync(old, index, RowSource(embedder=embedder))
    before = content(index)
    whole = Index.create(tmp_path / "whole", embedder.name, embedder.dim)
    sync(new, whole, RowSource(embedder=embedder))

    reader = Index.open(where)

    def unchanged() -> None:
        assert content(reader) == before

    for after in (0, 3, 8, 1):
        _kill("rebuild", where, new, after=after, waiting=unchanged, ended=unchanged)
    embedded = embedder.embedded
    report = rebuild(new, Index.open(where), RowSource(embedder=embedder, batch=5))
    assert report.applied
    assert report.rebuilt is not None
    assert (
        report.rebuilt.unchanged >= 400 + 5
    )  # of what was encoded before it was killed, at least one batch
    assert embedder.embedded - embedded < 40 * 4
    assert content(reader) == content(whole)
    assert rebuild(new, Index.open(where), RowSource(embedder=embedder)).nothing
    assert sync(new, Index.open(where), RowSource(embedder=embedder)).nothing
