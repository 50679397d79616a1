"""Model inputs of the cross-encoder: a question or a claim, then a text; and the sentence of each token.

``[CLS] question [SEP] heading text [SEP]``. A text that does not fit is read in several windows, each of which begins
with the first sentence that did not fit; training and inference use the same windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from tokenizers import Tokenizer

from posology.hub import PACKAGED
from posology.index.embedders.windows import cut
from posology.types import Sentence

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: maximum tokens of an input, special tokens included
LIMIT = 320
#: maximum tokens of a question or claim; the rest is left out
MOST_ASKED = 96
#: sentence of the tokens of the heading
HEADING = -1
#: special tokens of an input
_SPECIAL = 3


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Pair:
    """One input of the model."""

    #: token ids, special tokens included, shape ``(n,)``, int64
    ids: NDArray[np.int64]
    #: place of the first token of the text; tokens before it are segment 0
    first: int
    #: sentence of each token of the text, :data:`HEADING` in the heading, ascending, shape ``(m,)``, int64
    sentence: NDArray[np.int64]
    #: offsets into the text of each of its tokens, shape ``(m,)``, int64; of the heading, negative
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


@cache
def tokenizer() -> Tokenizer:
    """Return the packaged encoder's tokenizer, without truncation and padding."""
    found = Tokenizer.from_file(str(PACKAGED / "tokenizer.json"))
    found.no_truncation()
    found.no_padding()
    return found


def pairs(
    asked: str, text: str, sentences: Sequence[Sentence], *, heading: str = "", limit: int = LIMIT
) -> list[Pair]:
    """Return the windows over a text, at least one.

    Args:
        asked: question or claim.
        text: that is read.
        sentences: that it shows, in order; what stands between them is read, too.
        heading: read before the text, in the first window.
        limit: maximum tokens of a window, special tokens included.
    """
    made = tokenizer()
    cls, sep = (made.token_to_id(name) for name in ("[CLS]", "[SEP]"))
    question = made.encode(asked, add_special_tokens=False).ids[: min(MOST_ASKED, limit // 3)]
    read = made.encode(heading + text, add_special_tokens=False)
    offsets = np.array(read.offsets, dtype=np.int64).reshape(-1, 2) - len(heading)
    ends = np.array([s.end for s in sentences], dtype=np.int64)
    number = np.searchsorted(ends, offsets[:, 0], side="right")
    number = np.minimum(number, len(sentences) - 1)
    number[offsets[:, 0] < 0] = HEADING
    begins = np.searchsorted(number, np.arange(len(sentences)), side="left")
    ids = np.array(read.ids, dtype=np.int64)
    windows = cut(
        0,
        len(ids),
        sentence_starts=begins.tolist(),
        capacity=max(limit - len(question) - _SPECIAL, 1),
    )
    before = np.array([cls, *question, sep], dtype=np.int64)
    return [
        Pair(
            ids=np.concatenate([before, ids[w.start : w.end], [sep]]),
            first=len(before),
            sentence=number[w.start : w.end],
            starts=offsets[w.start : w.end, 0],
            ends=offsets[w.start : w.end, 1],
        )
        for w in windows
    ]


def claimed(claim: str, text: str) -> Pair:
    """Return a claim and a text as one input; of a text that is too long, the beginning."""
    return pairs(claim, text, [Sentence(start=0, end=len(text))])[0]


def padded(
    inputs: Sequence[Pair],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return ids, mask and segments of inputs, shape ``(len(inputs), longest)`` each, int64."""
    width = max(len(one.ids) for one in inputs)
    ids, mask, segments = (np.zeros((len(inputs), width), np.int64) for _ in range(3))
    for row, one in enumerate(inputs):
        size = len(one.ids)
        ids[row, :size] = one.ids
        mask[row, :size] = 1
        segments[row, one.first : size] = 1
    return ids, mask, segments
