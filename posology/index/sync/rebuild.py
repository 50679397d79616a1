"""Rebuilds an index from a folder that is all there is: what none of its files holds goes.

First the folder is surveyed and compared with the index, which writes nothing to it. Then what is new or has changed
is encoded, what the files do not hold is removed, and all of it is published together. Doing any of this twice does no
more than doing it once, so that a rebuild which was broken off is begun again and finds little left to do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from posology.index.build.annotator import teach
from posology.index.build.batches import ahead
from posology.index.build.ingest import BATCH, COMPACT_EVERY
from posology.index.build.progress import Progress
from posology.index.build.report import LISTED, Tally
from posology.index.build.rows import Making, maker_for
from posology.index.manifest import Applied, Manifest, State
from posology.index.schema import digest
from posology.index.store import Index
from posology.index.sync.arrivals import Sums, untouched
from posology.index.sync.prospect import Prospect, kept_in, prospect, readable
from posology.index.sync.report import SyncProgress, SyncReport
from posology.index.sync.survey import moved

if TYPE_CHECKING:
    from posology.seams import Annotator, Embedder, TokenCodec


def rebuild(
    folder: Path,
    index: Index,
    embedder: Embedder,
    *,
    annotator: Annotator | None = None,
    codec: TokenCodec | None = None,
    making: Making | None = None,
    batch: int = BATCH,
    allow_gaps: bool = False,
    allow_removals: bool = False,
    progress: Callable[[SyncProgress], None] | None = None,
) -> SyncReport:
    """Make the index what it would be if it were built anew from the files of a folder. Blocking.

    Passages that are there as the files have them are not encoded again. What none of the files holds is removed,
    whether a sync or an ingest wrote it, and so are notices. Readers see the index as it was until all is done;
    numbers of versions go on. If any file cannot be read to its end, nothing is done.

    Args:
        folder: the files, of PubMed those of one year, from the first on.
        index: where to; it is locked against other writers meanwhile.
        embedder: the one that the index was made with.
        annotator: as for :func:`posology.index.build.ingest.ingest`; it is taught by the files that hold what the index lacks.
        codec: as there.
        making: as there.
        batch: as there.
        allow_gaps: whether files that the numbering wants may be missing.
        allow_removals: whether more than :data:`~posology.index.sync.prospect.MOST_REMOVED` of what readers see may go.
        progress: called after every commit, and now and then while files are read.

    Returns:
        What was done; records and files that cannot be read are in it, not raised.

    Raises:
        SyncRefused: the files are not those of one year, some are missing, too much would go, or a file was changed
            meanwhile; readers see the index as it was.
        BadFile: the folder cannot be read, or holds no file of a known format.
        IndexMismatch: the embedder, the annotator or the codec is not the index's.
        IndexLocked: another process is writing the index.
    """
    started = time.monotonic()
    maker = maker_for(index, embedder, annotator, codec, making)
    tally = Tally()
    applied: tuple[Applied, ...] = ()
    with index.staged(syncing=True):
        with prospect(
            folder,
            index,
            allow_gaps=allow_gaps,
            allow_removals=allow_removals,
            progress=progress,
        ) as found:
            tally.broken += found.broken
            if found.rebuilt is not None:
                manifest = Manifest(index.connection, index.uri)
                with readable(folder):
                    rows = _rows(found, manifest)
                    idle = _idle(found, manifest, index)
                if not idle:
                    with index.lock:
                        # reading took its time: nothing is written by whoever lost the index meanwhile
                        manifest.write(*rows)
                    if annotator is not None:
                        teach(annotator, index, [found.plan.files[n] for n in found.lacking])
                    _write(found, index, maker, tally, batch, progress)
                    applied = _publish(rows, manifest, index)
                _count(found, tally)
        if found.rebuilt is not None and (kept := kept_in(index)) is not None:
            kept.unlink(missing_ok=True)
        view = index.view()
    done = 0 if applied or found.waiting else len(found.plan.files)
    return SyncReport(
        applied=applied,
        plan=replace(found.plan, done=done),
        waiting=found.waiting,
        ingest=tally.report(files=len(found.plan.files)),
        version=view.number,
        index=view.version,
        seconds=time.monotonic() - started,
        rebuilt=found.rebuilt,
    )


def _rows(found: Prospect, manifest: Manifest) -> list[Applied]:
    """The files, as they are while the index is rebuilt from them."""
    sums = Sums()
    rows = []
    for path, one in zip(found.plan.files, found.survey.files, strict=True):
        known = manifest.files.get(path.name)
        md5 = known.md5 if known and untouched(path, known) else sums.of(path)
        if not one.is_still(path):
            raise moved(path)
        rows.append(
            Applied(
                name=one.name,
                size=one.size,
                mtime_ns=one.mtime_ns,
                md5=md5,
                state=State.REBUILDING,
                records=one.records,
                deletions=one.deletions,
                notices=one.notices,
                bad=one.bad,
                # until it is applied anew: what readers see holds it
                applied=None if known is None else known.applied,
            )
        )
    return rows


def _idle(found: Prospect, manifest: Manifest, index: Index) -> bool:
    """Whether the index is these files already, and readers see it."""
    files = found.plan.files
    return (
        not found.lacking
        and found.rebuilt is not None
        and not found.rebuilt.removed
        and index.newest().number == index.view().number
        and manifest.files.keys() == {file.name for file in files}
        and all(
            known.version is not None and untouched(file, known)
            for file in files
            for known in (manifest.files[file.name],)
        )
        and index.said == found.survey.said
    )


def _write(
    found: Prospect,
    index: Index,
    maker: Making,
    tally: Tally,
    batch: int,
    progress: Callable[[SyncProgress], None] | None,
) -> None:
    """Bring the index to what the files hold. Doing it twice, wholly or in part, does no more than doing it once."""
    index.correct(found.survey.said)
    compacted = 0
    places = {str(path.resolve()): place for place, path in enumerate(found.plan.files)}
    for part in ahead(found.batches(batch), maker):
        changed = [(record, digest(record.passage)) for record in part.records]
        index.upsert(tuple(maker.rows(changed, None)))
        refused = maker.refused()
        tally.add(
            written=len(changed) - len(refused),
            unchanged=0,
            replaced=0,
            bad=refused,
            broken=None,
        )
        if progress is not None and part.mark is not None:
            progress(
                SyncProgress(
                    files=len(found.plan.files),
                    applied=places[part.mark.path],
                    ingest=tally.progress(part.mark),
                )
            )
        if tally.written - compacted >= COMPACT_EVERY:
            index.compact()
            compacted = tally.written
    settled = index.settle(found.survey.holds)
    tally.add(
        written=0,
        unchanged=0,
        replaced=0,
        removed=settled.removed,
        warned=settled.marked,
        bad=(),
        broken=None,
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


def _count(found: Prospect, tally: Tally) -> None:
    """Add what was read and needed no writing."""
    if found.rebuilt is None:
        return
    files = found.survey.files
    tally.unchanged += found.rebuilt.unchanged
    tally.replaced += sum(file.records for file in files) - found.rebuilt.passages
    tally.bad += sum(file.bad for file in files)
    tally.listed += found.survey.bad(found.plan.files, LISTED - len(tally.listed))
