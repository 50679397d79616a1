"""When an ingest writes what it has computed, and when readers of a growing index see it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from posology.index.build.report import Tally
from posology.index.schema import Row
from posology.index.store import Index
from posology.types import Growth

#: maximum seconds between two commits while rows are computed
COMMIT_SECONDS = 20.0
#: records after which readers of a growing index see a new version, however quick the ingest is
PUBLISH_RECORDS = 500
#: least growth between two versions, as a share of what is indexed: a million passages make some 250 versions, not 2,000
PUBLISH_SHARE = 0.02


@dataclass(slots=True)
class Pace:
    """Writes rows in time, and publishes a first ingest while it runs.

    Only a first ingest is published in parts: it shows less than the whole and says so. A later one could show an older
    record of a passage than before, so readers see all of it together.
    """

    index: Index
    tally: Tally
    #: records of all files; ``None``: readers see all of the ingest at its end
    total: int | None = None
    #: called after each computed row
    row: Callable[[], None] = lambda: None
    #: seconds, growing
    clock: Callable[[], float] = time.monotonic
    _committed: float = field(init=False)
    #: records that readers see
    _shown: int = field(init=False, default=0)
    #: rows of the batch at hand
    _rows: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._committed = self.clock()

    def take(self, rows: list[Row]) -> None:
        """Write rows of an unfinished batch, and clear them, if the last commit was too long ago.

        Args:
            rows: computed and not written yet, at least one.
        """
        self._rows += 1
        self.row()
        if self.clock() - self._committed >= COMMIT_SECONDS:
            self.index.upsert(rows)
            rows.clear()
            self._show(self.tally.seen + self._rows)

    def end(self) -> None:
        """Count a batch as committed."""
        self._rows = 0
        self._show(self.tally.seen)

    def _show(self, done: int) -> None:
        waited = self.clock() - self._committed
        self._committed = self.clock()
        if self.total is None:
            return
        new = done - self._shown
        enough = new >= PUBLISH_RECORDS or waited >= COMMIT_SECONDS
        if enough and new >= PUBLISH_SHARE * self._shown:
            self.index.publish(Growth(done=done, total=max(self.total, done)))
            self._shown = done
