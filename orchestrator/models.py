"""The models of one process: each is loaded once, when it is first needed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from posology.index.embedders import DEFAULT, PACKAGED
from posology.index.embedders import load as load_embedder
from posology.seams import Complete
from posology.text.tokens import wordpiece_counter
from posology.types import TokenVectors

if TYPE_CHECKING:
    from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder


class Models:
    """Loads encoders when they are first used, in the thread that uses them, and shares them.

    Args:
        embedder: a sentence-transformers name or folder; ``None``: the packaged encoder.
    """

    def __init__(self, embedder: str | None) -> None:
        self._embedder = embedder
        self._lock = threading.Lock()
        self._loaded: dict[str | None, SentenceTransformerEmbedder] = {}

    def embedder(self) -> SentenceTransformerEmbedder:
        """The encoder of questions and passages. Blocking.

        Raises:
            EmbedderUnavailable: its files cannot be loaded.
        """
        return self._load(self._embedder)

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """As a :class:`~posology.seams.TokenEncoder`: the packaged encoder, whatever the index's.

        The offline reader's threshold and weights hold for that one only.
        """
        return self._load(None).token_vectors(texts)

    def reader(self) -> Complete:
        """The offline reader, which counts tokens with the packaged encoder's own tokenizer."""
        from posology.llm.offline import ExtractiveReader

        return ExtractiveReader(self, wordpiece_counter(PACKAGED[DEFAULT]() / "tokenizer.json"))

    def _load(self, name: str | None) -> SentenceTransformerEmbedder:
        name = None if name == DEFAULT else name
        with self._lock:
            if name not in self._loaded:
                self._loaded[name] = load_embedder(name)
            return self._loaded[name]
