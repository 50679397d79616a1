"""A worker's part: from the texts of a shard to its rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from posology.corpus.items import Record
from posology.errors import IndexFault, IndexMismatch
from posology.index.build.rows import RowMaker
from posology.index.learned import read_learned
from posology.index.shards.staging import Staging, key, learned_id, shard_name
from posology.index.store import Index
from posology.index.tokens import fitting

if TYPE_CHECKING:
    from posology.seams import Annotator, Embedder, TokenCodec


class ShardEncoder:
    """Encodes the shards of one index. Blocking, one shard at a time.

    It reads what the index says of itself, the texts and what the annotator has learned, and writes only the shard's
    rows: the index's passages are neither read nor written.
    """

    def __init__(
        self,
        index: Index,
        embedder: Embedder,
        *,
        annotator: Annotator | None = None,
        codec: TokenCodec | None = None,
    ) -> None:
        """Check that this worker has what the index was made with.

        Raises:
            IndexMismatch: embedder, annotator or codec is not the index's.
        """
        index.require(embedder.name, embedder.dim)
        index.require_annotator(None if annotator is None else annotator.name)
        index.require_codec(codec)
        self._index = index
        self._annotator = annotator
        self._staging = Staging(index.connection, index.meta)
        self._maker = RowMaker(
            embedder=embedder, annotator=annotator, codec=fitting(codec, embedder.name)
        )
        #: of what the annotator knows
        self._learned: str | None = None

    def __call__(self, name: str) -> bool:
        """Encode a shard, unless somebody has.

        Returns:
            Whether its rows are there; ``False``: nobody wants it any more.

        Raises:
            IndexFault: the index or the shard cannot be read or written.
            Exception: whatever the encoder raises for these passages.
        """
        if self._staging.encoded(name):
            return True
        texts = self._staging.texts(name)
        if texts is None:
            return False
        keys = [key(passage) for passage in texts.passages]
        if shard_name(keys, self._index.meta, texts.learned) != name:
            raise IndexMismatch(
                f"shard {name} is of another index than the one at {self._index.uri}, which was made anew, or of "
                "another version of Posology: let all have one version",
                index=self._index.uri,
            )
        self._remember(texts.learned)
        records = [
            (Record(passage=passage, path=Path(), line=1, row=0), one.hex())
            for passage, one in zip(texts.passages, keys, strict=True)
        ]
        self._staging.put_rows(name, list(self._maker.rows(records, None)))
        return True

    def _remember(self, wanted: str | None) -> None:
        if self._annotator is None or wanted == self._learned:
            return
        kept = read_learned(self._index.connection)
        data = None if kept is None else kept.data
        if data is None or learned_id(data) != wanted:
            raise IndexFault(
                f"what the annotator of the index at {self._index.uri} has learned is not there (yet)",
                index=self._index.uri,
            )
        try:
            self._annotator.restore(data)
        except ValueError as error:
            raise IndexFault(
                f"what the index at {self._index.uri} keeps of {self._annotator.name} is damaged",
                index=self._index.uri,
            ) from error
        self._learned = wanted
