"""Progress and report of an ingest."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from posology.corpus.folders import Skipped
from posology.corpus.items import Remark
from posology.errors import BadFile, BadRecord
from posology.index.build.progress import Mark

#: bad records that a report lists, and remarks; it counts them all
LISTED = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestProgress:
    """Progress of an ingest, after a commit."""

    #: the file being read
    path: str
    #: the last committed line
    line: int
    #: records written so far
    written: int
    #: records so far that the index had already
    unchanged: int
    #: records so far that a later one replaced
    replaced: int
    #: records so far that cannot be read
    bad: int
    #: seconds since the start
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestReport:
    """Counts of what an ingest read and wrote."""

    #: records embedded and written
    written: int
    #: records that the index had already, with the same content
    unchanged: int
    #: records that a later record of the same id, or a deletion, replaced in the same batch
    replaced: int
    #: records that cannot be read
    bad: int
    #: the first :data:`LISTED` unreadable records
    bad_records: tuple[BadRecord, ...]
    #: files that cannot be read to their end
    bad_files: tuple[BadFile, ...]
    #: files found
    files: int
    seconds: float
    #: passages removed: withdrawn, or no longer part of their article
    removed: int = 0
    #: passages in the index whose retraction or concern status changed
    warned: int = 0
    #: files and folders in the given folders that are not read
    skipped: tuple[Skipped, ...] = ()
    #: number of remarks on records that were read
    remarked: int = 0
    #: the first :data:`LISTED` remarks
    remarks: tuple[Remark, ...] = ()

    @property
    def good(self) -> int:
        """Return the number of readable records, written or not."""
        return self.written + self.unchanged + self.replaced

    @property
    def rate(self) -> float:
        """Return the records written per second."""
        return self.written / self.seconds if self.seconds else 0.0


@dataclass(slots=True)
class Tally:
    """Running counts of an ingest."""

    written: int = 0
    unchanged: int = 0
    replaced: int = 0
    removed: int = 0
    warned: int = 0
    bad: int = 0
    listed: list[BadRecord] = field(default_factory=list)
    broken: list[BadFile] = field(default_factory=list)
    skipped: tuple[Skipped, ...] = ()
    remarked: int = 0
    remarks: list[Remark] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def add(
        self,
        *,
        written: int = 0,
        unchanged: int = 0,
        replaced: int = 0,
        removed: int = 0,
        warned: int = 0,
        bad: Sequence[BadRecord] = (),
        remarks: Sequence[Remark] = (),
        broken: BadFile | None = None,
    ) -> None:
        """Count one batch."""
        self.written += written
        self.unchanged += unchanged
        self.replaced += replaced
        self.removed += removed
        self.warned += warned
        self.bad += len(bad)
        self.listed.extend(bad[: LISTED - len(self.listed)])
        self.remarked += len(remarks)
        self.remarks.extend(remarks[: LISTED - len(self.remarks)])
        if broken is not None:
            self.broken.append(broken)

    @property
    def seen(self) -> int:
        """Return the number of records that the batches so far held, readable or not."""
        return self.written + self.unchanged + self.replaced + self.bad

    def progress(self, mark: Mark) -> IngestProgress:
        """Return the counts so far, at the place of a mark."""
        return IngestProgress(
            path=mark.path,
            line=mark.line,
            written=self.written,
            unchanged=self.unchanged,
            replaced=self.replaced,
            bad=self.bad,
            seconds=time.monotonic() - self.started,
        )

    def report(self, *, files: int) -> IngestReport:
        """Return the final counts."""
        return IngestReport(
            written=self.written,
            unchanged=self.unchanged,
            replaced=self.replaced,
            bad=self.bad,
            bad_records=tuple(self.listed),
            bad_files=tuple(self.broken),
            files=files,
            seconds=time.monotonic() - self.started,
            removed=self.removed,
            warned=self.warned,
            skipped=self.skipped,
            remarked=self.remarked,
            remarks=tuple(self.remarks),
        )
