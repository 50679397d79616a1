"""Retrievals with token codes, as an index with the packaged codec gives them, without an encoder."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from posology.types import Retrieval, Retrieved, TokenCodes, TokenVectors
from strategies.compression.late.codec import LateCodec

_WORD = re.compile(r"\w+")


def coded(retrieval: Retrieval) -> Retrieval:
    """The same with a token a word, whose vector depends on the word alone."""
    codec = LateCodec.packaged()
    dim = len(retrieval.query_vector)
    return replace(
        retrieval,
        passages=tuple(
            replace(one, tokens=_codes(one, codec), vector=_vector(one.passage.id, dim))
            for one in retrieval.passages
        ),
        query_tokens=_tokens([retrieval.query.text], codec)[0],
        codec=codec.name,
    )


def _codes(one: Retrieved, codec: LateCodec) -> TokenCodes:
    parts = _tokens([one.passage.title, *(s.of(one.passage.text) for s in one.sentences)], codec)
    codes = np.concatenate([codec(part) for part in parts])
    codes.flags.writeable = False
    return TokenCodes(codes=codes, counts=np.array([len(part.ids) for part in parts], np.int32))


def _tokens(texts: Sequence[str], codec: LateCodec) -> list[TokenVectors]:
    dim, vocabulary = len(codec.rotation), len(codec.centres)
    found = []
    for text in texts:
        words = list(_WORD.finditer(text))
        ids = [zlib.crc32(w[0].encode("utf-8", "replace")) % vocabulary for w in words]
        vectors = [_vector(w[0].lower(), dim) for w in words]
        found.append(
            TokenVectors(
                vectors=np.array(vectors, np.float32).reshape(-1, dim),
                ids=np.array(ids, np.int64),
                starts=np.array([w.start() for w in words], np.int64),
                ends=np.array([w.end() for w in words], np.int64),
            )
        )
    return found


@lru_cache(maxsize=4_096)
def _vector(word: str, dim: int) -> np.ndarray:
    rng = np.random.default_rng(zlib.crc32(word.encode("utf-8", "replace")))
    vector = rng.normal(size=dim).astype(np.float32)
    unit: np.ndarray = vector / np.linalg.norm(vector)
    unit.flags.writeable = False
    return unit
