"""Windows over tokenised texts that fit a model, and batches of windows.

Pure arithmetic on token positions, independent of a model.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Window:
    """Consecutive tokens of one text that are encoded together.

    A window owns its tokens from the first up to ``owned``; the rest is context, because the next
    window begins with them. Every token is owned by exactly one window.
    """

    #: index of the text
    text: int
    #: first token
    start: int
    #: one past the last token
    end: int
    #: one past the last token whose vector counts
    owned: int


def cut(text: int, length: int, *, sentence_starts: Sequence[int], capacity: int) -> list[Window]:
    """Return windows over a text of ``length`` tokens.

    The first window holds the first ``capacity`` tokens, as the model itself would cut the text.
    Every other begins with the sentence that the one before it could not hold whole; a sentence
    longer than a window is cut.

    Args:
        text: index of the text.
        length: its tokens.
        sentence_starts: the token that each sentence begins with, ascending.
        capacity: tokens a window, special ones left out; at least 1.

    Returns:
        At least one window, even of no tokens.
    """
    windows: list[Window] = []
    start = 0
    while True:
        end = min(start + capacity, length)
        following = end
        if end < length:
            # The last sentence that begins in this window, or where the next one begins.
            begun = sentence_starts[max(bisect_right(sentence_starts, end) - 1, 0) :][:1]
            following = begun[0] if begun and start < begun[0] <= end else end
        windows.append(Window(text=text, start=start, end=end, owned=following))
        if following >= length:
            return windows
        start = following


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """Items that are encoded in one pass, and the shape that they are padded to."""

    #: indices of the items, longest first
    items: tuple[int, ...]
    #: padded number of items
    rows: int
    #: padded tokens an item
    width: int


def batches(
    lengths: Sequence[int], *, budget: int, limit: int, few_shapes: bool = True
) -> Iterator[Batch]:
    """Yield batches of items of like length, in one of few shapes unless any will do.

    torch's CPU kernels are made for each new shape and kept, buffers and all: over a long run, free shapes
    cost memory without end. Here the shape of a full batch follows from its width, widths come in
    steps, and a batch that is not full is padded to a power of two.

    Args:
        lengths: tokens of each item, special ones included, at most ``limit``.
        budget: tokens a batch after padding; an item longer than that has a batch of its own.
        limit: the widest item that the model can take.
        few_shapes: whether shapes are few; otherwise a batch is as wide as its widest item, and has no row
            that is padding.
    """
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    done = 0
    while done < len(order):
        longest = lengths[order[done]]
        width = min(_step_up(longest), limit) if few_shapes else longest
        full = max(budget // width, 1)
        items = tuple(order[done : done + full])
        rows = min(1 << (len(items) - 1).bit_length(), full) if few_shapes else len(items)
        yield Batch(items=items, rows=rows, width=width)
        done += len(items)


def _step_up(length: int) -> int:
    """Return the next width at or above: a multiple of 8 up to 64, of 16 up to 128, then of 32."""
    step = 8 if length <= 64 else 16 if length <= 128 else 32
    return max(-(-length // step) * step, step)
