"""The index: passages, vectors and full text in one LanceDB table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from posology.errors import IndexFault, IndexMismatch, IndexMissing
from posology.index.connection import connect, open_table, translated
from posology.index.locking.lock import WriteLock
from posology.index.maintenance import APPROXIMATE_FROM, EXACT_FROM, compact, prepare, tune
from posology.index.manifest import refuse_unfinished
from posology.index.places import Place
from posology.index.reader import Reader
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
from posology.index.sync.notices import Notices, Said, mark, quoted
from posology.index.sync.settlement import Settled, settle
from posology.index.tokens import fitting
from posology.index.versions import expire, publish, published
from posology.index.view import View

if TYPE_CHECKING:
    from posology.seams import TokenCodec

#: parts of one article that are looked at when it is read again
MOST_PARTS = 100_000


class Index(Reader):
    """Passages that can be searched. Blocking: call it from a worker thread.

    Build it with :meth:`create`, :meth:`open` or :meth:`open_or_create`, and in each process
    anew: LanceDB does not survive a fork.
    """

    def __init__(self, place: Place, connection: Any, table: Any, meta: Meta) -> None:
        super().__init__(place.uri, connection, table, meta)
        #: where it lies, with what it takes to reach it there
        self.place = place
        #: hold it over several writes, which then build on the newest version; each write takes it
        #: by itself too
        self.lock = WriteLock(place, taken=self._catch_up)
        #: what is written; what readers see is another handle
        self._table = table
        self._staging = False
        self._notices: Notices | None = None

    @classmethod
    def create(
        cls,
        uri: str | Path | Place,
        embedder_name: str,
        dim: int,
        *,
        annotator: str | None = None,
        codec: TokenCodec | None = None,
    ) -> Self:
        """A new, empty index.

        Args:
            uri: a folder, made if need be, or an address on object storage (``s3://…``), as a
                :class:`~posology.index.places.Place` where it takes credentials.
            embedder_name: of the embedder that will make all its vectors.
            dim: length of these vectors.
            annotator: name of the annotator of all its passages; ``None``: none annotates them.
            codec: compresses all its tokens' vectors; ``None``, or one for another embedder: none are kept.

        Raises:
            IndexFault: there is one already.
            IndexLocked: another process is writing there.
            ConfigurationError: it is no place, or there are no credentials for it.
        """
        place = Place.of(uri)
        where = place.uri
        fit = fitting(codec, embedder_name)
        meta = Meta(
            format=FORMAT,
            embedder=embedder_name,
            dim=dim,
            splitter=SPLITTER,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            annotator=annotator,
            codec=None if fit is None else fit.name,
            codec_width=None if fit is None else fit.width,
        )
        with WriteLock(place):
            connection = connect(place)
            if open_table(connection, where) is not None:
                raise IndexFault(f"{where} holds an index already", index=where)
            with translated(where):
                table = connection.create_table(TABLE, schema=arrow_schema(meta))
                prepare(table)
            publish(table, where)
        return cls.open(place)

    @classmethod
    def open(cls, uri: str | Path | Place) -> Self:
        """An index that is there.

        Raises:
            IndexMissing: there is none.
            IndexMismatch: it is of another format.
            IndexFault: it cannot be read.
        """
        place = Place.of(uri)
        where = place.uri
        folder = place.folder
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
        connection = connect(place)
        table = open_table(connection, where)
        if table is None:
            raise missing
        meta = read_meta(table.schema)
        if meta is None or (meta.format, meta.splitter) != (FORMAT, SPLITTER):
            raise IndexMismatch(
                f"the index at {where} was made by another version of Posology: build it anew",
                index=where,
            )
        return cls(place, connection, table, meta)

    @classmethod
    def open_or_create(
        cls,
        uri: str | Path | Place,
        embedder_name: str,
        dim: int,
        *,
        annotator: str | None = None,
        codec: TokenCodec | None = None,
    ) -> Self:
        """The index at ``uri``, made if there is none.

        Raises:
            IndexMismatch: it was made with another embedder, annotator or codec.
        """
        try:
            index = cls.open(uri)
        except IndexMissing:
            return cls.create(uri, embedder_name, dim, annotator=annotator, codec=codec)
        index.require(embedder_name, dim)
        index.require_annotator(annotator)
        index.require_codec(codec)
        return index

    def digests(self, ids: Sequence[str]) -> dict[str, str]:
        """See :meth:`View.digests`; as of the last write, published or not."""
        return self._view_of(self._open()).digests(ids)

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
        with self.staged(), translated(self.uri):
            noticed = self._noticed().known.of
            table = to_arrow(list(latest.values()), arrow_schema(self.meta), noticed)
            merge = self._table.merge_insert("id").when_matched_update_all()
            merge.when_not_matched_insert_all().execute(table)

    def delete(self, ids: Iterable[str], *, but: Iterable[str] = (), parts: bool = True) -> int:
        """Remove passages, and the parts of articles of these ids; what is not there is no error.

        Args:
            ids: of passages or articles.
            but: of passages that stay.
            parts: whether the parts of articles go.

        Returns:
            How many passages are gone.

        Raises:
            IndexLocked: another process is writing.
        """
        gone = quoted(sorted(set(ids)))
        which = f"(id IN ({gone}) OR parent IN ({gone}))" if parts else f"id IN ({gone})"
        kept = quoted(sorted(set(but)))
        return self._remove(which if kept == "NULL" else f"{which} AND id NOT IN ({kept})")

    def parts(self, article: str) -> list[str]:
        """Ids of the passages whose parent this is, as of the last write."""
        with translated(self.uri):
            query = self._open().search().where(f"parent IN ({quoted([article])})").select(["id"])
            found: list[str] = query.limit(MOST_PARTS).to_arrow()["id"].to_pylist()
        return found

    def warn(self, said: Said) -> int:
        """Keep what was published about passages, for those that are here and those that will be.

        Args:
            said: by whom, then of what, see :mod:`posology.index.sync.notices`. It takes the place of all that each of
                them said before.

        Returns:
            How many passages here are warned of otherwise than before.

        Raises:
            IndexLocked: another process is writing.
        """
        with self.staged(), translated(self.uri):
            notices = self._noticed()
            said = notices.news(said)
            if not said:
                return 0
            then = notices.known.after(said)
            # the rows first: a crash in between leaves the notices as they were, and this is done again
            targets = notices.known.differing(then)
            marked = mark(self._table, targets, then) if targets else 0
            notices.keep(said)
        return marked

    def newest(self) -> View:
        """All that has been written, published or not."""
        return self._view_of(self._open())

    @property
    def said(self) -> Said:
        """By whom, then of what, what was published about passages; as of the last write."""
        with self.lock:
            return self._noticed().known.said

    def correct(self, said: Said) -> None:
        """Keep that this is all that was published about passages; rows say so when they are written, or settled.

        Raises:
            IndexLocked: another process is writing.
        """
        with self.staged():
            self._noticed().replace(said)

    def settle(self, holds: Callable[[str, str], bool]) -> Settled:
        """Look at every row: remove those that do not belong here, and have the others say what notices say.

        Args:
            holds: whether the passage of this id, with this digest, belongs here.

        Raises:
            IndexLocked: another process is writing.
        """
        with self.staged(), translated(self.uri):
            return settle(self._table, self.newest(), holds, self._noticed().known)

    @contextmanager
    def staged(self, *, syncing: bool = False) -> Iterator[None]:
        """Several writes that readers see together, at the end; none of them when the block raises.

        Then what was written stays where the next write finds it, and comes to light with that.

        Args:
            syncing: whoever writes publishes by itself, and goes on where a sync was broken off.

        Raises:
            IndexLocked: another process is writing.
            IndexUnfinished: a sync was broken off.
        """
        with self.lock:
            outermost = not self._staging
            if outermost and not syncing:
                refuse_unfinished(self.connection, self.uri)
            self._staging = True
            try:
                yield
            finally:
                if outermost:
                    self._staging = False
            if outermost and not syncing:
                self.publish()

    def publish(self) -> int:
        """Let readers see all that has been written; returns the version's number.

        Raises:
            IndexLocked: another process is writing.
        """
        with self.lock:
            number = publish(self._table, self.uri)
            self._view = None
        return number

    def compact(self) -> None:
        """Keep a long run of upserts quick.

        Raises:
            IndexLocked: another process is writing.
        """
        with self.staged(), translated(self.uri):
            compact(self._table)

    def finish(
        self,
        *,
        exact_from: int = EXACT_FROM,
        approximate_from: int = APPROXIMATE_FROM,
        step: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Make the index quick after writing; what was written can be found before, too.

        Args:
            exact_from: rows from which the vectors are held decoded in memory.
            approximate_from: rows from which the search for vectors is approximate.
            step: told what is done, whenever something is: see :func:`~posology.index.maintenance.tune`.

        Raises:
            IndexLocked: another process is writing.
        """
        with self.staged(), translated(self.uri):
            expire(self._table, self.uri, self.keep)
            tune(
                self._table,
                exact_from=exact_from,
                approximate_from=approximate_from,
                step=step,
            )
            if self._notices is not None:
                self._notices.tidy()

    def _catch_up(self) -> None:
        """Go on from what others have written: an upsert over an older version doubles ids."""
        with translated(self.uri):
            self._table.checkout_latest()
        self._view = self._notices = None
        if not published(self._table, self.uri):
            # whoever made the index died before it was published: else readers would see each commit
            publish(self._table, self.uri)

    def _noticed(self) -> Notices:
        if self._notices is None:
            self._notices = Notices(self.connection, self.uri)
        return self._notices

    def _remove(self, which: str) -> int:
        with self.staged(), translated(self.uri):
            # a deletion of nothing would be a version of its own
            found = int(self._table.count_rows(which))
            if found:
                self._table.delete(which)
        return found
