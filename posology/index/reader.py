"""Reading side of an index: its published versions."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posology.errors import IndexFault, IndexMismatch, IndexMissing
from posology.index.connection import connect, open_table, translated
from posology.index.maintenance import built, vector_index
from posology.index.manifest import applied_files, unfinished
from posology.index.places import Place
from posology.index.schema import Meta
from posology.index.sync.order import place
from posology.index.tokens import fitting
from posology.index.versions import KEEP_VERSIONS, Published, at, published
from posology.index.view import View
from posology.text.roles.head import head_of
from posology.types import Growth, Ranking, Retrieved

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from posology.seams import TokenCodec

#: seconds after which a reader checks for a newer version
FRESH = 5.0
#: old versions kept open at a time
OLD_VIEWS = 4
#: bytes that LanceDB's caches may hold beyond twice what one version needs
SPARE = 2 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexInfo:
    """Facts about an index."""

    uri: str
    #: name and version, e.g. ``index@17``
    version: str
    passages: int
    #: passages marked as retracted
    retracted: int
    embedder: str
    #: length of a vector
    dim: int
    #: version of the storage format
    format: int
    splitter: int
    #: ISO 8601, UTC
    created: str
    #: kind of the vectors' index; ``None``: they are searched without one
    vector_index: str | None
    #: measured recall of the approximate index; ``None``: the search is exact, or it was not measured
    recall: float | None
    #: partitions of the approximate index that a search reads
    probes: int | None
    #: partitions of the approximate index
    partitions: int | None
    annotator: str | None
    codec: str | None
    #: when the newest version was published, ISO 8601, UTC
    published: str | None
    #: readable versions
    versions: int
    #: files applied by syncs
    files: int
    #: name of the last applied file
    last_file: str | None
    #: names of files that are applied and not published
    unfinished: tuple[str, ...]
    #: how far the first ingest is, in words; ``None``: it is complete
    growth: str | None = None
    #: passages of the last write whose sentences and tokens are not encoded yet
    incomplete: int = 0
    #: encoded passages of the last write without roles of sentences, although a head knows the embedder
    without_roles: int = 0


class Reader:
    """Passages that can be searched; :class:`~posology.index.store.Index` opens and writes them."""

    def __init__(self, place: Place, connection: Any, session: Any, table: Any, meta: Meta) -> None:
        #: address of the index, with its credentials
        self.place = place
        self.uri = place.uri
        self.meta = meta
        #: LanceDB's, for the tables beside the passages
        self.connection = connection
        #: holds LanceDB's caches
        self.session = session
        #: how long a version stays readable after it is replaced
        self.keep = KEEP_VERSIONS
        self._view: View | None = None
        #: of that view
        self._growth: Growth | None = None
        self._reading = table
        self._old: dict[int, View] = {}
        self._looked = 0.0
        #: bytes of LanceDB's caches for one version; ``None``: not known yet
        self._needed: int | None = None
        self._process = os.getpid()

    def require(self, embedder_name: str, dim: int) -> None:
        """Check that an embedder is the one that the index was made with.

        Raises:
            IndexMismatch: it is another; the message names both.
        """
        if (embedder_name, dim) != (self.meta.embedder, self.meta.dim):
            raise IndexMismatch(
                f"the index at {self.uri} was made with {self.meta.embedder} "
                f"({self.meta.dim} dimensions), not with {embedder_name} ({dim}): "
                "use that embedder, or build a new index",
                index=self.uri,
            )

    def require_annotator(self, name: str | None) -> None:
        """Check that an annotator is the one that the index was made with; only writing needs one.

        Raises:
            IndexMismatch: it is another; the message names both.
        """
        if name != self.meta.annotator:
            raise IndexMismatch(
                f"the passages of the index at {self.uri} are annotated by "
                f"{self.meta.annotator or 'nothing'}, not by {name or 'nothing'}: use that, or ingest the literature "
                "into a new index; this one answers questions as before",
                index=self.uri,
            )

    def require_codec(self, codec: TokenCodec | None) -> None:
        """Check that a codec is the one that the index was made with; only writing needs one.

        A codec of another embedder counts as none, as in :meth:`~posology.index.store.Index.create`.

        Raises:
            IndexMismatch: it is another; the message names both.
        """
        fit = fitting(codec, self.meta.embedder)
        name = None if fit is None else fit.name
        if name != self.meta.codec:
            raise IndexMismatch(
                f"the index at {self.uri} keeps the token codes of {self.meta.codec or 'nothing'}, "
                f"not of {name or 'nothing'}: use that, or build a new index",
                index=self.uri,
            )

    @property
    def name(self) -> str:
        """Return the last part of the index's address."""
        return Path(self.uri).name or "index"

    @property
    def version(self) -> str:
        """Return name and version, e.g. ``index@17``."""
        return self.view().version

    def view(self) -> View:
        """Return the newest published version; checks for one at most every :data:`FRESH` seconds."""
        self._same_process()
        now = time.monotonic()
        view = self._view
        if view is None or now - self._looked > FRESH:
            table = self._open()
            known = published(table, self.uri)
            number = known[-1].number if known else table.version
            growth = known[-1].growth if known else None
            if view is None or (view.number, self._growth) != (number, growth):
                if view is not None and self._renewed():
                    table = self._open()
                if known:
                    at(table, number, uri=self.uri, name=self.name, keep=self.keep)
                view, self._reading = self._view_of(table, growth), table
                self._growth = growth
            self._view, self._looked = view, now
        return view

    def view_at(self, version: int | str | None) -> View:
        """Return a published version.

        Args:
            version: its number, or its name in an answer, ``index@17``; ``None``, or a version of an index of another
                name: the newest.

        Raises:
            VersionGone: it was removed, or never published.
        """
        view = self.view()
        number = _number(version, self.name) if isinstance(version, str) else version
        if number is None or number == view.number:
            return view
        if number not in self._old:
            self._renewed()
        # its existence is checked each time, as for the newest
        table = self._open()
        found = at(table, number, uri=self.uri, name=self.name, keep=self.keep)
        # another thread may drop at once what this one keeps
        if (kept := self._old.get(number)) is None:
            kept = self._view_of(table, found)
            self._old = dict([*self._old.items(), (number, kept)][-OLD_VIEWS:])
        return kept

    def versions(self) -> tuple[Published, ...]:
        """Return the readable versions, oldest first."""
        return published(self._open(), self.uri)

    @property
    def growth(self) -> Growth | None:
        """Return how far the first ingest is, as readers see it; ``None``: it is complete."""
        return self.view().growth

    def count(self) -> int:
        """Return the number of passages."""
        return self.view().count()

    def fetch(self, ids: Sequence[str]) -> tuple[Retrieved, ...]:
        """See :meth:`View.fetch`."""
        return self.view().fetch(ids)

    def ids(self) -> list[str]:
        """See :meth:`View.ids`."""
        return self.view().ids()

    def dense(self, vector: NDArray[np.float32], k: int, *, retracted: bool = False) -> Ranking:
        """See :meth:`View.dense`."""
        return self.view().dense(vector, k, retracted=retracted)

    def bm25(self, text: str, k: int, *, retracted: bool = False) -> Ranking:
        """See :meth:`View.bm25`."""
        return self.view().bm25(text, k, retracted=retracted)

    def info(self) -> IndexInfo:
        """Return facts about the index."""
        view = self.view()
        known = self.versions()
        files = applied_files(self.connection, self.uri)
        newest = self._view_of(self._open())
        with translated(self.uri):
            kind, approximate = vector_index(self._reading), built(self._reading)
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
            recall=None if approximate is None else approximate.recall,
            probes=None if approximate is None else approximate.probes,
            partitions=None if approximate is None else approximate.partitions,
            annotator=self.meta.annotator,
            codec=self.meta.codec,
            published=known[-1].at.isoformat(timespec="seconds") if known else None,
            versions=max(len(known), 1),
            files=len(files),
            last_file=max((file.name for file in files), key=place, default=None),
            unfinished=unfinished(files),
            growth=None if view.growth is None else str(view.growth),
            incomplete=newest.incomplete,
            without_roles=0 if head_of(self.meta.embedder) is None else newest.roleless,
        )

    def warm(self) -> None:
        """Read the search indices into memory, so that the first question does not wait."""
        self.view()
        with translated(self.uri):
            for index in self._reading.list_indices():
                self._reading.prewarm_index(index.name)

    def _open(self) -> Any:
        table = open_table(self.connection, self.uri)
        if table is None:
            raise IndexMissing(f"the index at {self.uri} was removed", index=self.uri)
        return table

    def _view_of(self, table: Any, growth: Growth | None = None) -> View:
        with translated(self.uri):
            return View(table, uri=self.uri, name=self.name, built=built(table), growth=growth)

    def _renewed(self) -> bool:
        """Connect anew if the caches hold much that is no longer needed, and return whether that was done.

        LanceDB keeps what was read of every version, up to 7 GB by default, however long ago the version was replaced.
        """
        held = int(self.session.size_bytes)
        if self._needed is None:
            self._needed = held
        if held <= 2 * self._needed + SPARE:
            return False
        self.connection, self.session = connect(self.place)
        # the views hold the caches before
        self._needed, self._old, self._view = None, {}, None
        return True

    def _same_process(self) -> None:
        if os.getpid() != self._process:
            raise IndexFault(
                "the index was opened before this process was forked: open it in this process",
                index=self.uri,
            )


def _number(version: str, index: str) -> int | None:
    name, _, number = version.rpartition("@")
    return int(number) if name == index and number.isascii() and number.isdigit() else None
