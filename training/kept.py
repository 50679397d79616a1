"""Results that are kept on disk, so that an interrupted run resumes and a passage is encoded once in all runs."""

from __future__ import annotations

import hashlib
import io
import json
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from posology.index.schema import quantise
from posology.seams import Embedder, TokenCodec
from posology.types import Encoded, Passage, Sentence, TokenCodes

#: passages that are encoded at a time; an interrupted run loses no more
BATCH = 32


class Kept:
    """Bytes by key in a SQLite file. For one thread at a time.

    Args:
        path: the file; made when missing.
    """

    def __init__(self, path: Path) -> None:
        # retrieval runs in worker threads, one at a time
        self._file = sqlite3.connect(path, check_same_thread=False)
        self._file.execute("CREATE TABLE IF NOT EXISTS kept (key BLOB PRIMARY KEY, value BLOB)")

    def get(self, key: bytes) -> bytes | None:
        """Return what is kept under a key; ``None``: nothing."""
        row = self._file.execute("SELECT value FROM kept WHERE key = ?", (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def put(self, *pairs: tuple[bytes, bytes]) -> None:
        """Keep values under their keys, all or none."""
        with self._file:
            self._file.executemany("INSERT OR REPLACE INTO kept VALUES (?, ?)", pairs)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def key_of(*what: object) -> bytes:
    """Return the key of a result, from all that it depends on."""
    return hashlib.blake2b(repr(what).encode(), digest_size=16).digest()


async def kept_json(kept: Kept, key: bytes, make: Callable[[], Any]) -> Any:
    """Return a JSON value that is kept, else make and keep it; ``make`` returns an awaitable."""
    if (found := kept.get(key)) is not None:
        return json.loads(found)
    value = await make()
    kept.put((key, json.dumps(value).encode()))
    return value


class Stored:
    """:class:`~posology.seams.Embedder` that keeps what it encodes of passages.

    Sentences' vectors are kept as an index keeps them, 8 bits a component.

    Args:
        embedder: encodes what is not kept.
        kept: keeps it.
    """

    def __init__(self, embedder: Embedder, kept: Kept) -> None:
        self._embedder = embedder
        self._kept = kept
        self.name, self.dim = embedder.name, embedder.dim
        self.embed_queries = embedder.embed_queries
        self.encode_query = embedder.encode_query

    def embed_passages(
        self,
        passages: Sequence[Passage],
        sentences: Sequence[Sequence[Sentence]],
        codec: TokenCodec | None = None,
    ) -> list[Encoded]:
        """Return encodings in order; new ones are made in batches of like lengths."""
        keys = [self._key(*pair, codec) for pair in zip(passages, sentences, strict=True)]
        encodings = {
            key: _unpacked(one) for key in keys if (one := self._kept.get(key)) is not None
        }
        new = {key: place for place, key in enumerate(keys) if key not in encodings}
        places = sorted(new.values(), key=lambda place: len(passages[place].text))
        for start in range(0, len(places), BATCH):
            batch = places[start : start + BATCH]
            encoded = self._embedder.embed_passages(
                [passages[i] for i in batch], [sentences[i] for i in batch], codec
            )
            packed = [(keys[i], _packed(one)) for i, one in zip(batch, encoded, strict=True)]
            self._kept.put(*packed)
            encodings.update((key, _unpacked(value)) for key, value in packed)
        return [encodings[key] for key in keys]

    def _key(
        self, passage: Passage, sentences: Sequence[Sentence], codec: TokenCodec | None
    ) -> bytes:
        bounds = [(one.start, one.end) for one in sentences]
        named = None if codec is None else codec.name
        return key_of("encoded", self.name, named, passage.title, passage.text, bounds)


def _packed(one: Encoded) -> bytes:
    arrays: dict[str, Any] = {"vector": one.vector, "sentences": quantise(one.sentence_vectors)}
    if one.tokens is not None:
        arrays |= {"codes": one.tokens.codes, "counts": one.tokens.counts}
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _unpacked(value: bytes) -> Encoded:
    with np.load(io.BytesIO(value), allow_pickle=False) as file:
        arrays = dict(file)
    codes = arrays.get("codes")
    return Encoded(
        vector=arrays["vector"],
        sentence_vectors=arrays["sentences"].astype(np.float32) / 127,
        tokens=None if codes is None else TokenCodes(codes=codes, counts=arrays["counts"]),
    )
