"""JSON output of the commands around the index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from posology.index.sync.rebuilt import Rebuilt
from posology.published.base import Dollars, Published
from posology.types import FlagKind

if TYPE_CHECKING:
    from orchestrator.ingest.notices import NoticesReport
    from posology.index.build.report import IngestReport

_SAME = (
    "source", "unidentified", "bad", "withdrawn", "changed", "known", "index", "seconds",
)  # fmt: skip


class BadItem(Published):
    """A record or a file, and what of it cannot be read."""

    path: str
    line: int | None
    """Line, or number of the record in the file, from 1; null: the file could not be opened."""
    record: str | None = None
    """Id of the record, or the part of the file that is meant, e.g. `page 3`; null: unreadable, or it is a file."""
    reason: str


class SkippedItem(Published):
    """A file or folder in a given folder that is not read."""

    path: str
    reason: str


class IngestOutput(Published):
    """Output of ``posology ingest --json``."""

    good: int
    """Valid records."""
    written: int
    """Valid records that were embedded and written in this run."""
    unchanged: int
    """Valid records that were in the index already."""
    replaced: int
    """Valid records that a later record with the same id replaced."""
    bad: int
    """Invalid records."""
    bad_records: tuple[BadItem, ...]
    """The first invalid records, with the reason."""
    bad_files: tuple[BadItem, ...]
    """Files that cannot be read, or not to their end."""
    files: int
    """Files of the run."""
    seconds: float
    """Duration in seconds."""
    written_per_second: float
    """Written records per second."""
    removed: int = 0
    """Passages removed from the index: withdrawn, or no longer a part of their article."""
    warned: int = 0
    """Indexed passages whose marks of retraction or concern changed, because of notices in other records."""
    skipped: tuple[SkippedItem, ...] = ()
    """Files and folders in the given folders that were not read, with the reason."""
    remarked: int = 0
    """Remarks on records that were read, e.g. that a page of them was not; such records are valid."""
    remarks: tuple[BadItem, ...] = ()
    """The first remarks."""
    spent_usd: Dollars | None = None
    """Cost of bought vectors in dollars, unknown costs at their bounds; null: no vectors were bought."""


class NoticesOutput(Published):
    """Output of ``posology index notices --json``."""

    source: str
    """Name of the source."""
    retractions: int
    """Rows that state a retraction."""
    concerns: int
    """Rows that state an expression of concern."""
    corrections: int
    """Rows that state a correction."""
    reinstatements: int
    """Rows that state a reinstatement."""
    unidentified: int
    """Rows among these that name neither a PMID nor a DOI, and so fit no passage."""
    bad: int
    """Invalid rows, which were skipped."""
    bad_records: tuple[BadItem, ...]
    """The first invalid rows, with the reason."""
    withdrawn: int
    """Earlier reports of the source that the file no longer holds."""
    changed: int
    """Passages whose flags changed."""
    known: bool
    """Whether the index had these reports already, so that nothing was written."""
    index: str
    """Name and version of the published index."""
    seconds: float
    """Duration in seconds."""


class FileOutput(Published):
    """A file that a sync has applied."""

    name: str
    md5: str
    records: int
    """Valid records."""
    deletions: int
    """Withdrawn records."""
    notices: int
    """Notices of retraction or concern about other records."""
    bad: int
    """Invalid records."""
    broken: str | None
    """Reason why the file cannot be read to its end; null: it can."""
    applied: str | None
    """Time of application, ISO 8601, UTC."""
    version: int | None
    """Index version that published the file; null: not published yet."""


class VectorsOutput(Published):
    """Cost estimate of the vectors to buy; vectors bought before are not included."""

    embedder: str
    tenant: str
    passages: int
    """New and changed passages."""
    calls: int
    input_tokens: int
    """Expected input tokens."""
    expected_usd: Dollars
    """Expected cost in dollars."""
    worst_usd: Dollars
    """Maximum cost in dollars: with this cap no call is refused."""
    cap_usd: Dollars | None
    """Limit for all calls together in dollars; null: only the tenant's limits."""
    left_usd: dict[str, Dollars]
    """Remaining budget of the tenant in dollars, for each scope that has a limit."""


class ProspectOutput(Published):
    """Output of ``posology sync --dry-run --json``."""

    files: tuple[str, ...]
    """Names of the files to apply, in order."""
    again: tuple[str, ...]
    """Files among them that are applied again because an earlier file is applied."""
    revised: tuple[str, ...]
    """Files among them that were applied before with other content."""
    missing: tuple[str, ...]
    """Files of PubMed's numbering that are not in the folder."""
    waiting: tuple[str, ...]
    """Files that a rebuild would not apply, because one of them cannot be read; empty without a rebuild."""
    bad_files: tuple[BadItem, ...]
    """Files that cannot be read, or not to their end."""
    done: int
    """Number of files that are applied already."""
    index: str | None
    """Name and published version of the index; null: there is no index yet."""
    rebuild: Rebuilt | None
    """Changes of a rebuild; null: no rebuild, or a file cannot be read."""
    vectors: VectorsOutput | None
    """Cost of vectors to buy; null: vectors are computed on this machine."""


