"""Reports of files about the standing of articles, stored beside the notices of records.

A file, such as Retraction Watch's, is complete: its reports replace all earlier ones of its source. They survive a sync
and a rebuild, which know nothing of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from posology.index.connection import translated
from posology.index.maintenance import compact
from posology.types import Flag, FlagKind

_TABLE = "reports"
_NOTHING: frozenset[Flag] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """A file's statement about one article."""

    kind: FlagKind
    #: the article's PubMed identifier; ``None``: unknown
    pmid: str | None = None
    #: the article's DOI in lower case; ``None``: unknown
    doi: str | None = None
    #: id of the published notice; ``None``: unknown
    by: str | None = None
    #: ISO 8601; ``None``: unknown
    date: str | None = None

    @property
    def targets(self) -> tuple[str, ...]:
        """Return the targets that it names, as passages write them."""
        numbers = (("pmid", self.pmid), ("doi", self.doi))
        return tuple(f"{kind}:{value}" for kind, value in numbers if value)

    def flag(self, source: str) -> Flag:
        """Return this report as a flag of a passage."""
        return Flag(kind=self.kind, source=source, by=self.by, date=self.date)


#: reports, by the name of their source
ReportsBySource: TypeAlias = Mapping[str, AbstractSet[Report]]


class Reported:
    """The reports of all sources, looked up by target. It is made once for many batches of notices.

    Args:
        by_source: the reports.
    """

    def __init__(self, by_source: ReportsBySource) -> None:
        self.by_source: ReportsBySource = {name: some for name, some in by_source.items() if some}
        found: dict[str, set[Flag]] = {}
        for source, some in self.by_source.items():
            for report in some:
                for target in report.targets:
                    found.setdefault(target, set()).add(report.flag(source))
        self._of = {target: frozenset(flags) for target, flags in found.items()}

    def of(self, target: str) -> frozenset[Flag]:
        """Return the flags of a target."""
        return self._of.get(target, _NOTHING)

    def after(self, source: str, reports: AbstractSet[Report]) -> Reported:
        """Return all reports after those of a source replaced its earlier ones."""
        return Reported({**self.by_source, source: frozenset(reports)})

    def differing(self, other: Reported) -> frozenset[str]:
        """Return the targets about which some report differs."""
        none: frozenset[Report] = frozenset()
        return frozenset(
            target
            for name in {*self.by_source, *other.by_source}
            for report in self.by_source.get(name, none) ^ other.by_source.get(name, none)
            for target in report.targets
        )


class Reports:
    """All reports of an index. Blocking; under the index's lock.

    Args:
        connection: LanceDB's.
        uri: the index's.
    """

    def __init__(self, connection: Any, uri: str) -> None:
        import pyarrow as pa

        self._uri = uri
        names = ("source", *Report.__dataclass_fields__)
        self._schema = pa.schema([(name, pa.string()) for name in names])
        with translated(uri):
            self._table = connection.create_table(_TABLE, schema=self._schema, exist_ok=True)
            self._table.checkout_latest()
            rows = self._table.search().limit(max(self._table.count_rows(), 1)).to_arrow()
        found: dict[str, set[Report]] = {}
        for row in rows.to_pylist():
            source, kind = row.pop("source"), FlagKind(row.pop("kind"))
            found.setdefault(source, set()).add(Report(kind=kind, **row))
        self.reported = Reported(found)

    def replace(self, reported: Reported) -> None:
        """Store these reports in place of all others, in one commit.

        Raises:
            IndexFault: it cannot be written.
        """
        import pyarrow as pa

        rows = [
            {"source": name, **asdict(report)}
            for name, some in reported.by_source.items()
            for report in some
        ]
        with translated(self._uri):
            self._table.add(pa.Table.from_pylist(rows, schema=self._schema), mode="overwrite")
        self.reported = reported

    def tidy(self) -> None:
        """Compact the table: each commit leaves a version."""
        with translated(self._uri):
            compact(self._table)
