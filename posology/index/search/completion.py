"""Completion of retrieved passages whose sentences and tokens were not encoded at ingest."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace

from posology.index.schema import quantise
from posology.seams import Embedder, TokenCodec
from posology.text.roles.column import roles_of
from posology.types import Passage, Retrieved

#: completed passages that are kept, about 25 kB each
KEPT = 512


class Completion:
    """Encodes the sentences and tokens of passages that lack them, and keeps the last ones. Thread-safe.

    Args:
        embedder: of the index.
        codec: returns the codec of the index, or ``None``; called when it is first needed.
    """

    def __init__(self, embedder: Embedder, codec: Callable[[], TokenCodec | None]) -> None:
        self._embedder = embedder
        self._codec = codec
        self._kept: OrderedDict[Passage, Retrieved] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, passages: Sequence[Retrieved]) -> tuple[Retrieved, ...]:
        """Return the passages with all that an ingest computes of them. Blocking where one is encoded."""
        lacking = [one for one in passages if len(one.sentence_vectors) != len(one.sentences)]
        if not lacking:
            return tuple(passages)
        with self._lock:
            completed = {
                one.passage: self._kept[one.passage] for one in lacking if one.passage in self._kept
            }
        new = [one for one in lacking if one.passage not in completed]
        if new:
            encoded = self._embedder.embed_passages(
                [one.passage for one in new], [one.sentences for one in new], self._codec()
            )
            for one, vectors in zip(new, encoded, strict=True):
                quantised = quantise(vectors.sentence_vectors)
                completed[one.passage] = replace(
                    one,
                    sentence_vectors=quantised,
                    tokens=vectors.tokens,
                    roles=roles_of(self._embedder.name, one.passage, one.sentences, quantised),
                )
        with self._lock:
            for passage, one in completed.items():
                self._kept[passage] = one
                self._kept.move_to_end(passage)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return tuple(
            one
            if (whole := completed.get(one.passage)) is None
            else replace(
                one,
                sentence_vectors=whole.sentence_vectors,
                tokens=whole.tokens,
                roles=whole.roles,
            )
            for one in passages
        )
