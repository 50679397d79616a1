"""Which passages of a corpus are shortened: drawn by a seed, whatever the order of the files."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from posology.corpus.files import expand, read
from posology.corpus.items import Record
from posology.errors import BadFile, BadRecord, InputError
from posology.index.store import Index
from posology.types import Passage

#: passages that are fetched from an index at once
_FETCHED = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """Which passages are wanted, and how many."""

    count: int
    seed: int
    #: words of the shortest and of the longest that are taken: to 30 % of a sentence nothing can be shortened, and
    #: the model that is fine-tuned takes 512 tokens
    least: int
    most: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawn:
    """What was drawn, and what there was to draw from."""

    #: in the order of their lots
    passages: tuple[Passage, ...]
    #: passages that there were, and how many of them were too short or too long
    seen: int
    unfit: int


def lot(seed: int, passage_id: str) -> bytes:
    """A passage's lot: by the smallest it is drawn. More passages for the same seed are the same and more."""
    return hashlib.sha256(f"{seed}\0{passage_id}".encode("utf-8", "surrogatepass")).digest()


def draw(passages: Iterable[Passage], wish: Wish) -> Drawn:
    """Draw in one pass. Of passages of one id the last counts; retracted ones are not drawn.

    Raises:
        InputError: not one fits.
    """
    seen = unfit = 0
    lots: dict[str, Passage] = {}

    def fitting() -> Iterator[Passage]:
        nonlocal seen, unfit
        for passage in passages:
            seen += 1
            if passage.retracted or not wish.least <= len(passage.text.split()) <= wish.most:
                unfit += 1
                continue
            yield passage

    for passage in fitting():
        lots[passage.id] = passage
        if len(lots) > 4 * wish.count:
            lots = {one.id: one for one in _smallest(lots.values(), wish)}
    if not lots:
        raise InputError(
            f"none of {seen:,} passages has {wish.least} to {wish.most} words: say others with --least-words and "
            "--most-words"
        )
    return Drawn(passages=tuple(_smallest(lots.values(), wish)), seen=seen, unfit=unfit)


def of_files(paths: Sequence[Path]) -> Iterator[Passage]:
    """The passages of corpus files; records that cannot be read are passed over, as ingest tells them.

    Raises:
        BadFile: a file cannot be read.
    """
    for path in expand(paths):
        if isinstance(path, BadFile):
            raise path
        for one in read(path):
            if isinstance(one, BadFile):
                raise one
            if isinstance(one, BadRecord):
                continue
            assert isinstance(one, Record)
            yield one.passage


def of_index(index: Index, wish: Wish) -> Iterator[Passage]:
    """The passages of an index in the order of their lots, fetched a few at a time."""
    ids = sorted(index.ids(), key=lambda one: lot(wish.seed, one))
    taken = 0
    for start in range(0, len(ids), _FETCHED):
        for found in index.fetch(ids[start : start + _FETCHED]):
            taken += wish.least <= len(found.passage.text.split()) <= wish.most
            yield found.passage
        if taken >= wish.count:
            return


def _smallest(passages: Iterable[Passage], wish: Wish) -> list[Passage]:
    return heapq.nsmallest(wish.count, passages, key=lambda one: lot(wish.seed, one.id))
