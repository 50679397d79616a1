"""JSON output of the commands around the index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from posology.errors import BadFile, BadRecord
from posology.published.base import Dollars, Published

if TYPE_CHECKING:
    from posology.index.build.report import IngestReport


class BadItem(Published):
    """A record or a file that cannot be read."""

    path: str
    line: int | None
    """its line, or its place among the file's records, from 1; null: the file did not open"""
    record: str | None = None
    """its id; null: it has none that can be read, or it is a file"""
    reason: str


class SkippedItem(Published):
    """A file or folder in a given folder that is not read."""

    path: str
    reason: str


class IngestOutput(Published):
    """Output of ``posology ingest --json``."""

    good: int
    """records that can be read"""
    written: int
    """of these, records that were embedded and written in this run"""
    unchanged: int
    """of these, records that were in the index already"""
    replaced: int
    """of these, records whose id came again at once"""
    bad: int
    bad_records: tuple[BadItem, ...]
    """the first of them"""
    bad_files: tuple[BadItem, ...]
    """files that cannot be read, or not to their end"""
    files: int
    seconds: float
    written_per_second: float
    removed: int = 0
    """passages that are gone: withdrawn, or no part of their article any more"""
    warned: int = 0
    """passages that were in the index and are told to be retracted, or of concern, or not any more, by others' notices"""
    skipped: tuple[SkippedItem, ...] = ()
    """files and subfolders in the given folders that are not read, with the reason"""
    spent_usd: Dollars | None = None
    """for vectors that are bought, unknown costs at their bounds; null: none are paid for"""


class FileOutput(Published):
    """A file that a sync has applied."""

    name: str
    md5: str
    records: int
    """good ones"""
    deletions: int
    notices: int
    """in which one record tells of another that it is retracted, or that there is concern about it"""
    bad: int
    broken: str | None
    """why it cannot be read to its end; null: it can"""
    applied: str | None
    """when, ISO 8601, UTC"""
    version: int | None
    """the version with which readers got it; null: not yet"""


class RebuildOutput(Published):
    """An index beside the files from which it is rebuilt: passages, and files."""

    passages: int
    """that the files hold, taken together"""
    new: int
    """of these, that are not in the index"""
    changed: int
    """of these, that are in the index with another content"""
    unchanged: int
    """of these, that are in the index as they are; they are not encoded again"""
    removed: int
    """that readers see before it, and that none of the files holds, whoever put them there"""
    published: int
    """that readers see before it"""
    forgotten: tuple[str, ...]
    """names of files that had been applied and are not in the folder"""
    ingested: tuple[str, ...]
    """files that `posology ingest` had read and that are not in the folder"""


class VectorsOutput(Published):
    """Cost estimate of the vectors to buy; vectors bought before are not included."""

    embedder: str
    tenant: str
    passages: int
    """that are new, or have changed"""
    calls: int
    input_tokens: int
    """at best guess"""
    expected_usd: Dollars
    """at best guess"""
    worst_usd: Dollars
    """with this as its cap nothing is refused"""
    cap_usd: Dollars | None
    """what all calls may cost together; null: no limit but the tenant's"""
    left_usd: dict[str, Dollars]
    """what the tenant has left, by scope, where there is a limit"""


class ProspectOutput(Published):
    """Output of ``posology sync --dry-run --json``."""

    files: tuple[str, ...]
    """that are to be applied, in order"""
    again: tuple[str, ...]
    """files among them that were applied before, and are again since an earlier one is"""
    revised: tuple[str, ...]
    """files among them that were applied before with another content"""
    missing: tuple[str, ...]
    """files that the numbering wants and that are not there"""
    waiting: tuple[str, ...]
    """files that would not be applied, since one of them cannot be read; only a rebuild looks"""
    bad_files: tuple[BadItem, ...]
    """files that cannot be read, or not to their end"""
    done: int
    """files that are applied already"""
    index: str | None
    """name and version that readers see now; null: there is no index yet"""
    rebuild: RebuildOutput | None
    """null: the index is not to be rebuilt, or files wait"""
    vectors: VectorsOutput | None
    """null: they are computed on this machine"""


class SyncOutput(Published):
    """Output of ``posology sync --json``."""

    applied: tuple[FileOutput, ...]
    """in order"""
    again: tuple[str, ...]
    """files among them that were applied before, and were again since an earlier one was"""
    revised: tuple[str, ...]
    """files among them that were applied before with another content"""
    missing: tuple[str, ...]
    """files that the numbering wants and that are not there"""
    waiting: tuple[str, ...]
    """files that were not applied, since one before them cannot be read"""
    done: int
    """files that had been applied already"""
    index: str
    """name and version that readers see now"""
    ingest: IngestOutput
    seconds: float
    rebuild: RebuildOutput | None = None
    """null: the index was not rebuilt"""


class VersionOutput(Published):
    """A version of an index that can be read."""

    index: str
    """name and version, e.g. ``index@17``"""
    number: int
    published: str
    """ISO 8601, UTC"""
    until: str | None
    """when it may be removed, ISO 8601, UTC; null: it is the newest"""
    passages: int
    retracted: int


class VersionsOutput(Published):
    """Output of ``posology index versions --json``."""

    versions: tuple[VersionOutput, ...]
    """oldest first; the last is what is read when nothing else is asked for"""


class IndexOutput(Published):
    """Output of ``posology index info --json``."""

    uri: str
    version: str
    passages: int
    retracted: int
    embedder: str
    dim: int
    format: int
    splitter: int
    created: str
    vector_index: str | None
    """null while the index is so small that every vector is compared"""
    recall: float | None = None
    """share of the 16 nearest that its search finds, as measured when it was built; null where it is exact or was not measured"""
    probes: int | None = None
    """parts of the vectors' index that a question looks into; null: all"""
    partitions: int | None = None
    """parts that it has; null where it is exact"""
    annotator: str | None
    """what told how much each phrase says, for compressed RAG; null where nothing did"""
    published: str | None = None
    """when this version was published, ISO 8601, UTC; null: not known"""
    versions: int = 1
    """how many versions can be read"""
    files: int = 0
    """files that syncs have applied"""
    last_file: str | None = None
    """the last of them in order"""
    unfinished: tuple[str, ...] = ()
    """files that a sync has applied, or begun, and not published"""
    codec: str | None
    """Codec of the passages' token vectors, for compressors that read them; null: none are stored."""
    growth: str | None = None
    """How far the first ingest is, in words; null: it is complete."""


def ingest_output(report: IngestReport) -> IngestOutput:
    """The published form of an ingest's report."""
    return IngestOutput(
        good=report.good,
        written=report.written,
        unchanged=report.unchanged,
        replaced=report.replaced,
        bad=report.bad,
        bad_records=tuple(_bad(item) for item in report.bad_records),
        bad_files=tuple(_bad(item) for item in report.bad_files),
        files=report.files,
        seconds=report.seconds,
        written_per_second=report.rate,
        removed=report.removed,
        warned=report.warned,
        skipped=tuple(SkippedItem(path=str(one.path), reason=one.reason) for one in report.skipped),
    )


def _bad(item: BadRecord | BadFile) -> BadItem:
    record = item.record if isinstance(item, BadRecord) else None
    return BadItem(path=item.path, line=item.line, record=record, reason=item.reason)
