"""The index: passages, vectors and full text in one LanceDB table."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from posology.errors import IndexFault, IndexMismatch, IndexMissing
from posology.index.faults import translated
from posology.index.lock import WriteLock
from posology.index.maintenance import (
    APPROXIMATE_FROM,
    EXACT_FROM,
    compact,
    prepare,
    tune,
    vector_index,
)
from posology.index.schema import (
    FORMAT,
    SPLITTER,
    TABLE,
    Meta,
    Row,
    arrow_schema,
    read_meta,
    to_arrow,
)
from posology.index.view import View
from posology.types import Ranking, Retrieved

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: seconds after which a reader looks whether there is a newer version
FRESH = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexInfo:
    """What there is to say of an index."""

    #: where it lies
    uri: str
    #: name and version, e.g. ``index@17``
    version: str
    passages: int
    retracted: int
    #: name of the embedder that made its vectors
    embedder: str
    dim: int
    format: int
    splitter: int
    #: ISO 8601, UTC
    created: str
    #: kind of the vectors' index; ``None``: every vector is read at every question
    vector_index: str | None


class Index:
    """Passages that can be searched. Blocking: call it from a worker thread.

    Build it with :meth:`create`, :meth:`open` or :meth:`open_or_create`, and in each process
    anew: LanceDB does not survive a fork.
    """

    def __init__(self, uri: str, connection: Any, table: Any, meta: Meta) -> None:
        self.uri = uri
        self.meta = meta
        #: hold it over several writes, which then build on the newest version; each write takes it
        #: by itself too
        self.lock = WriteLock(_folder(uri), taken=self._catch_up)
        #: LanceDB's, for what else is kept beside the passages
        self.connection = connection
        self._table = table
        self._view: View | None = None
        self._looked = 0.0
        self._process = os.getpid()

    @classmethod
    def create(cls, uri: str | Path, embedder_name: str, dim: int) -> Self:
        """A new, empty index.

        Args:
            uri: a folder, made if need be, or an address that LanceDB understands (``s3://…``).
            embedder_name: of the embedder that will make all its vectors.
            dim: length of these vectors.

        Raises:
            IndexFault: there is one already.
            IndexLocked: another process is writing there.
        """
        where = str(uri)
        meta = Meta(
            format=FORMAT,
            embedder=embedder_name,
            dim=dim,
            splitter=SPLITTER,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        with WriteLock(_folder(where)):
            connection = _connect(where)
            if _open_table(connection, where) is not None:
                raise IndexFault(f"{where} holds an index already", index=where)
            with translated(where):
                prepare(connection.create_table(TABLE, schema=arrow_schema(meta)))
        return cls.open(where)

    @classmethod
    def open(cls, uri: str | Path) -> Self:
        """An index that is there.

        Raises:
            IndexMissing: there is none.
            IndexMismatch: it is of another format.
            IndexFault: it cannot be read.
        """
        where = str(uri)
        folder = _folder(where)
        missing = IndexMissing(
            f"there is no index at {where}: build one with `posology ingest`", index=where
        )
        try:
            if folder is not None and not folder.is_dir():
                raise missing
        except OSError as error:
            raise IndexFault(
                f"the index at {where} cannot be read: {error.strerror}", index=where
            ) from error
        connection = _connect(where)
        table = _open_table(connection, where)
        if table is None:
            raise missing
        meta = read_meta(table.schema)
        if meta is None or (meta.format, meta.splitter) != (FORMAT, SPLITTER):
            raise IndexMismatch(
                f"the index at {where} was made by another version of Posology: build it anew",
                index=where,
            )
        return cls(where, connection, table, meta)

    @classmethod
    def open_or_create(cls, uri: str | Path, embedder_name: str, dim: int) -> Self:
        """The index at ``uri``, made if there is none.

        Raises:
            IndexMismatch: it was made with another embedder.
        """
        try:
            index = cls.open(uri)
        except IndexMissing:
            return cls.create(uri, embedder_name, dim)
        index.require(embedder_name, dim)
        return index

    def require(self, embedder_name: str, dim: int) -> None:
        """Refuse an embedder whose vectors are not this index's.

        Raises:
            IndexMismatch: naming both embedders.
        """
        if (embedder_name, dim) != (self.meta.embedder, self.meta.dim):
            raise IndexMismatch(
                f"the index at {self.uri} was made with {self.meta.embedder} "
                f"({self.meta.dim} dimensions), not with {embedder_name} ({dim}): "
                "use that embedder, or build a new index",
                index=self.uri,
            )

    @property
    def name(self) -> str:
        """The last part of its address."""
        return Path(self.uri).name or "index"

    @property
    def version(self) -> str:
        """Name and version, e.g. ``index@17``."""
        return self.view().version

    def view(self) -> View:
        """The newest version, to read from; looks for one at most every :data:`FRESH` seconds."""
        if os.getpid() != self._process:
            raise IndexFault(
                "the index was opened before this process was forked: open it here",
                index=self.uri,
            )
        now = time.monotonic()
        view = self._view
        if view is None or now - self._looked > FRESH:
            table = _open_table(self.connection, self.uri)
            if table is None:
                raise IndexMissing(f"the index at {self.uri} is gone", index=self.uri)
            with translated(self.uri):
                if view is None or view.number != table.version:
                    approximate = vector_index(table) == "IvfHnswSq"
                    view = View(table, uri=self.uri, name=self.name, approximate=approximate)
            self._view, self._looked = view, now
        return view

    def count(self) -> int:
        """How many passages there are."""
        return self.view().count()

    def fetch(self, ids: Sequence[str]) -> tuple[Retrieved, ...]:
        """See :meth:`View.fetch`."""
        return self.view().fetch(ids)

    def dense(self, vector: NDArray[np.float32], k: int, *, retracted: bool = False) -> Ranking:
        """See :meth:`View.dense`."""
        return self.view().dense(vector, k, retracted=retracted)

    def bm25(self, text: str, k: int, *, retracted: bool = False) -> Ranking:
        """See :meth:`View.bm25`."""
        return self.view().bm25(text, k, retracted=retracted)

    def digests(self, ids: Sequence[str]) -> dict[str, str]:
        """See :meth:`View.digests`; as of the last write."""
        return self.view().digests(ids)

    def info(self) -> IndexInfo:
        """What there is to say of it."""
        view = self.view()
        with translated(self.uri):
            kind = vector_index(self._table)
        return IndexInfo(
            uri=self.uri,
            version=view.version,
            passages=view.count(),
            retracted=view.retracted,
            embedder=self.meta.embedder,
            dim=self.meta.dim,
            format=self.meta.format,
            splitter=self.meta.splitter,
            created=self.meta.created,
            vector_index=kind,
        )

    def upsert(self, rows: Sequence[Row]) -> None:
        """Write passages in one commit, each in place of the one that has its id.

        Of two rows with one id, the later wins.

        Raises:
            IndexLocked: another process is writing.
            IndexFault: it cannot be written, as when the disk is full; then nothing has been.
        """
        latest = {row.passage.id: row for row in rows}
        if not latest:
            return
        table = to_arrow(list(latest.values()), arrow_schema(self.meta))
        with self.lock, translated(self.uri):
            merge = self._table.merge_insert("id").when_matched_update_all()
            merge.when_not_matched_insert_all().execute(table)
            self._view = None

    def compact(self) -> None:
        """Keep a long run of upserts quick.

        Raises:
            IndexLocked: another process is writing.
        """
        with self.lock, translated(self.uri):
            compact(self._table)
            self._view = None

    def finish(
        self, *, exact_from: int = EXACT_FROM, approximate_from: int = APPROXIMATE_FROM
    ) -> None:
        """Make the index quick after writing; what was written can be found before, too.

        Args:
            exact_from: rows from which the vectors are held decoded in memory.
            approximate_from: rows from which the search for vectors is approximate.

        Raises:
            IndexLocked: another process is writing.
        """
        with self.lock, translated(self.uri):
            tune(self._table, exact_from=exact_from, approximate_from=approximate_from)
            self._view = None

    def warm(self) -> None:
        """Read the indices into memory, so that the first question does not wait for it."""
        with translated(self.uri):
            for index in self._table.list_indices():
                self._table.prewarm_index(index.name)

    def _catch_up(self) -> None:
        """Go on from what others have written: an upsert over an older version doubles ids."""
        with translated(self.uri):
            self._table.checkout_latest()
        self._view = None


def _folder(uri: str) -> Path | None:
    """The local folder of an index; ``None`` on object storage."""
    return None if "://" in uri else Path(uri)


def _connect(uri: str) -> Any:
    import lancedb

    try:
        return lancedb.connect(uri)
    except (OSError, RuntimeError, ValueError) as error:
        raise IndexFault(f"{uri} cannot hold an index: {error}", index=uri) from error


def _open_table(connection: Any, uri: str) -> Any | None:
    try:
        return connection.open_table(TABLE)
    except (OSError, RuntimeError, ValueError) as error:
        if "was not found" in str(error):
            return None
        raise IndexFault(f"the index at {uri} cannot be read: {error}", index=uri) from error
