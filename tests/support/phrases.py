"""Phrases as an annotator makes them, but for what they tell: bits that depend on the words alone."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from posology.types import Phrases, Sentence
from strategies.compression.wording.phrases import segment


def phrases_of(text: str, sentences: Sequence[Sentence]) -> Phrases:
    """Of 4 to 16 bits a word each."""
    found = segment(text, sentences)
    borders = [*found.phrases, len(found.starts)]
    rows = list(pairwise(borders))
    spans = [(found.starts[a], found.ends[b - 1]) for a, b in rows]
    bits = [4 + zlib.crc32(text[a:b].encode("utf-8", "replace")) % 120 / 10 for a, b in spans]
    return Phrases(
        starts=np.array([a for a, _ in spans], np.int32),
        ends=np.array([b for _, b in spans], np.int32),
        words=np.array([b - a for a, b in rows], np.int32),
        information=np.array(bits, np.float32),
        clauses=np.array(found.clauses, np.int32),
        protected=np.array(found.protected, np.bool_),
    )