class SyncOutput(Published):
    """Output of ``posology sync --json``."""

    applied: tuple[FileOutput, ...]
    """Applied files, in order."""
    again: tuple[str, ...]
    """Files among them that were applied again because an earlier file was applied."""
    revised: tuple[str, ...]
    """Files among them that were applied before with other content."""
    missing: tuple[str, ...]
    """Files of PubMed's numbering that are not in the folder."""
    waiting: tuple[str, ...]
    """Files that were not applied, because a file before them cannot be read."""
    done: int
    """Number of files that had been applied already."""
    index: str
    """Name and published version of the index."""
    ingest: IngestOutput
    """Counts of records."""
    seconds: float
    """Duration in seconds."""
    rebuild: Rebuilt | None = None
    """Changes of the rebuild; null: the index was not rebuilt."""


class VersionOutput(Published):
    """A version of an index that can be read."""

    index: str
    """Name and version, e.g. `index@17`."""
    number: int
    """Number of the version."""
    published: str
    """Time of publication, ISO 8601, UTC."""
    until: str | None
    """Time until which it stays readable, ISO 8601, UTC; null: it is the newest."""
    passages: int
    """Passages."""
    retracted: int
    """Retracted passages among them."""


class VersionsOutput(Published):
    """Output of ``posology index versions --json``."""

    versions: tuple[VersionOutput, ...]
    """Readable versions, oldest first; the last is the newest."""


class IndexOutput(Published):
    """Output of ``posology index info --json``."""

    uri: str
    """Folder or address of the index."""
    version: str
    """Name and published version, e.g. `index@17`."""
    passages: int
    """Passages."""
    retracted: int
    """Retracted passages among them."""
    embedder: str
    """Embedder of passages and questions."""
    dim: int
    """Dimensions of a vector."""
    format: int
    """Version of the storage format."""
    splitter: int
    """Version of the sentence splitter."""
    created: str
    """Time of creation, ISO 8601, UTC."""
    vector_index: str | None
    """Kind of the approximate vector index; null: the search compares every vector."""
    recall: float | None = None
    """Measured share of the 16 nearest passages that the approximate search finds; null: exact, or not measured."""
    probes: int | None = None
    """Partitions of the vector index that a search reads; null: the search is exact."""
    partitions: int | None = None
    """Partitions of the vector index; null: the search is exact."""
    annotator: str | None
    """Model that annotated the phrases with their self-information, for compressors; null: none."""
    published: str | None = None
    """Time of the last publication, ISO 8601, UTC; null: unknown."""
    versions: int = 1
    """Number of readable versions."""
    files: int = 0
    """Number of files that syncs have applied."""
    last_file: str | None = None
    """Name of the last applied file, in NLM's order; null: none."""
    unfinished: tuple[str, ...] = ()
    """Files that an interrupted sync has applied or begun, and not published."""
    codec: str | None
    """Codec of the passages' token vectors, for compressors that read them; null: none are stored."""
    growth: str | None = None
    """How far the first ingest is, in words; null: it is complete."""
    articles: int = 0
    """Articles, each counted once, however many passages it has."""
    first_year: int | None = None
    """First year of publication; null: no passage has one."""
    last_year: int | None = None
    """Last year of publication; null: no passage has one."""
    sources: dict[str, int] = Field(default_factory=dict)
    """Number of passages by collection, largest first; `unknown`: they name none."""
    years: dict[int, int] = Field(default_factory=dict)
    """Number of passages by year of publication; those without a year are left out."""
    types: dict[str, int] = Field(default_factory=dict)
    """Number of passages by publication type, largest first; a passage may have several."""
    bytes: int | None = None
    """Size of the index's folder in bytes, all versions; null: object storage."""
    incomplete: int = 0
    """Passages that can be found, and whose sentences and tokens are not encoded yet: `ingest` completes them."""
    without_roles: int = 0
    """Passages of an earlier version whose sentences have no roles: `index upgrade` adds them."""


class UpgradeOutput(Published):
    """Output of ``posology index upgrade --json``."""

    written: int
    """Passages whose sentences got roles."""
    left: int
    """Encoded passages whose sentences have none: no trained head knows the index's embedder."""
    version: str
    """Name and version of the index after it, e.g. `index@18`."""
    seconds: float
    """Duration in seconds."""


def ingest_output(report: IngestReport) -> IngestOutput:
    """The published form of an ingest's report."""
    return IngestOutput(
        good=report.good,
        written=report.written,
        unchanged=report.unchanged,
        replaced=report.replaced,
        bad=report.bad,
        bad_records=tuple(map(BadItem.of, report.bad_records)),
        bad_files=tuple(map(BadItem.of, report.bad_files)),
        files=report.files,
        seconds=report.seconds,
        written_per_second=report.rate,
        removed=report.removed,
        warned=report.warned,
        skipped=tuple(SkippedItem(path=str(one.path), reason=one.reason) for one in report.skipped),
        remarked=report.remarked,
        remarks=tuple(
            BadItem(path=str(one.path), line=one.line, record=one.record, reason=one.reason)
            for one in report.remarks
        ),
    )


def notices_output(report: NoticesReport) -> NoticesOutput:
    """Return the published form of a report on a file of notices."""
    fields = {name: getattr(report, name) for name in _SAME}
    return NoticesOutput(
        **fields,
        retractions=report.kinds.get(FlagKind.RETRACTION, 0),
        concerns=report.kinds.get(FlagKind.CONCERN, 0),
        corrections=report.kinds.get(FlagKind.CORRECTION, 0),
        reinstatements=report.kinds.get(FlagKind.REINSTATEMENT, 0),
        bad_records=tuple(map(BadItem.of, report.bad_records)),
    )
