"""What compressors share: reading a share, and making their result of spans."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from posology.types import Compressed, Excerpt, Retrieval, Sentence

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def share_of(keep: float | None, default: float) -> float:
    """The share that is to be left: ``keep``, or the default where it is ``None``.

    Raises:
        ValueError: ``keep`` is not 0 to 1.
    """
    return default if (share := checked(keep)) is None else share


def checked(keep: float | None) -> float | None:
    """The same share.

    Raises:
        ValueError: it is not 0 to 1.
    """
    if keep is not None and not 0 <= keep <= 1:
        raise ValueError(f"a share that is left is 0 to 1, not {keep}")
    return keep


def rounded_up(share: float, count: int) -> int:
    """A share of a count, in whole ones."""
    # 0.07 × 100 is a little more than 7 in floating point
    return math.ceil(round(share * count, 9))


def of_spans(
    retrieval: Retrieval, spans: Sequence[Sequence[Sentence]], *, compressor: str
) -> Compressed:
    """The result that shows these spans.

    Args:
        retrieval: what was compressed.
        spans: of each passage, in order, none across sentences; a passage without any is left out.
        compressor: the name of whoever chose them.
    """
    excerpts = []
    kept = count = 0
    for retrieved, left in zip(retrieval.passages, spans, strict=True):
        count += len(retrieved.sentences)
        if left:
            kept += len(set(left).intersection(retrieved.sentences))
            excerpts.append(Excerpt(passage=retrieved.passage, sentences=tuple(left)))
    return Compressed(excerpts=tuple(excerpts), kept=kept, sentences=count, compressor=compressor)


def of_sentences(retrieval: Retrieval, kept: NDArray[np.bool_], *, compressor: str) -> Compressed:
    """The result that shows whole sentences.

    Args:
        retrieval: what was compressed.
        kept: of each sentence of all passages, in order, whether it is left.
        compressor: the name of whoever chose them.
    """
    flags = iter(kept.tolist())
    spans = [[s for s in one.sentences if next(flags)] for one in retrieval.passages]
    return of_spans(retrieval, spans, compressor=compressor)
