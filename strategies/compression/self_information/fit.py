"""Training of the n-gram model, in one pass and in bounded memory.

Bounds, regardless of the corpus's size: :data:`MOST_WORDS` words are read (a corpus file is in no order of its words,
so its beginning is representative); :data:`MOST_FORMS` distinct forms are numbered; a table of n-grams holds at most
:data:`~strategies.compression.self_information.counts.MOST_KEYS` keys. At the bounds, training takes about 1 GB.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from strategies.compression.self_information.counts import MOST_KEYS, Counts, add_up
from strategies.compression.self_information.ngram import (
    BEGIN,
    BITS,
    UNKNOWN,
    Level,
    NgramModel,
    form,
    ngrams,
)
from strategies.compression.self_information.spelling import Spelling

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Default words of the longest n-grams.
ORDER = 3
#: Default minimum count of an n-gram.
LEAST = 2
#: Maximum words that are read: some 500,000 abstracts.
MOST_WORDS = 100_000_000
#: Maximum distinct forms that are counted; later ones are unknown.
MOST_FORMS = (1 << BITS) - 2

_MASK = (1 << BITS) - 1
#: Words numbered together.
_CHUNK = 500_000
#: Words cached with their punctuation.
_REMEMBERED = 500_000
#: Discount if there are too few n-grams to compute one.
_DISCOUNT = 0.75
_STOPS = (".", "!", "?", ".)", '."')


def learn(
    texts: Iterable[str],
    *,
    order: int = ORDER,
    least: int = LEAST,
    most_words: int = MOST_WORDS,
    most_keys: int = MOST_KEYS,
) -> NgramModel:
    """Count the n-grams of texts and return the model.

    Args:
        texts: texts, read to the end or until ``most_words`` words.
        order: words of the longest n-grams, 1 to 3.
        least: minimum count of an n-gram.
        most_words: maximum words that are read.
        most_keys: maximum distinct n-grams of each order.

    Raises:
        ValueError: ``order`` is not 1 to 3.
    """
    if not 1 <= order <= 3:
        raise ValueError(f"order must be 1 to 3 (got n-grams of {order} words)")
    tables = [Counts(most_keys) for _ in range(order - 1)]
    forms = _Forms()
    total = 0
    for words, firsts in _chunks(texts):
        numbers, ends = forms.number(words)
        # a word with a full stop ends a sentence: abbreviations are too few to matter
        begins = np.union1d(firsts, np.flatnonzero(ends[:-1]) + 1)
        for table, keys in zip(tables, ngrams(numbers, begins, order), strict=True):
            table.add(keys)
        total += len(words)
        if total >= most_words:
            break
    return _model(forms, [table.table() for table in tables], least=least, words=total)


class _Forms:
    """Numbers of forms, and their counts."""

    def __init__(self) -> None:
        #: form → number
        self.numbers: dict[str, int] = {}
        self._counts: NDArray[np.int64] = np.zeros(MOST_FORMS + 2, dtype=np.int64)
        #: word → twice its number, plus one if it ends a sentence
        self._known: dict[str, int] = {}

    def number(self, words: list[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Number and count words; return the numbers, and which words end a sentence."""
        if len(self._known) > _REMEMBERED:
            self._known.clear()
        for word in dict.fromkeys(words).keys() - self._known.keys():
            shape, _ = form(word)
            number = self.numbers.get(shape)
            if number is None:
                number = UNKNOWN
                if len(self.numbers) < MOST_FORMS:
                    number = self.numbers[shape] = len(self.numbers) + 2
            self._known[word] = 2 * number + word.endswith(_STOPS)
        found = np.fromiter(map(self._known.__getitem__, words), dtype=np.int64, count=len(words))
        numbers = found >> 1
        self._counts += np.bincount(numbers, minlength=len(self._counts))
        return numbers, found & 1

    @property
    def counts(self) -> NDArray[np.int64]:
        """Return the count of each number, shape ``(len(numbers) + 2,)``."""
        return self._counts[: len(self.numbers) + 2]


def _chunks(texts: Iterable[str]) -> Iterator[tuple[list[str], list[int]]]:
    """Yield the words of many texts together, and the first word of each text."""
    words: list[str] = []
    firsts: list[int] = []
    for text in texts:
        found = text.split()
        if found:
            firsts.append(len(words))
            words.extend(found)
        if len(words) >= _CHUNK:
            yield words, firsts
            words, firsts = [], []
    if words:
        yield words, firsts


