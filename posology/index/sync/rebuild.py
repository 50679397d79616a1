"""Rebuild of an index from a folder with all its files: passages that no file holds are removed.

The folder is surveyed and compared with the index first, without writing to it. Then new and changed passages are
encoded, passages that the files do not hold are removed, and everything is published together. Each step can be
repeated without effect, so an interrupted rebuild starts again and finds little left to do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from posology.index.build.annotator import teach
from posology.index.build.batches import read_ahead
from posology.index.build.ingest import COMPACT_EVERY
from posology.index.build.progress import Mark, Progress
from posology.index.build.report import LISTED, Tally
from posology.index.build.rows import RowBuilder, RowSource
from posology.index.manifest import Applied, Manifest, State
from posology.index.schema import digest
from posology.index.store import Index
from posology.index.sync.arrivals import Sums, readable, untouched
from posology.index.sync.prospect import Prospect, prospect, survey_path
from posology.index.sync.report import SyncProgress, SyncReport
from posology.index.sync.survey import changed_while_read


def rebuild(
    folder: Path,
    index: Index,
    source: RowSource,
    *,
    allow_gaps: bool = False,
    allow_removals: bool = False,
    progress: Callable[[SyncProgress], None] | None = None,
) -> SyncReport:
    """Make an index what a new one, built from the files of a folder, would be. Blocking.

    Unchanged passages are not encoded again. Passages and notices that no file holds are removed, whether a sync or
    an ingest wrote them. Readers see the old version until the end; version numbers continue. If any file cannot be
    read to its end, nothing is done.

    Args:
        folder: the files; PubMed's must be of one year, from the first on.
        index: the index to write; it is locked against other writers.
        source: the models that the index was made with. The annotator learns from the files with new or changed
            passages.
        allow_gaps: whether files of PubMed's numbering may be missing.
        allow_removals: whether more than :data:`~posology.index.sync.prospect.MOST_REMOVED` of the published passages
            may be removed.
        progress: called after every commit, and now and then while files are read.

    Returns:
        The counts, with the records and files that cannot be read.

    Raises:
        SyncRefused: the files are of several years, some are missing, too much would be removed, or a file changed
            meanwhile; readers still see the old version.
        BadFile: the folder cannot be read, or holds no file of a known format.
        IndexMismatch: the index was made with another embedder, annotator or codec.
        IndexLocked: another process is writing the index.
    """
    started = time.monotonic()
    run = _Rebuild(index=index, source=source, builder=source.builder_for(index), progress=progress)
    with index.staged(syncing=True):
        with prospect(
            folder, index, allow_gaps=allow_gaps, allow_removals=allow_removals, progress=progress
        ) as planned:
            run.tally.broken += planned.broken
            applied = run.apply(folder, planned)
        if planned.rebuilt is not None and (kept := survey_path(index)) is not None:
            kept.unlink(missing_ok=True)
        view = index.view()
    done = 0 if applied or planned.waiting else len(planned.plan.files)
    return SyncReport(
        applied=applied,
        plan=replace(planned.plan, done=done),
        waiting=planned.waiting,
        ingest=run.tally.report(files=len(planned.plan.files)),
        version=view.number,
        index=view.version,
        seconds=time.monotonic() - started,
        rebuilt=planned.rebuilt,
    )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Rebuild:
    """Writes what a prospect found, under the index's lock."""

    index: Index
    source: RowSource
    builder: RowBuilder
    progress: Callable[[SyncProgress], None] | None
    tally: Tally = field(default_factory=Tally)

    def apply(self, folder: Path, planned: Prospect) -> tuple[Applied, ...]:
        """Bring the index to what the files hold, publish it, and return the rows of its files."""
        if planned.rebuilt is None:
            return ()
        index = self.index
        manifest = Manifest(index.connection, index.uri)
        with readable(folder):
            rows = _rows(planned, manifest)
            idle = _idle(planned, manifest, index)
        applied: tuple[Applied, ...] = ()
        if not idle:
            with index.lock:
                # reading took its time: a writer that lost the lock meanwhile must write nothing
                manifest.write(*rows)
            if self.source.annotator is not None:
                teach(
                    self.source.annotator, index, [planned.plan.files[n] for n in planned.lacking]
                )
            self._write(planned)
            applied = _publish(rows, manifest, index)
        self._count_unwritten(planned)
        return applied

    def _write(self, planned: Prospect) -> None:
        """Write new and changed passages, and remove the rest. Repeating it, wholly or in part, changes nothing."""
        self.index.correct(planned.survey.notices)
        compacted = 0
        places = {str(path.resolve()): place for place, path in enumerate(planned.plan.files)}
        for part in read_ahead(planned.batches(self.source.batch), self.builder):
            changed = [(record, digest(record.passage)) for record in part.records]
            self.index.upsert(tuple(self.builder.rows(changed, None)))
            refused = self.builder.refused()
            self.tally.add(written=len(changed) - len(refused), bad=refused)
            if part.mark is not None:
                self._report(part.mark, files=len(places), applied=places[part.mark.path])
            if self.tally.written - compacted >= COMPACT_EVERY:
                self.index.compact()
                compacted = self.tally.written
        settled = self.index.settle(planned.survey.holds)
        self.tally.add(removed=settled.removed, warned=settled.marked)

    def _report(self, mark: Mark, *, files: int, applied: int) -> None:
        if self.progress is not None:
            ingest = self.tally.progress(mark)
            self.progress(SyncProgress(files=files, applied=applied, ingest=ingest))

    def _count_unwritten(self, planned: Prospect) -> None:
        """Count the records that were read and needed no writing."""
        assert planned.rebuilt is not None
        tally, files = self.tally, planned.survey.files
        tally.unchanged += planned.rebuilt.unchanged
        tally.replaced += sum(file.records for file in files) - planned.rebuilt.passages
        tally.bad += sum(file.bad for file in files)
        tally.listed += planned.survey.bad(planned.plan.files, LISTED - len(tally.listed))
        tally.remarked += planned.survey.remarked
        tally.remarks += planned.survey.remarks(planned.plan.files, LISTED - len(tally.remarks))


