"""Which files of the literature have been applied to an index, and what came of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from posology.errors import IndexFault, IndexUnfinished
from posology.index.connection import translated
from posology.index.maintenance import compact

_TABLE = "synced"


class State(StrEnum):
    """How far a file is."""

    #: begun, and perhaps partly written
    BEGUN = "begun"
    #: one of those from which the index is being rebuilt
    REBUILDING = "rebuilding"
    #: written, as far as it can be read
    APPLIED = "applied"


@dataclass(frozen=True, kw_only=True, slots=True)
class Applied:
    """A file that was applied, or is being."""

    #: without its folder
    name: str
    #: bytes
    size: int
    mtime_ns: int
    #: its MD5 as 32 hexadecimal digits
    md5: str
    state: State
    #: good records
    records: int = 0
    deletions: int = 0
    notices: int = 0
    #: records that cannot be read
    bad: int = 0
    #: why it cannot be read to its end; ``None``: it can
    broken: str | None = None
    #: when it was applied, ISO 8601, UTC; ``None``: not yet
    applied: str | None = None
    #: the version with which it was published; ``None``: not yet
    version: int | None = None


class Manifest:
    """The files of a sync, by name. Blocking; written under the index's lock.

    A file is written down before anything of it is written to the index, so that a sync that was broken off is seen
    from outside.
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
        """Commit what became of files."""
        if not files:
            return
        with translated(self._uri):
            merge = self._table.merge_insert("name").when_matched_update_all()
            merge.when_not_matched_insert_all().execute(self._rows(files))
        self.files |= {file.name: file for file in files}

    def replace(self, *files: Applied) -> None:
        """Commit that these files are all that has been applied."""
        with translated(self._uri):
            self._table.add(self._rows(files), mode="overwrite")
        self.files = {file.name: file for file in files}

    def tidy(self) -> None:
        """Compact the table, of which every commit left a version."""
        with translated(self._uri):
            compact(self._table)

    def _rows(self, files: Iterable[Applied]) -> Any:
        import pyarrow as pa

        rows = [asdict(file) | {"state": str(file.state)} for file in files]
        return pa.Table.from_pylist(rows, schema=self._schema)


def applied_files(connection: Any, uri: str) -> tuple[Applied, ...]:
    """What has been applied, by name; nothing is written.

    Raises:
        IndexFault: it cannot be read.
    """
    try:
        table = connection.open_table(_TABLE)
    except (OSError, RuntimeError, ValueError) as error:
        if "was not found" in str(error):
            return ()
        raise IndexFault(f"the index at {uri} cannot be read: {error}", index=uri) from error
    files = _read(table, uri)
    return tuple(files[name] for name in sorted(files))


def unfinished(files: Iterable[Applied]) -> tuple[str, ...]:
    """Names of the files that are not published yet."""
    return tuple(file.name for file in files if file.version is None)


def refuse_unfinished(connection: Any, uri: str) -> None:
    """See that nothing is published in the middle of a sync.

    Raises:
        IndexUnfinished: naming the first file that is not published.
    """
    files = applied_files(connection, uri)
    waiting = unfinished(files)
    if any(file.state is State.REBUILDING for file in files):
        raise IndexUnfinished(
            f"a rebuild of the index at {uri} was broken off: finish it with `posology sync DIR --rebuild` before "
            "anything else is written; until then readers see what it was before",
            index=uri,
        )
    if waiting:
        raise IndexUnfinished(
            f"a sync of the index at {uri} was broken off at {waiting[0]}: finish it with `posology sync` before "
            "anything else is written; until then readers see what it was before",
            index=uri,
        )


def _read(table: Any, uri: str) -> dict[str, Applied]:
    with translated(uri):
        rows = table.search().limit(max(table.count_rows(), 1)).to_arrow().to_pylist()
    return {row["name"]: Applied(**row | {"state": State(row["state"])}) for row in rows}
