"""Words as the n-gram model counts them."""

from __future__ import annotations

import math
import re

#: bits that a digit tells when only its place is known
DIGIT_BITS = math.log2(10)

_OUTER = "()[]{}\"'“”‘’«».,;:!?*…"
_DIGIT = re.compile(r"\d")


def form(word: str) -> tuple[str, float]:
    """What a word is counted as, and what it tells beyond that.

    Letters are taken in lower case, punctuation around them away. Numbers are counted by their shape,
    ``12.5%`` as ``00.0%``: which number it is, nothing tells, so each digit adds :data:`DIGIT_BITS`.

    Args:
        word: a run of characters without white space.

    Returns:
        The form, never empty, and bits to add to the form's.
    """
    core = word.strip(_OUTER) or word
    lower = core.lower()
    if lower.isalpha() or any(map(str.isalpha, lower)):
        return lower, 0.0
    shape, digits = _DIGIT.subn("0", lower)
    return shape, digits * DIGIT_BITS
