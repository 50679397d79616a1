"""Manifest of an index: the files that syncs have applied, and their counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from posology.errors import IndexUnfinished
from posology.index.connection import open_table, translated
from posology.index.maintenance import compact

_TABLE = "synced"


class State(StrEnum):
    """State of a file."""

    #: begun, possibly written in part
    BEGUN = "begun"
    #: one of the files that the index is being rebuilt from
    REBUILDING = "rebuilding"
    #: written, as far as it is readable
    APPLIED = "applied"


@dataclass(frozen=True, kw_only=True, slots=True)
class Applied:
    """A file that is applied, or begun."""

    #: file name, without its folder
    name: str
    #: bytes
    size: int
    mtime_ns: int
    #: MD5 as 32 hexadecimal digits
    md5: str
    state: State
    #: good records
    records: int = 0
    deletions: int = 0
    notices: int = 0
    #: unreadable records
    bad: int = 0
    #: error that prevents reading it to its end; ``None``: none
    broken: str | None = None
    #: time of application, ISO 8601, UTC; ``None``: not yet applied
    applied: str | None = None
    #: version that published it; ``None``: not yet published
    version: int | None = None


class Manifest:
    """The files of a sync, by name. Blocking; written under the index's lock.

    A file is recorded before any of its records is written to the index, so that an interrupted sync can be detected.
    """

    def __init__(self, connection: Any, uri: str) -> None:
        import pyarrow as pa

        whole = dict.fromkeys(
            ("size", "mtime_ns", "records", "deletions", "notices", "bad", "version"), pa.int64()
        )
        self._schema = pa.schema(
            [(name, whole.get(name, pa.string())) for name in Applied.__dataclass_fields__]
        )
        self._uri = uri
        with translated(uri):
            self._table = connection.create_table(_TABLE, schema=self._schema, exist_ok=True)
            self._table.checkout_latest()
        self.files = _read(self._table, uri)

    def write(self, *files: Applied) -> None:
        """Commit the rows of files."""
        if not files:
            return
        with translated(self._uri):
            merge = self._table.merge_insert("name").when_matched_update_all()
            merge.when_not_matched_insert_all().execute(self._rows(files))
        self.files |= {file.name: file for file in files}

    def replace(self, *files: Applied) -> None:
        """Commit these files in place of all others."""
        with translated(self._uri):
            self._table.add(self._rows(files), mode="overwrite")
        self.files = {file.name: file for file in files}

    def tidy(self) -> None:
        """Compact the table: each commit leaves a version."""
        with translated(self._uri):
            compact(self._table)

    def _rows(self, files: Iterable[Applied]) -> Any:
        import pyarrow as pa

        rows = [asdict(file) | {"state": str(file.state)} for file in files]
        return pa.Table.from_pylist(rows, schema=self._schema)


def applied_files(connection: Any, uri: str) -> tuple[Applied, ...]:
    """Return the applied files, by name; nothing is written.

    Raises:
        IndexFault: the manifest cannot be read.
    """
    table = open_table(connection, uri, _TABLE)
    if table is None:
        return ()
    files = _read(table, uri)
    return tuple(files[name] for name in sorted(files))


def unfinished(files: Iterable[Applied]) -> tuple[str, ...]:
    """Return the names of unpublished files."""
    return tuple(file.name for file in files if file.version is None)


def refuse_unfinished(connection: Any, uri: str) -> None:
    """Refuse to write while a sync is unfinished.

    Raises:
        IndexUnfinished: a sync or rebuild was interrupted; the message names the first unpublished file.
    """
    files = applied_files(connection, uri)
    waiting = unfinished(files)
    if any(file.state is State.REBUILDING for file in files):
        raise IndexUnfinished(
            f"a rebuild of the index at {uri} was interrupted: finish it with `posology sync DIR --rebuild`; until then "
            "readers see the old version",
            index=uri,
        )
    if waiting:
        raise IndexUnfinished(
            f"a sync of the index at {uri} was interrupted at {waiting[0]}: finish it with `posology sync DIR`; until then "
            "readers see the old version",
            index=uri,
        )


def _read(table: Any, uri: str) -> dict[str, Applied]:
    with translated(uri):
        rows = table.search().limit(max(table.count_rows(), 1)).to_arrow().to_pylist()
    return {row["name"]: Applied(**row | {"state": State(row["state"])}) for row in rows}
