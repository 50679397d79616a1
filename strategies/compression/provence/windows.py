"""Model input of a question with a passage: windows of tokens, and the sentence of each token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from posology.types import Sentence

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from strategies.compression.provence.checkpoint import Checkpoint

#: Minimum tokens for the passage in a window: a question that leaves fewer is truncated. No question of the paper's
#: data sets is that long.
LEAST_PASSAGE = 32
#: sentence number of the tokens of the heading
HEADING = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """One model input: the question and consecutive tokens of the passage."""

    #: token ids, special tokens included
    ids: tuple[int, ...]
    #: segment of each token
    segments: tuple[int, ...]
    #: place of the first token of the passage
    first: int
    #: number of passage tokens that are judged in this window; those after them are context and begin the next
    #: window
    owned: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Text:
    """A passage of n tokens with its heading."""

    #: token ids, shape ``(n,)``
    ids: tuple[int, ...]
    #: sentence of each token, :data:`HEADING` in the heading, ascending, shape ``(n,)``, int32
    sentence: NDArray[np.int32]


class Reading:
    """Builds the windows of pairs, with the tokenizer's special tokens.

    Args:
        tokenizer: fast tokenizer.
        limit: maximum tokens of a window, special tokens included.
        segments: whether the model has segment ids.
        pad: id of the padding token.
    """

    def __init__(self, tokenizer: Any, *, limit: int, segments: bool, pad: int) -> None:
        self._tokenizer = tokenizer
        self._limit = limit
        self._segments = segments
        self._pad = pad

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Reading:
        """Return the reading of a model."""
        return cls(
            checkpoint.tokenizer,
            limit=checkpoint.limit,
            segments=checkpoint.segments,
            pad=checkpoint.pad,
        )

    @property
    def limit(self) -> int:
        """Return the maximum tokens of a window, special tokens included."""
        return self._limit

    def text(self, heading: str, text: str, sentences: Sequence[Sentence]) -> Text:
        """Tokenize a passage.

        Args:
            heading: precedes the text, with full stop and space; may be empty.
            text: of the passage.
            sentences: of the text.
        """
        read = self._tokenizer(
            heading + text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        offsets = np.array(read["offset_mapping"], dtype=np.int64).reshape(-1, 2)
        # a token may include the space before it, so its last character determines the sentence
        at = np.maximum(offsets[:, 1] - 1, offsets[:, 0]) - len(heading)
        ends = np.array([s.end for s in sentences], dtype=np.int64)
        found = np.searchsorted(ends, at, side="right")
        if len(sentences):
            found = np.minimum(found, len(sentences) - 1)
            found[at < 0] = HEADING
        else:
            found[:] = HEADING
        # some tokenizers prepend a space
        sentence = np.maximum.accumulate(found) if len(found) else found
        return Text(ids=tuple(read["input_ids"]), sentence=sentence.astype(np.int32))

    def windows(self, query: str, text: Text) -> list[Window]:
        """Split a passage into windows, at sentence boundaries if possible.

        The question is truncated only if it leaves fewer than :data:`LEAST_PASSAGE` tokens.
        """
        from posology.index.embedders.windows import cut

        before, after = self._around(query)
        capacity = self._limit - len(before) - len(after)
        count = int(text.sentence[-1]) + 1 if len(text.ids) else 0
        starts = np.searchsorted(text.sentence, np.arange(count), side="left")
        parts = cut(0, len(text.ids), sentence_starts=starts.tolist(), capacity=capacity)
        return [
            Window(
                ids=(*(i for i, _ in before), *text.ids[p.start : p.end], *(i for i, _ in after)),
                segments=(
                    *(s for _, s in before),
                    *(1,) * (p.end - p.start),
                    *(s for _, s in after),
                ),
                first=len(before),
                owned=p.owned - p.start,
            )
            for p in parts
        ]

    def tensors(
        self, windows: Sequence[Window], *, width: int | None = None, device: str = "cpu"
    ) -> Mapping[str, Tensor]:
        """Return the padded inputs of a model.

        Args:
            windows: at least one.
            width: tokens of each input; ``None``: those of the longest window.
            device: for the tensors.
        """
        import torch

        width = width or max(len(w.ids) for w in windows)
        ids = torch.full((len(windows), width), self._pad, dtype=torch.long)
        mask = torch.zeros((len(windows), width), dtype=torch.long)
        segments = torch.zeros((len(windows), width), dtype=torch.long)
        for row, window in enumerate(windows):
            size = len(window.ids)
            ids[row, :size] = torch.tensor(window.ids)
            segments[row, :size] = torch.tensor(window.segments)
            mask[row, :size] = 1
        made = {"input_ids": ids, "attention_mask": mask}
        if self._segments:
            made["token_type_ids"] = segments
        return {name: tensor.to(device) for name, tensor in made.items()}

    def _around(self, query: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return the ids, with segments, before and after a passage."""
        # a passage of one token shows the place of the passage
        pair = self._tokenizer(query, "a", return_token_type_ids=True, verbose=False)
        marks = list(zip(pair["input_ids"], pair["token_type_ids"], strict=True))
        of = pair.sequence_ids(0)
        shown = [i for i, which in enumerate(of) if which == 1]
        before, after = marks[: shown[0]], marks[shown[-1] + 1 :]
        room = self._limit - LEAST_PASSAGE if self._limit > 2 * LEAST_PASSAGE else self._limit // 2
        excess = len(before) + len(after) - room
        if excess > 0:
            last = max(i for i, which in enumerate(of) if which == 0)
            del before[max(0, last + 1 - excess) : last + 1]
        return before, after
