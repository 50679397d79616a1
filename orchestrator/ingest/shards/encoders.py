"""Encoders of a worker: its own embedder, annotator and codec, which must be the index's."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from orchestrator.settings import Settings
from posology.errors import ConfigurationError, PosologyError

if TYPE_CHECKING:
    from posology.index.shards.encoder import ShardEncoder
    from posology.seams import Embedder


class Encoders:
    """One encoder per index, over one embedder that is loaded with the first shard. Blocking.

    Policies and passages are not loaded: a worker that only encodes needs little more memory than its embedder.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._embedder: Embedder | None = None
        self._encoders: dict[str, ShardEncoder] = {}

    def __call__(self, place: str, name: str) -> None:
        """Encode a shard of the index at an address.

        Raises:
            PosologyError: this worker lacks the index, or a model that it was made with.
            Exception: any error of the encoder for these passages.
        """
        with self._lock:
            try:
                if place not in self._encoders:
                    self._encoders[place] = self._make(place)
                self._encoders[place](name)
            except PosologyError:
                # the index may have been replaced since it was opened
                self._encoders.pop(place, None)
                raise

    def _make(self, place: str) -> ShardEncoder:
        from orchestrator.service import index_place
        from posology.index.build.rows import RowSource
        from posology.index.shards.encoder import ShardEncoder
        from posology.index.store import Index
        from strategies.compression.late.codec import LateCodec
        from strategies.compression.self_information import make_annotator

        settings = self._settings
        source = RowSource(
            embedder=self._load(),
            annotator=make_annotator(settings.self_information),
            codec=LateCodec.packaged() if settings.token_codes else None,
        )
        return ShardEncoder(Index.open(index_place(settings, place)), source)

    def _load(self) -> Embedder:
        from posology.index.embedders import load

        if self._embedder is None:
            refuse_bought(self._settings.embedder)
            self._embedder = load(self._settings.embedder, options=self._settings.embedding)
        return self._embedder


def refuse_bought(name: str | None) -> None:
    """Refuse an embedder that is paid for: only the process with the account buys vectors.

    Raises:
        ConfigurationError: the embedder is paid for.
    """
    if name is not None and name.partition(":")[0] == "openai":
        raise ConfigurationError(
            f"{name} is paid for, and its provider encodes: remove --workers or --distributed"
        )
