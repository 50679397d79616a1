"""Sample of the passages to shorten: drawn by a seed, independent of the order of the files."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from posology.corpus.files import read
from posology.corpus.folders import expand
from posology.corpus.items import Record
from posology.errors import BadFile, InputError
from posology.index.store import Index
from posology.types import Passage

#: passages fetched from an index together
_FETCHED = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """Number and length of the passages to draw."""

    count: int
    seed: int
    #: minimum words of a passage: a single sentence cannot be shortened to 30 %
    least: int
    #: maximum words of a passage: the fine-tuned model takes 512 tokens
    most: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawn:
    """A sample, and the number of passages it was drawn from."""

    #: ordered by lot
    passages: tuple[Passage, ...]
    #: number of passages, and of those that were retracted, too short or too long
    seen: int
    unfit: int


def lot(seed: int, passage_id: str) -> bytes:
    """Return the lot of a passage; the smallest lots are drawn, so that a larger sample contains a smaller one."""
    return hashlib.sha256(f"{seed}\0{passage_id}".encode("utf-8", "surrogatepass")).digest()


def draw(passages: Iterable[Passage], wish: Wish) -> Drawn:
    """Draw in one pass. The last passage of an id wins; retracted passages are skipped.

    Raises:
        InputError: no passage has the required length.
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
            f"none of {seen:,} passages has {wish.least} to {wish.most} words. Change --least-words or --most-words."
        )
    return Drawn(passages=tuple(_smallest(lots.values(), wish)), seen=seen, unfit=unfit)


def of_files(paths: Sequence[Path]) -> Iterator[Passage]:
    """Yield the passages of corpus files; invalid records are skipped (`posology ingest` reports them).

    Raises:
        BadFile: a file cannot be read.
    """
    for path in expand(paths):
        if isinstance(path, BadFile):
            raise path
        for one in read(path):
            if isinstance(one, BadFile):
                raise one
            if isinstance(one, Record):
                yield one.passage


def of_index(index: Index, wish: Wish) -> Iterator[Passage]:
    """Yield the passages of an index, ordered by lot."""
    ids = sorted(index.ids(), key=lambda one: lot(wish.seed, one))
    taken = 0
    for start in range(0, len(ids), _FETCHED):
        for found in index.fetch(ids[start : start + _FETCHED]):
            fits = wish.least <= len(found.passage.text.split()) <= wish.most
            taken += fits and not found.passage.retracted
            yield found.passage
        if taken >= wish.count:
            return


def _smallest(passages: Iterable[Passage], wish: Wish) -> list[Passage]:
    return heapq.nsmallest(wish.count, passages, key=lambda one: lot(wish.seed, one.id))
