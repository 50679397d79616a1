"""Ingest progress of each corpus file, stored beside the passages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from posology.index.connection import translated
from posology.index.maintenance import compact
from posology.index.search.filters import quoted

_TABLE = "ingested"
#: marks between two compactions of the table: each leaves a version of three small files, and all of PubMed writes
#: some fifty thousand marks
TIDY_EVERY = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """The point up to which a file is in the index."""

    #: resolved path
    path: str
    #: bytes
    size: int
    mtime_ns: int
    #: identity of the vectors that came with it, and of the columns that were named for it; empty: neither
    vectors: str
    #: the last committed line
    line: int
    #: good records among these lines
    good: int
    #: bad records among these lines; if there are any, every run reads the lines again to report them
    bad: int
    #: whether the file is committed to its end
    done: bool
    #: deletions among these lines
    deletions: int = 0
    #: notices among these lines
    notices: int = 0

    @classmethod
    def start(cls, path: Path, vectors: str) -> Self:
        """Return the mark of a file of which nothing is in the index."""
        stat = path.stat()
        return cls(
            path=str(path.resolve()),
            size=stat.st_size,
            mtime_ns=stat.st_mtime_ns,
            vectors=vectors,
            line=0,
            good=0,
            bad=0,
            done=False,
        )

    def same_file(self, other: Mark) -> bool:
        """Return whether both marks are of one file with one content."""
        return self._identity() == other._identity()

    def _identity(self) -> tuple[str, int, int, str]:
        return (self.path, self.size, self.mtime_ns, self.vectors)


class Progress:
    """The marks of all files, in a table of their own, so that object storage holds them too.

    A mark is written after the passages that it covers: work lost in a crash is repeated, and repeating an upsert
    changes nothing.
    """

    def __init__(self, connection: Any) -> None:
        import pyarrow as pa

        kinds = {"size": pa.int64(), "mtime_ns": pa.int64(), "done": pa.bool_()}
        kinds |= dict.fromkeys(("line", "good", "bad", "deletions", "notices"), pa.int64())
        fields = [(name, kinds.get(name, pa.string())) for name in Mark.__dataclass_fields__]
        self._schema = pa.schema(fields)
        self._uri = str(connection.uri)
        with translated(self._uri):
            self._table = connection.create_table(_TABLE, schema=self._schema, exist_ok=True)
            found = self._table.search().limit(self._table.count_rows() or 1).to_arrow()
        self._marks = {row["path"]: Mark(**row) for row in found.to_pylist()}
        #: marks since the last compaction
        self._written = 0

    def resume(self, start: Mark) -> Mark:
        """Return the mark to resume from: ``start`` itself when the file is new or has changed."""
        known = self._marks.get(start.path)
        return known if known and known.same_file(start) else start

    def write(self, mark: Mark) -> None:
        """Commit a mark."""
        import pyarrow as pa

        rows = pa.Table.from_pylist([asdict(mark)], schema=self._schema)
        with translated(self._uri):
            merge = self._table.merge_insert("path").when_matched_update_all()
            merge.when_not_matched_insert_all().execute(rows)
        self._marks[mark.path] = mark
        self._written += 1
        if self._written >= TIDY_EVERY:
            self.tidy()

    def forget(self, files: Iterable[Path]) -> None:
        """Treat files as new ones."""
        known = self._marks.keys() & {str(file.resolve()) for file in files}
        if not known:
            return
        with translated(self._uri):
            self._table.delete(f"path IN ({quoted(sorted(known))})")
        for path in known:
            del self._marks[path]

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the paths of the files that have marks, sorted."""
        return tuple(sorted(self._marks))

    def clear(self) -> None:
        """Treat all files as new ones."""
        if self._marks:
            with translated(self._uri):
                self._table.delete("true")
            self._marks.clear()

    def tidy(self) -> None:
        """Compact the table: each batch leaves a version."""
        with translated(self._uri):
            compact(self._table)
        self._written = 0
