"""The pages that a passage's text stands on."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, kw_only=True, slots=True)
class Pages:
    """Where pages begin in a text.

    Stretch ``i`` of the text begins at ``starts[i]``, ends where the next begins, and stands on page ``numbers[i]``.
    """

    #: pages, counted from 1 as viewers do, with a minus where OCR read them; not always ascending, since a footnote may come behind the text of the next page
    numbers: tuple[int, ...]
    #: code points, ascending, the first 0; as many as pages
    starts: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.numbers or len(self.numbers) != len(self.starts) or self.starts[0] != 0:
            raise ValueError("numbers and starts must be as many, 1 or more, from 0 on")

    @classmethod
    def of(cls, stretches: Iterable[tuple[int, int]]) -> Self | None:
        """Return the pages of a text; ``None``: no stretch is given.

        Args:
            stretches: a page and where it begins, in order. Of several that begin at one place, the last counts.
        """
        numbers: list[int] = []
        starts: list[int] = []
        for number, start in stretches:
            if starts and starts[-1] == start:
                del numbers[-1], starts[-1]
            if not numbers or numbers[-1] != number:
                numbers.append(number)
                starts.append(start)
        return cls(numbers=tuple(numbers), starts=tuple(starts)) if numbers else None

    @classmethod
    def read(cls, flat: Sequence[int] | None) -> Self | None:
        """Return what :attr:`flat` gave."""
        if not flat:
            return None
        return cls(numbers=tuple(flat[::2]), starts=tuple(flat[1::2]))

    @property
    def flat(self) -> list[int]:
        """Return pages and starts in turn, as they are stored."""
        return [value for pair in zip(self.numbers, self.starts, strict=True) for value in pair]

    def cut(self, start: int, end: int) -> Self:
        """Return the pages of a part of the text.

        Args:
            start: first code point of the part.
            end: one past its last code point.
        """
        first = bisect_right(self.starts, start) - 1
        kept = [(self.numbers[first], 0)]
        for number, place in zip(self.numbers[first + 1 :], self.starts[first + 1 :], strict=True):
            if place < end:
                kept.append((number, place - start))
        found = self.of(kept)
        assert found is not None
        return found

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the first and the last page of a part of the text; see :meth:`cut`."""
        numbers = [*map(abs, self.cut(start, end).numbers)]
        return min(numbers), max(numbers)

    def scanned(self, start: int, end: int) -> bool:
        """Return whether OCR read any of a part of the text; see :meth:`cut`."""
        return min(self.cut(start, end).numbers) < 0
