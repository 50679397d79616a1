"""Index: passages, vectors and full text in one LanceDB table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from posology.errors import IndexFault, IndexMismatch, IndexMissing
from posology.index.connection import connect, open_passages, open_table, translated
from posology.index.locking.lock import WriteLock
from posology.index.maintenance import (
    APPROXIMATE_FROM,
    EXACT_FROM,
    compact,
    cover_ids,
    prepare,
    tune,
)
from posology.index.manifest import refuse_unfinished
from posology.index.places import Place
from posology.index.reader import Reader
from posology.index.schema import TABLE, Meta, Row, arrow_schema, missing, read_meta, to_arrow
from posology.index.search.filters import quoted
from posology.index.sync.notices import (
    Known,
    Notices,
    NoticesBySource,
    Right,
    Settled,
    mark,
    settle,
)
from posology.index.sync.reports import Report, ReportsBySource
from posology.index.versions import expire, publish, published
from posology.index.view import View
from posology.types import Growth

if TYPE_CHECKING:
    from posology.seams import TokenCodec

#: maximum number of parts of one article
MOST_PARTS = 100_000


class Index(Reader):
    """Passages that can be searched. Blocking: call it from a worker thread.

    Make it with :meth:`create`, :meth:`open` or :meth:`open_or_create`, in each process again: LanceDB does not
    survive a fork. Every method that writes raises :class:`~posology.errors.IndexLocked` while another process writes.
    """

    def __init__(self, place: Place, connection: Any, session: Any, table: Any, meta: Meta) -> None:
        super().__init__(place, connection, session, table, meta)
        #: hold it across several writes, which then build on the newest version; each write also takes it by itself
        self.lock = WriteLock(place, taken=self._catch_up)
        #: handle for writing; readers use another one
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
        """Create an empty index.

        Args:
            uri: a folder, made if need be, or an address on object storage (``s3://…``), as a
                :class:`~posology.index.places.Place` if it needs credentials.
            embedder_name: the embedder of all its vectors.
            dim: length of these vectors.
            annotator: name of the annotator of all its passages; ``None``: they are not annotated.
            codec: compresses all token vectors; ``None``, or a codec of another embedder: none are stored.

        Raises:
            IndexFault: there is an index already.
            ConfigurationError: the address is invalid, or its credentials are missing.
        """
        place = Place.of(uri)
        where = place.uri
        meta = Meta.new(embedder_name, dim, annotator=annotator, codec=codec)
        with WriteLock(place):
            connection, _ = connect(place)
            if open_table(connection, where) is not None:
                raise IndexFault(
                    f"{where} already holds an index: choose another place", index=where
                )
            with translated(where):
                table = connection.create_table(TABLE, schema=arrow_schema(meta))
                prepare(table)
            publish(table, where)
        return cls.open(place)

    @classmethod
    def open(cls, uri: str | Path | Place) -> Self:
        """Open an index.

        Raises:
            IndexMissing: there is none.
            IndexMismatch: its format is another version's.
            IndexFault: it cannot be read.
        """
        place = Place.of(uri)
        connection, session, table = open_passages(place)
        meta = read_meta(table.schema)
        if meta is None or not meta.is_current:
            raise IndexMismatch(
                f"the index at {place.uri} was made by another version of Posology: build a new one",
                index=place.uri,
            )
        return cls(place, connection, session, table, meta)

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
        """Open the index at ``uri``, or create it.

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
        """See :meth:`View.digests`; of the last write, published or not."""
        return self._view_of(self._open()).digests(ids)

    def upsert(self, rows: Sequence[Row]) -> None:
        """Write passages in one commit; each replaces the one with its id.

        Of two rows with one id, the later wins.

        Raises:
            IndexFault: nothing was written, e.g. because the disk is full.
        """
        latest = {row.passage.id: row for row in rows}
        if not latest:
            return
        with self.staged(), translated(self.uri):
            self._widen()
            flagged = self._noticed().known.flags
            table = to_arrow(list(latest.values()), arrow_schema(self.meta), flagged)
            merge = self._table.merge_insert("id").when_matched_update_all()
            merge.when_not_matched_insert_all().execute(table)

    def set_roles(self, roles: Mapping[str, bytes]) -> None:
        """Write the roles of existing passages in one commit, and nothing else of them.

        Args:
            roles: by id, see :func:`posology.text.roles.column.encode`.

        Raises:
            IndexFault: nothing was written, e.g. because the disk is full.
        """
        import pyarrow as pa

        if not roles:
            return
        with self.staged(), translated(self.uri):
            self._widen()
            # without a current index of the ids, LanceDB would write whole rows anew
            cover_ids(self._table)
            schema = arrow_schema(self.meta)
            columns = {"id": list(roles), "roles": list(roles.values())}
            written = pa.table(columns, schema=pa.schema(map(schema.field, columns)))
            self._table.merge_insert("id").when_matched_update_all().execute(written)

    def delete(self, ids: Iterable[str], *, but: Iterable[str] = (), parts: bool = True) -> int:
        """Remove passages, and the parts of articles, with these ids; unknown ids are ignored.

        Args:
            ids: of passages or articles.
            but: ids of passages to keep.
            parts: whether to remove the parts of articles, too.

        Returns:
            The number of removed passages.
        """
        gone = quoted(sorted(set(ids)))
        which = f"(id IN ({gone}) OR parent IN ({gone}))" if parts else f"id IN ({gone})"
        kept = quoted(sorted(set(but)))
        if kept != "NULL":
            which += f" AND id NOT IN ({kept})"
        with self.staged(), translated(self.uri):
            # deleting nothing would still make a version
            found = int(self._table.count_rows(which))
            if found:
                self._table.delete(which)
        return found

    def parts(self, article: str) -> list[str]:
        """Return the ids of an article's passages, of the last write."""
        with translated(self.uri):
            query = self._open().search().where(f"parent IN ({quoted([article])})").select(["id"])
            found: list[str] = query.limit(MOST_PARTS).to_arrow()["id"].to_pylist()
        return found

    def warn(self, given: NoticesBySource) -> int:
        """Store notices, and mark the passages that they fit, now and later.

        Args:
            given: notices by source and target, see :mod:`posology.index.sync.notices`. They replace all earlier
                notices of their sources.

        Returns:
            The number of passages whose marks changed.
        """
        with self.staged(), translated(self.uri):
            notices = self._noticed()
            news = notices.news(given)
            if not news:
                return 0
            then = notices.known.after(news)
            # rows first: after a crash in between the notices are unchanged, and this is repeated
            rewritten = self._mark(notices.known, then)
            notices.keep(news)
        return sum(one.marked for one in rewritten)

    def report(self, source: str, reports: AbstractSet[Report]) -> int | None:
        """Store the reports of a file in place of all earlier ones of its source, and flag the passages that they fit.

        No passage is encoded again. Everything is published as one version; the same reports once more change nothing.

        Args:
            source: name of the source, e.g. ``retraction-watch``.
            reports: those of the whole file.

        Returns:
            The number of passages whose flags changed; ``None``: the index has these reports already.

        Raises:
            IndexUnfinished: a sync was interrupted.
        """
        with self.staged(), translated(self.uri):
            notices = self._noticed()
            before = notices.known
            reported = before.reported.after(source, reports)
            if reported.by_source == before.reported.by_source:
                return None
            # rows first, as in `warn`
            rewritten = self._mark(before, Known(before.by_source, reported))
            notices.report(reported)
            if rewritten:
                self.finish()
        return len(rewritten)

    def _mark(self, before: Known, then: Known) -> Sequence[Right]:
        targets = before.differing(then)
        if not targets:
            return ()
        self._widen()
        return mark(self._table, targets, then)

    def newest(self) -> View:
        """Return the last write, published or not."""
        return self._view_of(self._open())

    @property
    def notices(self) -> NoticesBySource:
        """Return all notices, of the last write."""
        with self.lock:
            return self._noticed().known.by_source

    @property
    def reports(self) -> ReportsBySource:
        """Return the reports of all files of notices, by source, of the last write."""
        with self.lock:
            return self._noticed().known.reported.by_source

    def correct(self, notices: NoticesBySource) -> None:
        """Replace all notices; rows are marked accordingly when they are written or settled."""
        with self.staged():
            self._noticed().replace(notices)

    def settle(self, holds: Callable[[str, str], bool]) -> Settled:
        """Remove rows that do not belong in the index, and correct the marks of the others.

        Args:
            holds: returns whether the passage with this id and digest belongs in the index.
        """
        with self.staged(), translated(self.uri):
            self._widen()
            return settle(self._table, self.newest(), holds, self._noticed().known)

    @contextmanager
    def staged(self, *, syncing: bool = False) -> Iterator[None]:
        """Publish the writes of a block together, at its end; none of them if the block raises.

        Writes of a block that raised are published together with the next writes.

        Args:
            syncing: whether the caller publishes by itself, and resumes an interrupted sync.

        Raises:
            IndexUnfinished: a sync was interrupted.
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

    def publish(self, growth: Growth | None = None) -> int:
        """Publish all writes, and return the version's number.

        Args:
            growth: how far the first ingest is; ``None``: it is complete.
        """
        with self.lock:
            number = publish(self._table, self.uri, growth)
            self._view = None
        return number

    def compact(self) -> None:
        """Compact the table, so that a long run of upserts stays quick."""
        with self.staged(), translated(self.uri):
            compact(self._table)

    def finish(
        self,
        *,
        exact_from: int = EXACT_FROM,
        approximate_from: int = APPROXIMATE_FROM,
        step: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Update the search indices after writing; written passages can be found before, too.

        Args:
            exact_from: rows from which the vectors are kept decoded in memory.
            approximate_from: rows from which vector search is approximate.
            step: called with each finished step, see :func:`~posology.index.maintenance.tune`.
        """
        with self.staged(), translated(self.uri):
            gone = expire(self._table, self.uri, self.keep)
            tune(
                self._table,
                exact_from=exact_from,
                approximate_from=approximate_from,
                step=step,
                expired=bool(gone),
            )
            if self._notices is not None:
                self._notices.tidy()

    def _catch_up(self) -> None:
        """Continue from the newest version: an upsert over an older one doubles ids."""
        with translated(self.uri):
            self._table.checkout_latest()
        self._view = self._notices = None
        if not published(self._table, self.uri):
            # the index was created, but its creator died before publishing: else readers would see each commit
            publish(self._table, self.uri)

    def _widen(self) -> None:
        """Add the columns that an index of an earlier version lacks; no row is written anew."""
        if lacking := missing(self._table.schema, self.meta):
            self._table.add_columns(lacking)

    def _noticed(self) -> Notices:
        if self._notices is None:
            self._notices = Notices(self.connection, self.uri)
        return self._notices
