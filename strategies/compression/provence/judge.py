"""Judgement of passages by a model: a score, and each token's probability of being kept."""

from __future__ import annotations

import hashlib
import string
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from posology.cancellation import checkpoint
from posology.types import Retrieved
from strategies.compression.provence.windows import Reading, Text, Window

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from strategies.compression.provence.checkpoint import Checkpoint

#: tokens of one forward pass; attention of a large model then takes 0.6 GB
TOKENS_A_PASS = 4_096
#: cached judgements: those of a few questions
KEPT = 1_024
#: Seconds per token and weight on two cores: half the time of one core for DeBERTa-v3 base and large, with random
#: weights, for windows of 64 and 256 tokens; for 512 tokens it is 2.5e-11.
SECONDS = 1.8e-11
#: mean characters per token in English
CHARACTERS = 4.5


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Judgement:
    """Judgement of one passage of n tokens for a question."""

    #: score, higher is better; of a long passage, that of its best window
    score: float
    #: probability that each token is kept, 0 to 1, shape ``(n,)``, float32
    kept: NDArray[np.float32]
    #: sentence of each token, -1 in the heading, ascending, shape ``(n,)``, int32
    sentence: NDArray[np.int32]

    def means(self, sentences: int) -> NDArray[np.float64]:
        """Return the mean probability of each sentence's tokens, 0 without tokens, shape ``(sentences,)``."""
        return self._mean(self.kept, sentences)

    def shares(self, threshold: float, sentences: int) -> NDArray[np.float64]:
        """Return the share of each sentence's tokens above a threshold, shape ``(sentences,)``."""
        return self._mean(self.kept > threshold, sentences)

    def _mean(self, values: NDArray[np.generic], sentences: int) -> NDArray[np.float64]:
        inside = self.sentence >= 0
        at = self.sentence[inside]
        total = np.bincount(at, weights=values[inside].astype(np.float64), minlength=sentences)
        return total / np.maximum(np.bincount(at, minlength=sentences), 1)


class Judge(ABC):
    """Judges passages, each in one reading with the question.

    The last judgements are cached: pruner and re-ranker share the pass of a passage. Thread-safe, one pass at a time.

    Args:
        name: architecture and digest of the weights.
        prunes: whether the token head is trained.
        ranks: whether the ranking head is trained.
    """

    def __init__(self, *, name: str, prunes: bool, ranks: bool) -> None:
        self.name = name
        self.prunes = prunes
        self.ranks = ranks
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, Judgement] = OrderedDict()

    @abstractmethod
    def _judge(self, query: str, passages: Sequence[Retrieved]) -> list[Judgement]:
        """Judge passages that are not cached."""

    @abstractmethod
    def _seconds(self, characters: int) -> float:
        """Estimate the seconds for texts of this length, questions included, on two cores."""

    def __call__(self, query: str, passages: Sequence[Retrieved]) -> list[Judgement]:
        """Judge passages for a question. Blocking."""
        keys = [_key(query, one) for one in passages]
        with self._lock:
            missing = {
                key: one for key, one in zip(keys, passages, strict=True) if key not in self._known
            }
            fresh = dict(zip(missing, self._judge(query, list(missing.values())), strict=True))
            found = [fresh.get(key) or self._known[key] for key in keys]
            self._known.update(fresh)
            for key in keys:
                self._known.move_to_end(key)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return found

    def seconds(self, query: str, passages: Sequence[Retrieved]) -> float:
        """Estimate the seconds for passages that are not cached, on two cores."""
        new = [one for one in passages if _key(query, one) not in self._known]
        return self._seconds(
            sum(len(one.passage.title) + len(one.passage.text) + len(query) for one in new)
        )


class CheckpointJudge(Judge):
    """Judges by a checkpoint in torch, in one forward pass for each window, batched by length.

    Args:
        checkpoint: the model.
        device: of the model.
        tokens_a_pass: maximum tokens of one forward pass, padding included.
    """

    def __init__(
        self, checkpoint: Checkpoint, *, device: str = "cpu", tokens_a_pass: int = TOKENS_A_PASS
    ) -> None:
        super().__init__(name=checkpoint.name, prunes=checkpoint.prunes, ranks=checkpoint.ranks)
        self.checkpoint = checkpoint
        self._reading = Reading.of(checkpoint)
        self._device = device
        self._tokens = tokens_a_pass
        #: number of forward passes
        self.passes = 0

    def _seconds(self, characters: int) -> float:
        return SECONDS * self.checkpoint.parameters * characters / CHARACTERS

    def _judge(self, query: str, passages: Sequence[Retrieved]) -> list[Judgement]:
        if not passages:
            return []
        from posology.index.embedders.sentence_transformer import heading

        texts = [
            self._reading.text(heading(one.passage), one.passage.text, one.sentences)
            for one in passages
        ]
        if self.checkpoint.plain:
            query = plain(query)
        windows = [
            (i, w) for i, text in enumerate(texts) for w in self._reading.windows(query, text)
        ]
        read = self._read([window for _, window in windows])
        parts: list[list[_Read]] = [[] for _ in passages]
        for (i, _), one in zip(windows, read, strict=True):
            parts[i].append(one)
        return [_joined(text, part) for text, part in zip(texts, parts, strict=True)]

    def _read(self, windows: Sequence[Window]) -> list[_Read]:
        from posology.index.embedders.windows import batches

        reads: dict[int, _Read] = {}
        lengths = [len(window.ids) for window in windows]
        for batch in batches(lengths, budget=self._tokens, limit=self._reading.limit):
            checkpoint()
            rows = [windows[i] for i in batch.items]
            inputs = self._reading.tensors(rows, width=batch.width, device=self._device)
            scores, kept = (t.cpu().numpy() for t in self.checkpoint.model.tokens_kept(inputs))
            self.passes += 1
            for row, i in enumerate(batch.items):
                first, owned = windows[i].first, windows[i].owned
                reads[i] = _Read(
                    score=float(scores[row]), kept=kept[row, first : first + owned].copy()
                )
        return [reads[i] for i in range(len(windows))]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Read:
    """Judgement of one window."""

    score: float
    kept: NDArray[np.float32]


def _joined(text: Text, parts: Sequence[_Read]) -> Judgement:
    return Judgement(
        score=max(part.score for part in parts),
        kept=np.concatenate([part.kept for part in parts]).astype(np.float32),
        sentence=text.sentence,
    )


def plain(question: str) -> str:
    """Lower-case a question and remove ASCII punctuation and extra spaces; unchanged if nothing remains."""
    kept = "".join(char for char in question.lower() if char not in string.punctuation)
    return " ".join(kept.split()) or question


def _key(query: str, one: Retrieved) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in (
        query,
        one.passage.title,
        one.passage.text,
        str([(s.start, s.end) for s in one.sentences]),
    ):
        content = part.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "big"))
        digest.update(content)
    return digest.digest()
