"""Progress and report of a sync."""

from __future__ import annotations

from dataclasses import dataclass

from posology.index.build.report import IngestProgress, IngestReport
from posology.index.manifest import Applied
from posology.index.sync.order import Plan
from posology.index.sync.rebuilt import Rebuilt


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncProgress:
    """Progress of a sync, after a commit."""

    #: files to apply
    files: int
    #: of these, already applied
    applied: int
    #: progress within the current file
    ingest: IngestProgress
    #: whether files are only being read, to find what to do
    reading: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncReport:
    """Result of a sync."""

    #: applied files, in order
    applied: tuple[Applied, ...]
    #: what there was to do
    plan: Plan
    #: names of files that were not applied, because an earlier one cannot be read
    waiting: tuple[str, ...]
    #: counts of what was read and written
    ingest: IngestReport
    #: number of the published version
    version: int
    #: the index's name and that version, e.g. ``index@17``
    index: str
    seconds: float
    #: comparison, if the index was rebuilt; ``None``: it was not
    rebuilt: Rebuilt | None = None

    @property
    def nothing(self) -> bool:
        """Return whether there was nothing to do."""
        return not self.applied and not self.waiting
