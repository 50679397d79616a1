"""Sync of an index with a folder: each file is applied once, in order, and readers see whole files only."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from posology.index.build.annotator import teach
from posology.index.build.ingest import BatchWriter
from posology.index.build.progress import Mark, Progress
from posology.index.build.report import IngestProgress, Tally
from posology.index.build.rows import RowSource
from posology.index.manifest import Applied, Manifest, State, unfinished
from posology.index.store import Index
from posology.index.sync.arrivals import Sums, files_of, readable, untouched, whole
from posology.index.sync.order import Plan, plan
from posology.index.sync.report import SyncProgress, SyncReport


def sync(
    folder: Path,
    index: Index,
    source: RowSource,
    *,
    allow_gaps: bool = False,
    reapply: bool = False,
    publish_each: bool = False,
    progress: Callable[[SyncProgress], None] | None = None,
) -> SyncReport:
    """Apply the files of a folder that are not in the index yet. Blocking.

    PubMed's baseline and update files come in NLM's order, other files in the order of their names. An interrupted
    sync resumes within its file. A file that was changed since it was applied is applied again, and so are all files
    after it. A wrong checksum, or compressed data that end early, stop the sync before that file: the files before it
    are applied and published.

    Args:
        folder: the files; files of an unknown format are skipped.
        index: the index to write; it is locked against other writers.
        source: the models that the index was made with.
        allow_gaps: whether files of PubMed's numbering may be missing.
        reapply: whether a new file may precede applied ones, which are then applied again.
        publish_each: whether readers see each file as soon as it is applied; otherwise all of them at the end.
        progress: called after every commit.

    Returns:
        The counts, with the records and files that cannot be read.

    Raises:
        SyncRefused: the files cannot be applied in order as they are; nothing has been written then.
        BadFile: the folder cannot be read, or holds no file of a known format.
        IndexMismatch: the index was made with another embedder, annotator or codec.
        IndexLocked: another process is writing the index.
    """
    started = time.monotonic()
    builder = source.builder_for(index)
    files = files_of(folder)
    tally = Tally()
    with index.staged(syncing=True):
        marks = Progress(index.connection)
        writer = BatchWriter(
            index=index, builder=builder, marks=marks, tally=tally, batch=source.batch
        )
        run = _Sync(writer=writer, manifest=Manifest(index.connection, index.uri))
        known = run.manifest.files
        with readable(folder):
            todo = plan(files, known, run.sums.of, allow_gaps=allow_gaps, reapply=reapply)
        good, waiting = whole(todo.files, known, tally)
        run.prepare(good, todo)
        if source.annotator is not None:
            teach(source.annotator, index, good)
        applied = run.apply(good, publish_each=publish_each, progress=progress)
        applied = run.publish(applied)
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


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Sync:
    """Applies files under the index's lock."""

    writer: BatchWriter
    manifest: Manifest
    sums: Sums = field(default_factory=Sums)

    def prepare(self, good: Sequence[Path], todo: Plan) -> None:
        """Record first which files are applied once more, so that a crash does not leave them half done."""
        again = [file for file in good if file.name in {*todo.again, *todo.revised}]
        if not again:
            return
        self.writer.marks.forget(again)
        known = self.manifest.files
        # the old checksum of a revised file stays until it is begun, so that it is still recognised as revised
        self.manifest.write(
            *(replace(known[file.name], state=State.BEGUN, version=None) for file in again)
        )

    def apply(
        self,
        files: Sequence[Path],
        *,
        publish_each: bool,
        progress: Callable[[SyncProgress], None] | None,
    ) -> list[Applied]:
        """Apply files in order, and return their rows."""
        applied: list[Applied] = []
        for file in files:
            row = self._begin(file)
            report = _file_progress(progress, files=len(files), applied=len(applied))
            row = self._write(file, row, report)
            self.manifest.write(row)
            if publish_each and not self._begun():
                row = replace(row, version=self.writer.index.publish())
                self.manifest.write(row)
            applied.append(row)
        return applied

    def publish(self, applied: list[Applied]) -> list[Applied]:
        """Publish what was applied, in this run and in interrupted ones, unless a file is still begun."""
        manifest, index = self.manifest, self.writer.index
        if self._begun() or not (applied or unfinished(manifest.files.values())):
            return applied
        index.finish()
        version = index.publish()
        rest = [file for file in manifest.files.values() if file.version is None]
        manifest.write(*(replace(file, version=version) for file in rest))
        manifest.tidy()
        self.writer.marks.tidy()
        return [manifest.files[file.name] for file in applied]

    def _begun(self) -> bool:
        """Return whether any file may be applied in part, or stand over newer ones."""
        return any(file.state is State.BEGUN for file in self.manifest.files.values())

    def _begin(self, file: Path) -> Applied:
        """Write and return a file's row; commits of a file that was begun before remain."""
        stat = file.stat()
        known = self.manifest.files.get(file.name)
        if known is not None and known.state is State.BEGUN and untouched(file, known):
            return known
        md5 = self.sums.of(file)
        if known is None or known.state is not State.BEGUN or known.md5 != md5:
            self.writer.marks.forget([file])
        row = Applied(
            name=file.name,
            size=stat.st_size,
            mtime_ns=stat.st_mtime_ns,
            md5=md5,
            state=State.BEGUN,
        )
        self.manifest.write(row)
        return row

    def _write(
        self, file: Path, row: Applied, progress: Callable[[IngestProgress], None] | None
    ) -> Applied:
        """Commit a file, and return its row as applied."""
        broken = self.writer.tally.broken
        before = len(broken)
        self.writer.write([file], progress=progress, retried=False)
        mark = self.writer.marks.resume(Mark.start(file, ""))
        return replace(
            row,
            state=State.APPLIED,
            records=mark.good,
            deletions=mark.deletions,
            notices=mark.notices,
            bad=mark.bad,
            broken=str(broken[before]) if len(broken) > before else None,
            applied=datetime.now(UTC).isoformat(timespec="seconds"),
        )


def _file_progress(
    progress: Callable[[SyncProgress], None] | None, *, files: int, applied: int
) -> Callable[[IngestProgress], None] | None:
    if progress is None:
        return None
    return lambda now: progress(SyncProgress(files=files, applied=applied, ingest=now))
