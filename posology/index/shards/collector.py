"""Writer side of distributed ingest: shards are offered ahead of their turn, and rows collected in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np

from posology.corpus.items import Record
from posology.errors import BadRecord, EncodingFailed, IndexFault, IndexLocked
from posology.index.build.rows import with_given
from posology.index.build.vectors import GivenVectors
from posology.index.learned import read_learned
from posology.index.schema import Row, digest
from posology.index.shards.staging import Staging, Texts, key, learned_id, shard_name
from posology.index.store import Index
from posology.types import Encoded, Retrieved

#: Maximum number of shards in flight; more workers than that wait for work. Each shard takes about 30 kB a passage beside
#: the index until its turn.
WINDOW = 32
#: If a batch has at least this many records and none can be encoded, the workers are considered faulty, and no record is
#: marked as read.
NONE_OF = 8
#: int8 components of a sentence's vector, see :func:`posology.index.schema.quantise`
_SCALE = np.float32(127)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """Result of the work on a shard."""

    #: error of the last try; ``None``: its rows are there
    failure: str | None = None
    #: number of tries
    tries: int = 1
    #: whether the workers lack a model or the index, as opposed to a fault of the shard
    lacking: bool = False


class ShardQueue(Protocol):
    """Queue of shards for workers. Blocking."""

    def offer(self, name: str) -> None:
        """Queue a shard, whose texts are stored; a free worker encodes it at once."""
        ...

    def wait(self, name: str) -> Outcome:
        """Wait until an offered shard is encoded, or has failed.

        Raises:
            PosologyError: there are no workers, or this process may not write any more.
        """
        ...

    def forget(self, names: Sequence[str]) -> None:
        """Drop shards."""
        ...


@dataclass(slots=True, eq=False)
class _Lot:
    """The shards of one batch."""

    #: the records of each shard, by its name
    shards: dict[str, tuple[Record, ...]] = field(default_factory=dict)
    #: where its records were read, including those that the index has
    places: set[tuple[Path, int]] = field(default_factory=set)


class ShardRowBuilder:
    """:class:`~posology.index.build.rows.RowBuilder` of rows that workers encode.

    Encoded rows stay beside the index until their batch is written, so a restarted writer finds them. A shard that
    cannot be encoded is halved repeatedly until only the failing records are left out; :meth:`refused` lists them.
    """

    def __init__(self, index: Index, queue: ShardQueue, *, window: int = WINDOW) -> None:
        """Set it up; no shard is offered yet.

        Args:
            index: the index to write.
            queue: the workers' queue.
            window: see :attr:`window`.
        """
        self._index = index
        self._queue = queue
        self._window = window
        self._staging = Staging(index.connection, index.meta)
        self._lots: deque[_Lot] = deque()
        #: shards whose rows were returned, and may not be written yet
        self._done: list[str] = []
        self._refused: list[BadRecord] = []
        #: tries of the last refused record
        self._tries = 0
        self._learned: tuple[str | None] | None = None

    @property
    def window(self) -> int:
        """Return the maximum number of shards in flight."""
        return self._window

    def begin(self, records: Sequence[Record]) -> None:
        """Offer a shard with the new and changed ones of the records."""
        latest = {record.passage.id: record for record in records}
        known = self._index.digests(list(latest)) if latest else {}
        wanted = [
            record for name, record in latest.items() if known.get(name) != digest(record.passage)
        ]
        lot = self._lot(wanted)
        lot.places.update((record.path, record.line) for record in records)
        self._lots.append(lot)
        if len(self._lots) > self._window:
            # its batch needed no rows
            self._done.extend(self._lots.popleft().shards)

    def rows(
        self, records: Sequence[tuple[Record, str]], given: GivenVectors | None
    ) -> Iterator[Row]:
        """Return one row per record, in order, except for records that cannot be encoded.

        Raises:
            EncodingFailed: no worker can encode anything for this index.
            StoreUnavailable: Redis is out of reach.
            IndexFault: the index or its shards cannot be read or written.
        """
        self._tidy()
        keys = [key(record.passage) for record, _ in records]
        found = self._collect([record for record, _ in records])
        missing = [
            record for (record, _), one in zip(records, keys, strict=True) if one not in found
        ]
        if missing:
            # the index held it unchanged at :meth:`begin`, and a batch in between changed it
            lot = self._lot(missing)
            found |= self._whole(lot)
            self._done.extend(lot.shards)
        for (record, name), one in zip(records, keys, strict=True):
            retrieved = found[one]
            if retrieved is None:
                continue
            yield Row(
                passage=record.passage,
                sentences=retrieved.sentences,
                encoded=with_given(_encoded(retrieved), given, record),
                digest=name,
                phrases=retrieved.phrases,
                roles=retrieved.roles,
            )

    def refused(self) -> tuple[BadRecord, ...]:
        """Return the records that no worker could encode, since the previous call."""
        refused, self._refused = tuple(self._refused), []
        return refused

    def close(self) -> None:
        """Drop all shards of the index, at the end of an ingest.

        Nothing is removed from storage if another writer has begun meanwhile: the shards may be its own.
        """
        self._queue.forget([*self._done, *(name for lot in self._lots for name in lot.shards)])
        self._done.clear()
        self._lots.clear()
        with suppress(IndexLocked), self._index.lock:
            self._staging.clear()

    def _tidy(self) -> None:
        # equal batches share one shard, and a later one may still be waiting for its turn
        wanted = {name for lot in self._lots for name in lot.shards}
        over = [name for name in self._done if name not in wanted]
        self._queue.forget(over)
        self._staging.drop(over)
        self._done = []

    def _lot(self, records: Sequence[Record]) -> _Lot:
        lot = _Lot()
        if records:
            distinct = {key(record.passage): record for record in records}
            lot.shards[self._offer(distinct)] = tuple(distinct.values())
        return lot

    def _offer(self, records: dict[bytes, Record]) -> str:
        name = shard_name(records, self._index.meta, self._learned_id())
        if not self._staging.encoded(name):
            passages = tuple(record.passage for record in records.values())
            self._staging.put_texts(name, Texts(passages=passages, learned=self._learned_id()))
        self._queue.offer(name)
        return name

    def _collect(self, records: Sequence[Record]) -> dict[bytes, Retrieved | None]:
        """Return the rows of the batch of these records, by key; earlier batches had nothing to write."""
        places = {(record.path, record.line) for record in records}
        at = next((n for n, lot in enumerate(self._lots) if lot.places & places), None)
        if at is None:
            return {}
        for _ in range(at):
            self._done.extend(self._lots.popleft().shards)
        lot = self._lots.popleft()
        self._done.extend(lot.shards)
        return self._whole(lot)

    def _whole(self, lot: _Lot) -> dict[bytes, Retrieved | None]:
        """Return the rows of a batch, see :meth:`_gather`; raise if all of a large batch are refused."""
        rows = self._gather(lot)
        if len(rows) >= NONE_OF and all(row is None for row in rows.values()):
            reason = self._refused[-1].reason
            raise EncodingFailed(
                f"no worker can encode any of {len(rows)} records for the index at {self._index.uri} ({reason}): "
                "check the workers' logs, and run the command again; it resumes here",
                index=self._index.uri,
                shard=next(iter(lot.shards)),
                tries=self._tries,
                reason=reason,
            )
        return rows

    def _gather(self, lot: _Lot) -> dict[bytes, Retrieved | None]:
        """Return rows by key; ``None`` for a refused record."""
        found: dict[bytes, Retrieved | None] = {}
        for name, records in lot.shards.items():
            found |= self._shard(name, records)
        return found

    def _shard(self, name: str, records: tuple[Record, ...]) -> dict[bytes, Retrieved | None]:
        outcome = self._queue.wait(name)
        if outcome.failure is None:
            return self._read(name, records)
        if outcome.lacking:
            raise EncodingFailed(
                f"no worker can encode for the index at {self._index.uri} ({outcome.failure}): check that each worker "
                "has its embedder, and reaches the index at this address",
                index=self._index.uri,
                shard=name,
                tries=outcome.tries,
                reason=outcome.failure,
            )
        if len(records) == 1:
            (record,) = records
            self._refused.append(_refusal(name, record, outcome))
            self._tries = outcome.tries
            return {key(record.passage): None}
        middle = len(records) // 2
        halves = [self._lot(part) for part in (records[:middle], records[middle:])]
        self._done.extend(shard for half in halves for shard in half.shards)
        return self._gather(halves[0]) | self._gather(halves[1])

    def _read(self, name: str, records: tuple[Record, ...]) -> dict[bytes, Retrieved | None]:
        rows = self._staging.rows(name)
        if rows is None:
            # the rows were removed, or an outdated worker reported them: encode the shard again
            self._queue.forget([name])
            self._offer({key(record.passage): record for record in records})
            outcome = self._queue.wait(name)
            rows = self._staging.rows(name) if outcome.failure is None else None
        ids = [record.passage.id for record in records]
        if rows is None or [row.passage.id for row in rows] != ids:
            raise IndexFault(
                f"shard {name} beside the index at {self._index.uri} is damaged: run the command again",
                index=self._index.uri,
            )
        return {key(record.passage): row for record, row in zip(records, rows, strict=True)}

    def _learned_id(self) -> str | None:
        # learned before anything is written, and unchanged during an ingest
        if self._learned is None:
            wanted = self._index.meta.annotator is not None
            kept = read_learned(self._index.connection) if wanted else None
            self._learned = (learned_id(None if kept is None else kept.data),)
        return self._learned[0]


def _encoded(retrieved: Retrieved) -> Encoded:
    # quantising again gives the same bytes
    vectors = retrieved.sentence_vectors.astype(np.float32) / _SCALE
    return Encoded(vector=retrieved.vector, sentence_vectors=vectors, tokens=retrieved.tokens)


def _refusal(name: str, record: Record, outcome: Outcome) -> BadRecord:
    return BadRecord(
        f"cannot be encoded after {outcome.tries} tries (shard {name}): {outcome.failure}",
        path=str(record.path),
        line=record.line,
        record=record.passage.id,
    )