def _model(
    forms: _Forms,
    tables: list[tuple[NDArray[np.int64], NDArray[np.int64]]],
    *,
    least: int,
    words: int,
) -> NgramModel:
    # sorted by count and name, because set order differs between processes: equal corpora give equal models
    counts = forms.counts
    names = ["", "", *forms.numbers]
    frequent = sorted(
        (i for i in np.flatnonzero(counts >= 2).tolist() if i > BEGIN),
        key=lambda i: (-counts[i], names[i]),
    )
    rare = [names[i] for i in np.flatnonzero(counts == 1).tolist() if i > BEGIN]
    new = np.zeros(len(counts), dtype=np.int64)
    new[BEGIN] = BEGIN
    new[frequent] = np.arange(2, len(frequent) + 2)
    renumbered = [_renumber(keys, times, new) for keys, times in tables]
    unigrams = np.bincount(new, weights=counts, minlength=len(frequent) + 2).astype(np.int64)
    if renumbered:
        unigrams = np.bincount(renumbered[0][0] & _MASK, minlength=len(frequent) + 2)
    levels = []
    for n, (keys, times) in enumerate(renumbered, start=2):
        effective = times
        if n <= len(renumbered):
            effective = _contexts_of(keys, times, renumbered[n - 1][0], n)
        levels.append(_level(keys, effective, times >= least))
    return NgramModel(
        [*names[:2], *(names[i] for i in frequent)],
        _unigrams(unigrams),
        levels,
        Spelling.learn(sorted(rare)),
        words=words,
    )


def _renumber(
    keys: NDArray[np.int64], times: NDArray[np.int64], new: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    changed = np.zeros_like(keys)
    for shift in (0, BITS, 2 * BITS):
        changed |= new[(keys >> shift) & _MASK] << shift
    return add_up(changed, times)


def _contexts_of(
    keys: NDArray[np.int64], times: NDArray[np.int64], longer: NDArray[np.int64], n: int
) -> NDArray[np.int64]:
    """Return the number of contexts of each n-gram; one that begins a sentence keeps its count."""
    suffixes, contexts = np.unique(longer & ((1 << (BITS * n)) - 1), return_counts=True)
    places = np.minimum(np.searchsorted(suffixes, keys), max(len(suffixes) - 1, 0))
    found = suffixes[places] == keys if len(suffixes) else np.zeros(len(keys), dtype=np.bool_)
    begins = keys >> (BITS * (n - 1)) == BEGIN
    return np.where(begins, times, np.where(found, contexts[places] if len(suffixes) else 1, 1))


def _level(
    keys: NDArray[np.int64], counts: NDArray[np.int64], frequent: NDArray[np.bool_]
) -> Level:
    """Discount counts, and give the discounted and omitted mass to the shorter context."""
    of = keys >> BITS
    firsts = np.flatnonzero(np.diff(of, prepend=-1))
    if not len(keys):
        empty = np.empty(0, dtype=np.int64)
        none = np.empty(0, dtype=np.float32)
        return Level(keys=empty, shares=none, contexts=empty, rests=none)
    totals = np.add.reduceat(counts, firsts)
    sizes = np.diff(firsts, append=len(keys))
    shares = np.where(frequent, (counts - _discounts(counts)) / np.repeat(totals, sizes), 0.0)
    taken = np.add.reduceat(shares, firsts)
    some = taken > 0
    return Level(
        keys=keys[frequent],
        shares=shares[frequent].astype(np.float32),
        contexts=of[firsts][some],
        rests=(1 - taken[some]).astype(np.float32),
    )


def _unigrams(counts: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the probability of every number; the discounted mass is spread evenly, so that none is 0."""
    total = max(int(counts.sum()), 1)
    shares = (counts - _discounts(counts)) / total
    shares[BEGIN] = 0
    shares += (1 - shares.sum()) / (len(counts) - 1)
    # the beginning of a sentence is never predicted
    shares[BEGIN] = 0
    return np.asarray(shares, dtype=np.float32)


def _discounts(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the discounts of counts of 0, 1, 2, and 3 or more (Chen and Goodman 1999, equation 26)."""
    of = np.bincount(np.minimum(counts, 5), minlength=6)
    n1, n2, n3, n4 = (int(n) for n in of[1:5])
    by = [0.0, _DISCOUNT, _DISCOUNT, _DISCOUNT]
    if min(n1, n2, n3, n4) > 0:
        y = n1 / (n1 + 2 * n2)
        found = [
            c - (c + 1) * y * after / at for c, at, after in ((1, n1, n2), (2, n2, n3), (3, n3, n4))
        ]
        by[1:] = [min(max(d, 0.1), c - 0.1) for c, d in enumerate(found, start=1)]
    return np.array(by)[np.minimum(counts, 3)]
