"""Worker side of distributed ingest: from the texts of a shard to its rows."""

from __future__ import annotations

from pathlib import Path

from posology.corpus.items import Record
from posology.errors import IndexFault, IndexMismatch
from posology.index.build.rows import RowSource
from posology.index.learned import read_learned
from posology.index.shards.staging import Staging, key, learned_id, shard_name
from posology.index.store import Index


class ShardEncoder:
    """Encodes the shards of one index. Blocking, one shard at a time.

    It reads the index's metadata, the texts and the annotator's learned state, and writes only the shard's rows: the
    index's passages are neither read nor written.
    """

    def __init__(self, index: Index, source: RowSource) -> None:
        """Check that this worker has the models that the index was made with.

        Raises:
            IndexMismatch: the index was made with another embedder, annotator or codec.
        """
        self._builder = source.builder_for(index)
        self._index = index
        self._annotator = source.annotator
        self._staging = Staging(index.connection, index.meta)
        #: id of the learned state that the annotator has
        self._learned: str | None = None

    def __call__(self, name: str) -> bool:
        """Encode a shard, unless its rows are there.

        Returns:
            Whether its rows are there; ``False``: the shard was dropped.

        Raises:
            IndexFault: the index or the shard cannot be read or written.
            Exception: any error of the encoder for these passages.
        """
        if self._staging.encoded(name):
            return True
        texts = self._staging.texts(name)
        if texts is None:
            return False
        keys = [key(passage) for passage in texts.passages]
        if shard_name(keys, self._index.meta, texts.learned) != name:
            raise IndexMismatch(
                f"shard {name} does not belong to the index at {self._index.uri}: either the index was replaced, or "
                "writer and workers run different versions of Posology. Use one version everywhere.",
                index=self._index.uri,
            )
        self._restore(texts.learned)
        records = [
            (Record(passage=passage, path=Path(), line=1, row=0), one.hex())
            for passage, one in zip(texts.passages, keys, strict=True)
        ]
        self._staging.put_rows(name, list(self._builder.rows(records, None)))
        return True

    def _restore(self, wanted: str | None) -> None:
        """Load the annotator's learned state with this id."""
        if self._annotator is None or wanted == self._learned:
            return
        kept = read_learned(self._index.connection)
        data = None if kept is None else kept.data
        if data is None or learned_id(data) != wanted:
            raise IndexFault(
                f"the index at {self._index.uri} does not hold (yet) the learned state {wanted} of its annotator",
                index=self._index.uri,
            )
        try:
            self._annotator.restore(data)
        except ValueError as error:
            raise IndexFault(
                f"the learned state of {self._annotator.name} in the index at {self._index.uri} is damaged: build a new index",
                index=self._index.uri,
            ) from error
        self._learned = wanted
