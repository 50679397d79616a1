"""What a worker encodes with: its own embedder, annotator and codec, which must be the index's."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from orchestrator.settings import Settings
from posology.errors import ConfigurationError, PosologyError

if TYPE_CHECKING:
    from posology.index.shards.encoder import ShardEncoder
    from posology.seams import Embedder


class Encoders:
    """One encoder an index, over one embedder; loaded when the first shard comes. Blocking.

    Neither policies nor passages are loaded: a worker that only encodes needs the embedder's memory and no more.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._embedder: Embedder | None = None
        self._encoders: dict[str, ShardEncoder] = {}

    def __call__(self, place: str, name: str) -> None:
        """Encode a shard of the index at this place.

        Raises:
            PosologyError: this worker lacks the index, or what it was made with.
            Exception: whatever the encoder raises for these passages.
        """
        with self._lock:
            try:
                if place not in self._encoders:
                    self._encoders[place] = self._make(place)
                self._encoders[place](name)
            except PosologyError:
                # it may have been made anew since it was opened
                self._encoders.pop(place, None)
                raise

    def _make(self, place: str) -> ShardEncoder:
        from orchestrator.service import index_place
        from posology.index.shards.encoder import ShardEncoder
        from posology.index.store import Index
        from strategies.compression.late.codec import LateCodec
        from strategies.compression.self_information import make_annotator

        settings = self._settings
        return ShardEncoder(
            Index.open(index_place(settings, place)),
            self._load(),
            annotator=make_annotator(settings.self_information),
            codec=LateCodec.packaged() if settings.token_codes else None,
        )

    def _load(self) -> Embedder:
        from posology.index.embedders import load

        if self._embedder is None:
            refuse_bought(self._settings.embedder)
            self._embedder = load(self._settings.embedder, options=self._settings.embedding)
        return self._embedder


def refuse_bought(name: str | None) -> None:
    """Vectors that are bought come from one process, which has the account.

    Raises:
        ConfigurationError: the embedder is one that is paid for.
    """
    if name is not None and name.partition(":")[0] == "openai":
        raise ConfigurationError(
            f"{name} is paid for, and its provider encodes: ingest without --workers and --distributed"
        )
