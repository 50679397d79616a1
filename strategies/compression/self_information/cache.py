"""Cache of a slow language model's scores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from posology.seams import Memory
from strategies.compression.wording.phrases import Segments

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from strategies.compression.self_information.annotator import Scorer


class RememberedScorer:
    """Scorer that asks a language model once for each text and caches the bits in half precision.

    It is a :class:`~strategies.compression.self_information.annotator.Scorer` with the model's name.

    Args:
        scorer: language model whose name identifies its trained state.
        memory: cache of any size.
    """

    def __init__(self, scorer: Scorer, memory: Memory) -> None:
        self._scorer = scorer
        self._memory = memory

    @property
    def name(self) -> str:
        """Return the language model's name."""
        return self._scorer.name

    def learn(self, texts: Iterable[str]) -> None:
        """Train the language model."""
        self._scorer.learn(texts)

    def dump(self) -> bytes | None:
        """Return the language model's trained state."""
        return self._scorer.dump()

    def restore(self, learned: bytes) -> None:
        """Load the language model's trained state.

        Raises:
            ValueError: the bytes have another format.
        """
        self._scorer.restore(learned)

    def bits(self, texts: Sequence[str], segments: Sequence[Segments]) -> list[NDArray[np.float32]]:
        """Return the bits of each word of each text."""
        keys = [self._key(text, found) for text, found in zip(texts, segments, strict=True)]
        known = self._memory.get(list(dict.fromkeys(keys)))
        new = {key: i for i, key in enumerate(keys) if key not in known}
        if new:
            asked = self._scorer.bits(
                [texts[i] for i in new.values()], [segments[i] for i in new.values()]
            )
            fresh = {
                key: bits.astype(np.float16).tobytes() for key, bits in zip(new, asked, strict=True)
            }
            self._memory.put(fresh)
            known = {**known, **fresh}
        return [np.frombuffer(known[key], np.float16).astype(np.float32) for key in keys]

    def _key(self, text: str, found: Segments) -> bytes:
        digest = blake2b(digest_size=20, key=b"self-information")
        for part in (self.name, text):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
        # words may differ for one text: sentences without a space between them part words
        digest.update(np.array(found.starts, np.int32).tobytes())
        return digest.digest()
