"""Keeps an index current with a folder of files: each is applied once, in order, and readers see whole files only."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from posology.corpus.items import sentence
from posology.errors import BadFile
from posology.index.build.annotator import teach
from posology.index.build.ingest import BATCH, commit
from posology.index.build.progress import Mark, Progress
from posology.index.build.report import IngestProgress, Tally
from posology.index.build.rows import Making, maker_for
from posology.index.manifest import Applied, Manifest, State, unfinished
from posology.index.store import Index
from posology.index.sync.arrivals import Sums, files_of, untouched, whole
from posology.index.sync.order import Plan, plan
from posology.index.sync.report import SyncProgress, SyncReport

if TYPE_CHECKING:
    from posology.seams import Annotator, Embedder, TokenCodec


def sync(
    folder: Path,
    index: Index,
    embedder: Embedder,
    *,
    annotator: Annotator | None = None,
    codec: TokenCodec | None = None,
    making: Making | None = None,
    batch: int = BATCH,
    allow_gaps: bool = False,
    reapply: bool = False,
    publish_each: bool = False,
    progress: Callable[[SyncProgress], None] | None = None,
) -> SyncReport:
    """Apply the files of a folder that are not in the index yet. Blocking.

    Baseline and update files of PubMed come in NLM's order, other files in the order of their names. What was broken
    off is taken up within its file. A file that was changed since it was applied is applied again, and so are
    all after it. A file whose checksum is wrong, or whose compressed data end early, stops the sync before it:
    the files before it are applied and published.

    Args:
        folder: the files; what is of no known format is passed over.
        index: where to; it is locked against other writers meanwhile.
        embedder: the one that the index was made with.
        annotator: as for :func:`posology.index.build.ingest.ingest`.
        codec: as there.
        making: as there.
        batch: as there.
        allow_gaps: whether files that the numbering wants may be missing.
        reapply: whether a new file may come before some that were applied, which are then applied again.
        publish_each: whether readers see each file as soon as it is applied, not all of them at the end.
        progress: called after every commit.

    Returns:
        What was done; records and files that cannot be read are in it, not raised.

    Raises:
        SyncRefused: the files cannot be applied in order as they are; nothing has been written then.
        BadFile: the folder cannot be read, or holds no file of a known format.
        IndexMismatch: the embedder, the annotator or the codec is not the index's.
        IndexLocked: another process is writing the index.
    """
    started = time.monotonic()
    maker = maker_for(index, embedder, annotator, codec, making)
    files = files_of(folder)
    tally = Tally()
    with index.staged(syncing=True):
        manifest = Manifest(index.connection, index.uri)
        sums = Sums()
        try:
            todo = plan(files, manifest.files, sums.of, allow_gaps=allow_gaps, reapply=reapply)
        except OSError as error:
            raise BadFile(
                sentence(error.strerror or str(error)), path=str(error.filename or folder)
            ) from error
        marks = Progress(index.connection)
        good, waiting = whole(todo.files, manifest.files, tally)
        _prepare(good, todo, manifest, marks)
        if annotator is not None:
            teach(annotator, index, good)
        applied: list[Applied] = []
        for file in good:
            row = _begin(file, manifest, marks, sums)
            broken = len(tally.broken)
            commit(
                [file],
                index,
                maker,
                marks,
                tally=tally,
                batch=batch,
                progress=_telling(progress, files=len(good), applied=len(applied)),
                retried=False,
            )
            mark = marks.resume(Mark.start(file, ""))
            row = replace(
                row,
                state=State.APPLIED,
                records=mark.good,
                deletions=mark.deletions,
                notices=mark.notices,
                bad=mark.bad,
                broken=str(tally.broken[broken]) if len(tally.broken) > broken else None,
                applied=datetime.now(UTC).isoformat(timespec="seconds"),
            )
            manifest.write(row)
            if publish_each and not _begun(manifest):
                row = replace(row, version=index.publish())
                manifest.write(row)
            applied.append(row)
        # what an earlier run applied and did not live to publish is published, too
        if (applied or unfinished(manifest.files.values())) and not _begun(manifest):
            index.finish()
            version = index.publish()
            rest = [file for file in manifest.files.values() if file.version is None]
            manifest.write(*(replace(file, version=version) for file in rest))
            applied = [manifest.files[file.name] for file in applied]
            manifest.tidy()
            marks.tidy()
        view = index.view()
    return SyncReport(
        applied=tuple(applied),
        plan=todo,
        waiting=waiting,
        ingest=tally.report(files=len(good)),
        version=view.number,
        index=view.version,
        seconds=time.monotonic() - started,
    )


def _begun(manifest: Manifest) -> bool:
    """Whether any file may be applied in part, or stand over newer ones."""
    return any(file.state is State.BEGUN for file in manifest.files.values())


def _prepare(good: Sequence[Path], todo: Plan, manifest: Manifest, marks: Progress) -> None:
    """Write down first what is to be applied once more, so that a crash does not leave it half done."""
    again = [file for file in good if file.name in {*todo.again, *todo.revised}]
    if not again:
        return
    marks.forget(again)
    # of a revised file the old checksum stays until it is begun, so that it is still known for revised
    manifest.write(
        *(replace(manifest.files[file.name], state=State.BEGUN, version=None) for file in again)
    )


def _begin(file: Path, manifest: Manifest, marks: Progress, sums: Sums) -> Applied:
    """The file's row, written; of one that was begun before, what was committed of it stands."""
    stat = file.stat()
    known = manifest.files.get(file.name)
    if known is not None and known.state is State.BEGUN and untouched(file, known):
        return known
    md5 = sums.of(file)
    if known is None or known.state is not State.BEGUN or known.md5 != md5:
        marks.forget([file])
    row = Applied(
        name=file.name,
        size=stat.st_size,
        mtime_ns=stat.st_mtime_ns,
        md5=md5,
        state=State.BEGUN,
    )
    manifest.write(row)
    return row


def _telling(
    progress: Callable[[SyncProgress], None] | None, *, files: int, applied: int
) -> Callable[[IngestProgress], None] | None:
    if progress is None:
        return None
    return lambda now: progress(SyncProgress(files=files, applied=applied, ingest=now))