def _rows(planned: Prospect, manifest: Manifest) -> list[Applied]:
    """Return the rows of the files while the index is rebuilt from them."""
    sums = Sums()
    rows = []
    for path, surveyed in zip(planned.plan.files, planned.survey.files, strict=True):
        known = manifest.files.get(path.name)
        md5 = known.md5 if known and untouched(path, known) else sums.of(path)
        if not surveyed.is_still(path):
            raise changed_while_read(path)
        rows.append(
            Applied(
                name=surveyed.name,
                size=surveyed.size,
                mtime_ns=surveyed.mtime_ns,
                md5=md5,
                state=State.REBUILDING,
                records=surveyed.records,
                deletions=surveyed.deletions,
                notices=surveyed.notices,
                bad=surveyed.bad,
                # of the published version, until the file is applied anew
                applied=None if known is None else known.applied,
            )
        )
    return rows


def _idle(planned: Prospect, manifest: Manifest, index: Index) -> bool:
    """Return whether the published index already is what the files hold."""
    files = planned.plan.files
    return (
        not planned.lacking
        and planned.rebuilt is not None
        and not planned.rebuilt.removed
        and index.newest().number == index.view().number
        and manifest.files.keys() == {file.name for file in files}
        and all(
            known.version is not None and untouched(file, known)
            for file in files
            for known in (manifest.files[file.name],)
        )
        and index.notices == planned.survey.notices
    )


def _publish(rows: list[Applied], manifest: Manifest, index: Index) -> tuple[Applied, ...]:
    index.finish()
    version = index.publish()
    marks = Progress(index.connection)
    marks.clear()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    manifest.replace(
        *(replace(row, state=State.APPLIED, applied=now, version=version) for row in rows)
    )
    manifest.tidy()
    marks.tidy()
    return tuple(manifest.files[row.name] for row in rows)
