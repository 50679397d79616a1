"""A question with a passage as a model reads them: windows of tokens, and the sentence that each is of."""

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

#: Fewest tokens that are left for the passage in a window: only a question that takes more than all the rest
#: is cut. No question of the data sets in the paper does.
LEAST_PASSAGE = 32
#: what the number of a token of the heading is
HEADING = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """What a model reads at once: the question, and consecutive tokens of the passage."""

    #: with special tokens
    ids: tuple[int, ...]
    #: segment of each
    segments: tuple[int, ...]
    #: place of its first token of the passage
    first: int
    #: how many of the passage's tokens, from that one on, are judged in this window; those behind are context,
    #: with which the next begins
    owned: int


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Text:
    """A passage of n tokens, with its heading."""

    #: vocabulary ids, shape ``(n,)``
    ids: tuple[int, ...]
    #: sentence of each token, :data:`HEADING` for those of the heading, growing, shape ``(n,)``, int32
    sentence: NDArray[np.int32]


class Reading:
    """Makes windows of pairs. Special tokens stand as the tokenizer sets them around a pair.

    Args:
        tokenizer: a fast one.
        limit: tokens of one window at most, special ones included.
        segments: whether the model knows segments.
        pad: id of what inputs are filled up with.
    """

    def __init__(self, tokenizer: Any, *, limit: int, segments: bool, pad: int) -> None:
        self._tokenizer = tokenizer
        self._limit = limit
        self._segments = segments
        self._pad = pad

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Reading:
        """For one model."""
        return cls(
            checkpoint.tokenizer,
            limit=checkpoint.limit,
            segments=checkpoint.segments,
            pad=checkpoint.pad,
        )

    @property
    def limit(self) -> int:
        """Tokens of one window at most, special ones included."""
        return self._limit

    def text(self, heading: str, text: str, sentences: Sequence[Sentence]) -> Text:
        """The tokens of a passage.

        Args:
            heading: stands before the text; with its full stop and blank, or empty.
            text: of the passage.
            sentences: of the text.
        """
        read = self._tokenizer(
            heading + text, add_special_tokens=False, return_offsets_mapping=True, verbose=False
        )
        offsets = np.array(read["offset_mapping"], dtype=np.int64).reshape(-1, 2)
        # a token may begin with the blank before it, so its last character tells where it stands
        at = np.maximum(offsets[:, 1] - 1, offsets[:, 0]) - len(heading)
        ends = np.array([s.end for s in sentences], dtype=np.int64)
        found = np.searchsorted(ends, at, side="right")
        if len(sentences):
            found = np.minimum(found, len(sentences) - 1)
            found[at < 0] = HEADING
        else:
            found[:] = HEADING
        # some tokenizers put a blank of its own in front
        sentence = np.maximum.accumulate(found) if len(found) else found
        return Text(ids=tuple(read["input_ids"]), sentence=sentence.astype(np.int32))

    def windows(self, query: str, text: Text) -> list[Window]:
        """Windows that hold the whole passage; of a long one, each begins with a sentence where it can.

        The passage is cut, not the question, unless it leaves less than :data:`LEAST_PASSAGE` tokens.
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
        """The inputs of a model, filled up to one width.

        Args:
            windows: at least one.
            width: tokens each; ``None``: as many as the longest has.
            device: where they are put.
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
        """What stands before a passage and after it: ids with their segments."""
        # any passage of one token shows where a passage stands
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
