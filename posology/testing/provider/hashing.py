"""Vectors of texts without a model or NumPy, for a stub that starts fast."""

from __future__ import annotations

import re
import zlib

_WORD = re.compile(r"\w+")


def hashed(text: str, dim: int) -> list[float]:
    """Each word counts at one place of the vector; a text without words has the first unit vector.

    Args:
        text: any.
        dim: numbers.
    """
    vector = [0.0] * dim
    for word in _WORD.findall(text.lower()):
        code = zlib.crc32(word.encode(errors="replace"))
        vector[code % dim] += 1.0 if code >> 31 else -1.0
    if not any(vector):
        vector[0] = 1.0
    return vector
