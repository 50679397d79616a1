"""How far each corpus file has been ingested, kept beside the passages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from posology.index.connection import translated
from posology.index.maintenance import compact

_TABLE = "ingested"
#: marks after which the table is compacted: each leaves a version of three small files, and all of PubMed has some
#: fifty thousand of them
TIDY_EVERY = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """Up to where a file is in the index."""

    #: resolved path
    path: str
    #: bytes
    size: int
    mtime_ns: int
    #: identity of the vectors that came with it; empty when the embedder made them
    vectors: str
    #: the last line that is committed
    line: int
    #: good records among these lines
    good: int
    #: bad records among them; where there are any, every run reads these lines again to report them
    bad: int
    #: read to its end
    done: bool
    #: deletions among these lines
    deletions: int = 0
    #: notices among them
    notices: int = 0

    @classmethod
    def start(cls, path: Path, vectors: str) -> Self:
        """Nothing of the file is in the index."""
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
        """Whether both are of one file with one content."""
        return self._identity() == other._identity()

    def _identity(self) -> tuple[str, int, int, str]:
        return (self.path, self.size, self.mtime_ns, self.vectors)


class Progress:
    """The marks of all files, in a table of their own so that object storage holds them too.

    A mark is written after the passages that it speaks of: what a crash loses is repeated, and
    repeating an upsert changes nothing.
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
        #: marks since the table was compacted
        self._written = 0

    def resume(self, start: Mark) -> Mark:
        """The mark to go on from: ``start`` itself when the file is new or has changed."""
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
        """Take files for new ones."""
        known = self._marks.keys() & {str(file.resolve()) for file in files}
        if not known:
            return
        quoted = ", ".join("'" + path.replace("'", "''") + "'" for path in sorted(known))
        with translated(self._uri):
            self._table.delete(f"path IN ({quoted})")
        for path in known:
            del self._marks[path]

    @property
    def paths(self) -> tuple[str, ...]:
        """Of the files that have marks, sorted."""
        return tuple(sorted(self._marks))

    def clear(self) -> None:
        """Take all files for new ones."""
        if self._marks:
            with translated(self._uri):
                self._table.delete("true")
            self._marks.clear()

    def tidy(self) -> None:
        """Compact the table, of which every batch left a version."""
        with translated(self._uri):
            compact(self._table)
        self._written = 0
