"""Helpers of compressors: validate a share, and make a result from spans."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from posology.types import Compressed, Retrieval, Sentence

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def share_of(keep: float | None, default: float) -> float:
    """Return ``keep``, or the default if it is ``None``.

    Raises:
        ValueError: ``keep`` is not 0 to 1.
    """
    return default if (share := checked(keep)) is None else share


def checked(keep: float | None) -> float | None:
    """Return ``keep`` unchanged.

    Raises:
        ValueError: ``keep`` is not 0 to 1.
    """
    if keep is not None and not 0 <= keep <= 1:
        raise ValueError(f"keep must be 0 to 1 (got {keep})")
    return keep


def rounded_up(share: float, count: int) -> int:
    """Return a share of a count, rounded up to a whole number."""
    # 0.07 × 100 is a little more than 7 in floating point
    return math.ceil(round(share * count, 9))


def of_spans(
    retrieval: Retrieval, spans: Sequence[Sequence[Sentence]], *, compressor: str
) -> Compressed:
    """Return the result that shows these spans.

    Args:
        retrieval: the compressed retrieval.
        spans: spans of each passage, in order, none across sentences; a passage without spans is omitted.
        compressor: name of the compressor.
    """
    excerpts = []
    kept = count = 0
    for retrieved, left in zip(retrieval.passages, spans, strict=True):
        count += len(retrieved.sentences)
        if left:
            kept += len(set(left).intersection(retrieved.sentences))
            excerpts.append(retrieved.excerpt(left))
    return Compressed(excerpts=tuple(excerpts), kept=kept, sentences=count, compressor=compressor)


def of_sentences(retrieval: Retrieval, kept: NDArray[np.bool_], *, compressor: str) -> Compressed:
    """Return the result that shows whole sentences.

    Args:
        retrieval: the compressed retrieval.
        kept: whether each sentence of all passages, in order, is kept.
        compressor: name of the compressor.
    """
    flags = iter(kept.tolist())
    spans = [[s for s in one.sentences if next(flags)] for one in retrieval.passages]
    return of_spans(retrieval, spans, compressor=compressor)
