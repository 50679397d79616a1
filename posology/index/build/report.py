"""What an ingest tells, while it runs and at its end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from posology.errors import BadFile, BadRecord
from posology.index.build.progress import Mark

#: bad records that a report lists; it counts them all
LISTED = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestProgress:
    """How far an ingest is, after a commit."""

    #: the file that is being read
    path: str
    #: its last line that is committed
    line: int
    #: records written so far
    written: int
    #: records so far that were in the index already
    unchanged: int
    bad: int
    #: since the start
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestReport:
    """What an ingest read and wrote."""

    #: records embedded and written
    written: int
    #: records that were in the index already, with the same content
    unchanged: int
    #: records that a later one of the same id, or a deletion, took the place of in the same batch
    replaced: int
    #: how many records cannot be read
    bad: int
    #: the first :data:`LISTED` of them
    bad_records: tuple[BadRecord, ...]
    #: files that cannot be read, or not to their end
    bad_files: tuple[BadFile, ...]
    #: files that were found
    files: int
    seconds: float
    #: passages that are gone: they were withdrawn, or are no part of their article any more
    removed: int = 0
    #: passages that were in the index and are warned of otherwise now: as retracted, as of concern, or no more
    warned: int = 0

    @property
    def good(self) -> int:
        """Records that can be read, whether or not they had to be written."""
        return self.written + self.unchanged + self.replaced

    @property
    def rate(self) -> float:
        """Records written a second."""
        return self.written / self.seconds if self.seconds else 0.0


@dataclass(slots=True)
class Tally:
    """Counts while an ingest runs."""

    written: int = 0
    unchanged: int = 0
    replaced: int = 0
    removed: int = 0
    warned: int = 0
    bad: int = 0
    listed: list[BadRecord] = field(default_factory=list)
    broken: list[BadFile] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)

    def add(
        self,
        *,
        written: int,
        unchanged: int,
        replaced: int,
        removed: int = 0,
        warned: int = 0,
        bad: Sequence[BadRecord],
        broken: BadFile | None,
    ) -> None:
        """Count one batch."""
        self.written += written
        self.unchanged += unchanged
        self.replaced += replaced
        self.removed += removed
        self.warned += warned
        self.bad += len(bad)
        self.listed.extend(bad[: LISTED - len(self.listed)])
        if broken is not None:
            self.broken.append(broken)

    def progress(self, mark: Mark) -> IngestProgress:
        """What has been counted, in the file that ``mark`` is of."""
        return IngestProgress(
            path=mark.path,
            line=mark.line,
            written=self.written,
            unchanged=self.unchanged,
            bad=self.bad,
            seconds=time.monotonic() - self.started,
        )

    def report(self, *, files: int) -> IngestReport:
        """The end of the count."""
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
        )
