"""The writer's part: hand batches out ahead of their turn, and collect their rows in order."""

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

#: Shards that are under way at most. More than twice as many workers as this wait for work now and then; each holds
#: about 30 kB a passage beside the index until it is its turn.
WINDOW = 32
#: Records of a batch from which on it is not believed that none of them can be encoded: then the workers are at fault, and
#: nothing may be taken for read.
NONE_OF = 8
#: int8 components of a sentence's vector, see :func:`posology.index.schema.quantise`
_SCALE = np.float32(127)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How the work on a shard ended."""

    #: what went wrong at the last try; ``None``: its rows are there
    failure: str | None = None
    #: how often it was begun
    tries: int = 1
    #: whether that was for what the workers lack, and not for what is in the shard
    lacking: bool = False


class ShardQueue(Protocol):
    """Gets shards encoded by workers. Blocking."""

    def offer(self, name: str) -> None:
        """See to it that a worker encodes a shard, whose texts are laid out; at once where one is free."""
        ...

    def wait(self, name: str) -> Outcome:
        """Wait until a shard that was offered is encoded, or given up.

        Raises:
            PosologyError: there is nobody to wait for, or this process may not write any more.
        """
        ...

    def forget(self, names: Sequence[str]) -> None:
        """Shards that nobody wants any more."""
        ...


@dataclass(slots=True, eq=False)
class _Lot:
    """What was begun of one batch."""

    #: the records of each shard, by its name
    shards: dict[str, tuple[Record, ...]] = field(default_factory=dict)
    #: where its records were read, those among them that the index has
    places: set[tuple[Path, int]] = field(default_factory=set)


class ShardMaker:
    """Rows that workers encode, as a :class:`~posology.index.build.rows.Making`.

    What was encoded stays beside the index until its batch is written: a writer that is killed and started again finds
    it. A shard that cannot be encoded is cut in two, again and again, until only the records that nobody can encode
    are left out, and :meth:`refused` names them.
    """

    def __init__(self, index: Index, queue: ShardQueue, *, window: int = WINDOW) -> None:
        """Set it up; nothing is handed out yet.

        Args:
            index: the one that is written.
            queue: of the workers.
            window: see :attr:`window`.
        """
        self._index = index
        self._queue = queue
        self._window = window
        self._staging = Staging(index.connection, index.meta)
        self._lots: deque[_Lot] = deque()
        #: shards whose rows were handed over, which may not be written yet
        self._over: list[str] = []
        self._refused: list[BadRecord] = []
        #: of the last of them
        self._tries = 0
        self._learned: tuple[str | None] | None = None

    @property
    def window(self) -> int:
        """Shards that are under way at most."""
        return self._window

    def begin(self, records: Sequence[Record]) -> None:
        """Hand out those of the records that the index does not have as they are."""
        latest = {record.passage.id: record for record in records}
        known = self._index.digests(list(latest)) if latest else {}
        wanted = [
            record for name, record in latest.items() if known.get(name) != digest(record.passage)
        ]
        lot = self._lot(wanted)
        lot.places.update((record.path, record.line) for record in records)
        self._lots.append(lot)
        if len(self._lots) > self._window:
            # its batch was written without it
            self._over.extend(self._lots.popleft().shards)

    def rows(
        self, records: Sequence[tuple[Record, str]], given: GivenVectors | None
    ) -> Iterator[Row]:
        """One row a record, in order, but for those that cannot be encoded.

        Raises:
            EncodingFailed: no worker can encode anything for this index.
            StoreUnavailable: Redis is out of reach.
            IndexFault: the index or what lies beside it cannot be read or written.
        """
        self._tidy()
        keys = [key(record.passage) for record, _ in records]
        found = self._collect([record for record, _ in records])
        missing = [
            record for (record, _), one in zip(records, keys, strict=True) if one not in found
        ]
        if missing:
            # it was in the index as it is when it was begun, and a batch between has changed it
            lot = self._lot(missing)
            found |= self._whole(lot)
            self._over.extend(lot.shards)
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
            )

    def refused(self) -> tuple[BadRecord, ...]:
        """The records that no worker could encode, since this was last asked."""
        refused, self._refused = tuple(self._refused), []
        return refused

    def close(self) -> None:
        """Take away all that lies beside the index; for an ingest that came to its end.

        If another has begun to write meanwhile, what lies there may be its own: then it takes away the rest, too.
        """
        self._queue.forget([*self._over, *(name for lot in self._lots for name in lot.shards)])
        self._over.clear()
        self._lots.clear()
        with suppress(IndexLocked), self._index.lock:
            self._staging.clear()

    def _tidy(self) -> None:
        # equal batches are one shard, and a later one of them may be waiting for its turn
        wanted = {name for lot in self._lots for name in lot.shards}
        over = [name for name in self._over if name not in wanted]
        self._queue.forget(over)
        self._staging.drop(over)
        self._over = []

    def _lot(self, records: Sequence[Record]) -> _Lot:
        lot = _Lot()
        if records:
            distinct = {key(record.passage): record for record in records}
            lot.shards[self._hand_out(distinct)] = tuple(distinct.values())
        return lot

    def _hand_out(self, records: dict[bytes, Record]) -> str:
        name = shard_name(records, self._index.meta, self._learned_id())
        if not self._staging.encoded(name):
            passages = tuple(record.passage for record in records.values())
            self._staging.put_texts(name, Texts(passages=passages, learned=self._learned_id()))
        self._queue.offer(name)
        return name

    def _collect(self, records: Sequence[Record]) -> dict[bytes, Retrieved | None]:
        """What was begun of the batch that these records are of; batches before it had nothing to be written."""
        places = {(record.path, record.line) for record in records}
        at = next((n for n, lot in enumerate(self._lots) if lot.places & places), None)
        if at is None:
            return {}
        for _ in range(at):
            self._over.extend(self._lots.popleft().shards)
        lot = self._lots.popleft()
        self._over.extend(lot.shards)
        return self._whole(lot)

    def _whole(self, lot: _Lot) -> dict[bytes, Retrieved | None]:
        """The rows of a batch's lot, as :meth:`_gather` tells them."""
        found = self._gather(lot)
        if len(found) >= NONE_OF and all(row is None for row in found.values()):
            reason = self._refused[-1].reason
            raise EncodingFailed(
                f"no worker can encode any of {len(found)} records for the index at {self._index.uri} ({reason}): "
                "see what ails the workers, and run it again; it goes on from here",
                index=self._index.uri,
                shard=next(iter(lot.shards)),
                tries=self._tries,
                reason=reason,
            )
        return found

    def _gather(self, lot: _Lot) -> dict[bytes, Retrieved | None]:
        """The rows of a lot; ``None`` for a record that is refused."""
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
                f"no worker can encode for the index at {self._index.uri} ({outcome.failure}): see that each has "
                "its embedder, and that the index is at this place on its machine too",
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
        self._over.extend(shard for half in halves for shard in half.shards)
        return self._gather(halves[0]) | self._gather(halves[1])

    def _read(self, name: str, records: tuple[Record, ...]) -> dict[bytes, Retrieved | None]:
        rows = self._staging.rows(name)
        if rows is None:
            # somebody cleaned up, or it is an old worker's word: once more, from the beginning
            self._queue.forget([name])
            self._hand_out({key(record.passage): record for record in records})
            outcome = self._queue.wait(name)
            rows = self._staging.rows(name) if outcome.failure is None else None
        ids = [record.passage.id for record in records]
        if rows is None or [row.passage.id for row in rows] != ids:
            raise IndexFault(
                f"shard {name} beside the index at {self._index.uri} is damaged: start again",
                index=self._index.uri,
            )
        return {key(record.passage): row for record, row in zip(records, rows, strict=True)}

    def _learned_id(self) -> str | None:
        # it is learned before anything is written, and stays the same for one ingest
        if self._learned is None:
            wanted = self._index.meta.annotator is not None
            kept = read_learned(self._index.connection) if wanted else None
            self._learned = (learned_id(None if kept is None else kept.data),)
        return self._learned[0]


def _encoded(retrieved: Retrieved) -> Encoded:
    # what is quantised again gives the same bytes
    vectors = retrieved.sentence_vectors.astype(np.float32) / _SCALE
    return Encoded(vector=retrieved.vector, sentence_vectors=vectors, tokens=retrieved.tokens)


def _refusal(name: str, record: Record, outcome: Outcome) -> BadRecord:
    return BadRecord(
        f"it cannot be encoded: {outcome.tries} tries (shard {name}): {outcome.failure}",
        path=str(record.path),
        line=record.line,
        record=record.passage.id,
    )
