"""Taking in a file of notices as the command does it."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from posology.corpus.retractions import read
from posology.errors import BadFile, BadRecord, InvalidQuery, SyncRefused
from posology.index.build.report import LISTED
from posology.index.store import Index
from posology.index.sync.reports import Report
from posology.types import FlagKind
from posology.types.flags import NOTICE, OWN

#: name of Retraction Watch's file as a source
RETRACTION_WATCH = "retraction-watch"
#: share of a source's reports that a newer file may lack
MOST_WITHDRAWN = 0.1

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True, kw_only=True, slots=True)
class NoticesReport:
    """Counts of a file that was taken in."""

    source: str
    #: readable rows, by kind
    kinds: Mapping[FlagKind, int]
    #: readable rows that name neither a PMID nor a DOI, and so no passage
    unidentified: int
    #: rows that cannot be read
    bad: int
    #: the first :data:`~posology.index.build.report.LISTED` of these
    bad_records: tuple[BadRecord, ...]
    #: earlier reports of the source that the file no longer holds
    withdrawn: int
    #: passages whose flags changed
    changed: int
    #: whether the index had these reports already; nothing was written then
    known: bool
    #: name and version of the published index
    index: str
    seconds: float


def take_notices(
    path: Path, index: Index, *, source: str = RETRACTION_WATCH, allow_removals: bool = False
) -> NoticesReport:
    """Take in a file of Retraction Watch's form, in place of the source's earlier one. Blocking.

    No passage is encoded, and one version is published. The same file once more changes nothing; after an interruption
    the next run completes it.

    Args:
        path: the file, complete.
        index: the index to write.
        source: name of the source.
        allow_removals: whether more than :data:`MOST_WITHDRAWN` of the source's earlier reports may be missing.

    Raises:
        InvalidQuery: the name of the source is malformed, or taken by Posology's own sources.
        BadFile: the file cannot be read to its end; nothing is written.
        SyncRefused: too many earlier reports are missing from the file; nothing is written.
        IndexLocked: another process is writing the index.
        IndexUnfinished: a sync of it was interrupted.
    """
    started = time.monotonic()
    if not _NAME.fullmatch(source) or source in (OWN, NOTICE):
        raise InvalidQuery(
            f"{source!r} is not the name of a source: use up to 64 letters, digits, '_', '.' and '-', other than {OWN} "
            f"and {NOTICE}",
            field="source",
        )
    kinds: Counter[FlagKind] = Counter()
    reports: set[Report] = set()
    bad: list[BadRecord] = []
    bad_rows = unidentified = 0
    for item in read(path):
        match item:
            case BadFile():
                raise item
            case BadRecord():
                bad_rows += 1
                bad += [item] if len(bad) < LISTED else []
            case _:
                kinds[item.kind] += 1
                report = Report(
                    kind=item.kind, pmid=item.pmid, doi=item.doi, by=item.by, date=item.date
                )
                if report.targets:
                    reports.add(report)
                else:
                    unidentified += 1
    with index.lock:
        before = index.reports.get(source, frozenset())
        withdrawn = len(before - reports)
        if withdrawn > MOST_WITHDRAWN * len(before) and not allow_removals:
            raise SyncRefused(
                f"{path} lacks {withdrawn:,} of the {len(before):,} reports of {source} in the index: is it complete? "
                "--allow-removals withdraws them",
                files=(path.name,),
            )
        changed = index.report(source, reports)
    return NoticesReport(
        source=source,
        kinds=kinds,
        unidentified=unidentified,
        bad=bad_rows,
        bad_records=tuple(bad),
        withdrawn=withdrawn,
        changed=changed or 0,
        known=changed is None,
        index=index.version,
        seconds=time.monotonic() - started,
    )
