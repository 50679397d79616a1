"""The models of one process: each is loaded once, on first use."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.settings.values import ReaderOptions
from posology.errors import PosologyError
from posology.hub import DEFAULT, PACKAGED
from posology.index.embedders import load as load_embedder
from posology.index.embedders.options import Options
from posology.seams import Embedder, Send, SupportJudge
from posology.text.tokens import wordpiece_counter
from posology.types import TokenVectors

if TYPE_CHECKING:
    from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder


def reads() -> bool:
    """Return whether the weights of the packaged cross-encoder are installed."""
    from posology.reading.crossencoder import FILE, MODELS

    return (MODELS / FILE).is_file()


class Models:
    """Loads encoders on first use, in the caller's thread, and shares them.

    Args:
        embedder: name for :func:`~posology.index.embedders.load`; ``None``: the packaged encoder.
        options: options of encoders; ``None``: those that need no cache.
    """

    def __init__(self, embedder: str | Path | None, options: Options | None = None) -> None:
        self._options = options or Options()
        self._embedder = None if embedder == DEFAULT else embedder
        self._lock = threading.Lock()
        self._packaged: SentenceTransformerEmbedder | None = None
        self._own: Embedder | None = None

    def load_ahead(self, reading: ReaderOptions | None = None) -> None:
        """Begin to load the encoder in a thread, while the caller imports and opens other things.

        An error is raised again by what loads it in the foreground.

        Args:
            reading: options of the offline reader, whose models are loaded too; ``None``: another model answers.
        """

        def load() -> None:
            with suppress(PosologyError):
                self.embedder()
            if reading is not None and reading.method != "late" and reads():
                from posology.reading.crossencoder import CrossEncoder

                with suppress(PosologyError):
                    CrossEncoder.packaged()
                    self.judge()

        threading.Thread(target=load, name="encoder").start()

    def embedder(self) -> Embedder:
        """Return the encoder of questions and passages. Blocking.

        Raises:
            EmbedderUnavailable: its files cannot be loaded.
        """
        if self._embedder is None:
            return self._load_packaged()
        with self._lock:
            if self._own is None:
                self._own = load_embedder(self._embedder, options=self._options)
            return self._own

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Encode tokens as a :class:`~posology.seams.TokenEncoder`, always by the packaged encoder.

        The offline reader's threshold and weights hold for that one only.
        """
        return self._load_packaged().token_vectors(texts)

    def offline(self, options: ReaderOptions) -> Send:
        """Return the offline reader; without the cross-encoder's weights, the one by likeness."""
        if options.method == "late" or not reads():
            return self.reader(options.seconds)
        from posology.llm.offline.answering import AnswerScorer, KeptReadings
        from posology.llm.offline.candidates import Candidates
        from posology.llm.offline.reader import ExtractiveReader
        from posology.reading.crossencoder import CrossEncoder
        from posology.text.tokens import wordpieces

        file = PACKAGED / "tokenizer.json"

        def answers() -> AnswerScorer:
            candidates = Candidates(wordpieces(file), options.tokens)
            return AnswerScorer(KeptReadings(CrossEncoder.packaged()), candidates, self)

        return ExtractiveReader(
            self,
            wordpiece_counter(file),
            answers=answers,
            judge=self.judge,
            seconds=options.seconds,
        )

    def reader(self, seconds: float | None = None) -> Send:
        """Return the offline reader by likeness, which counts tokens with the packaged encoder's tokenizer.

        Args:
            seconds: maximum predicted seconds of a call; ``None``: no limit.
        """
        from posology.llm.offline.reader import ExtractiveReader

        return ExtractiveReader(
            self, wordpiece_counter(PACKAGED / "tokenizer.json"), seconds=seconds
        )

    def judge(self) -> SupportJudge | None:
        """Return the packaged judge of support; ``None``: its weights are not installed. Blocking."""
        from posology.reading.crossencoder import MODELS
        from posology.reading.judge import FILE, Judge

        return Judge.packaged() if (MODELS / FILE).is_file() else None

    def _load_packaged(self) -> SentenceTransformerEmbedder:
        with self._lock:
            if self._packaged is None:
                self._packaged = load_embedder(options=self._options)
            return self._packaged
