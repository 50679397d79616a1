"""What a sync tells, while it runs and at its end."""

from __future__ import annotations

from dataclasses import dataclass

from posology.index.build.report import IngestProgress, IngestReport
from posology.index.manifest import Applied
from posology.index.sync.order import Plan


@dataclass(frozen=True, kw_only=True, slots=True)
class Rebuilt:
    """An index beside the files from which it is rebuilt: how many passages, and which files."""

    #: that the files hold, taken together
    passages: int
    #: of these, that are not in the index
    new: int
    #: of these, that are in the index with another content
    changed: int
    #: of these, that are in the index as they are
    unchanged: int
    #: that readers see now, and that none of the files holds
    removed: int
    #: how many readers see now
    published: int
    #: names of files that had been applied and are not in the folder
    forgotten: tuple[str, ...] = ()
    #: files that `posology ingest` had read and that are not in the folder
    ingested: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncProgress:
    """How far a sync is, after a commit."""

    #: files that are to be applied
    files: int
    #: how many of them are
    applied: int
    #: inside the one that is being applied
    ingest: IngestProgress
    #: whether they are only read yet, to find what is to be done
    reading: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncReport:
    """What a sync did."""

    #: the files that were applied, in order
    applied: tuple[Applied, ...]
    #: what it was to do
    plan: Plan
    #: names of files that were not applied, since one before them cannot be read
    waiting: tuple[str, ...]
    #: what was read and written
    ingest: IngestReport
    #: number of the version that readers see now
    version: int
    #: the index's name and that version, e.g. ``index@17``
    index: str
    seconds: float
    #: where the index was rebuilt; ``None``: it was not
    rebuilt: Rebuilt | None = None

    @property
    def nothing(self) -> bool:
        """Whether there was nothing to do."""
        return not self.applied and not self.waiting
