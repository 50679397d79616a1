"""Learns an n-gram model from texts, in one pass and in bounded memory.

What bounds it, whatever the size of the corpus: :data:`MOST_WORDS` words are read, evenly enough for a
language model, since a corpus file is in no order of its words; :data:`MOST_FORMS` different forms are
numbered; a table of n-grams holds at most :data:`counting.MOST_KEYS` keys. At the
bounds it takes about 1 GB while it learns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from strategies.compression.self_information.counts import MOST_KEYS, Counts, add_up
from strategies.compression.self_information.forms import form
from strategies.compression.self_information.ngram import (
    BEGIN,
    BITS,
    UNKNOWN,
    Level,
    NgramModel,
    ngrams,
)
from strategies.compression.self_information.spelling import Spelling

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: words of the longest n-grams
ORDER = 3
#: an n-gram that came less often is left out
LEAST = 2
#: words after which nothing more is read: some 500,000 abstracts
MOST_WORDS = 100_000_000
#: different forms that are counted; those that come after them are unknown
MOST_FORMS = (1 << BITS) - 2

_MASK = (1 << BITS) - 1
#: words that are numbered together
_CHUNK = 500_000
#: words that are remembered with their punctuation
_REMEMBERED = 500_000
#: a discount where there are too few n-grams to compute one
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
    """Read texts and count.

    Args:
        texts: read to their end, or until ``most_words`` were read.
        order: words of the longest n-grams, 1 to 3.
        least: n-grams that came less often are left out.
        most_words: words that are read.
        most_keys: different n-grams of each order that are held.
    """
    if not 1 <= order <= 3:
        raise ValueError(f"n-grams of {order} words: 1 to 3 are known")
    tables = [Counts(most_keys) for _ in range(order - 1)]
    forms = _Forms()
    total = 0
    for words, firsts in _chunks(texts):
        numbers, ends = forms.number(words)
        # a sentence ends where a word ends with a full stop: abbreviations are too few to matter here
        begins = np.union1d(firsts, np.flatnonzero(ends[:-1]) + 1)
        for table, keys in zip(tables, ngrams(numbers, begins, order), strict=True):
            table.add(keys)
        total += len(words)
        if total >= most_words:
            break
    return _model(forms, [table.table() for table in tables], least=least, words=total)


class _Forms:
    """The numbers of forms, and how often each came."""

    def __init__(self) -> None:
        #: form → number
        self.numbers: dict[str, int] = {}
        self._counts: NDArray[np.int64] = np.zeros(MOST_FORMS + 2, dtype=np.int64)
        #: word → twice its number, and one more where it ends a sentence
        self._known: dict[str, int] = {}

    def number(self, words: list[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Number words and count them; and say which end a sentence."""
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
        """How often each number came, shape ``(len(numbers) + 2,)``."""
        return self._counts[: len(self.numbers) + 2]


def _chunks(texts: Iterable[str]) -> Iterator[tuple[list[str], list[int]]]:
    """Words of many texts together, and the first word of each text."""
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
    # sets are in another order in every process: by count and then by name, equal corpora give equal models
    counts = forms.counts
    names = ["", "", *forms.numbers]
    kept = sorted(
        (i for i in np.flatnonzero(counts >= 2).tolist() if i > BEGIN),
        key=lambda i: (-counts[i], names[i]),
    )
    rare = [names[i] for i in np.flatnonzero(counts == 1).tolist() if i > BEGIN]
    new = np.zeros(len(counts), dtype=np.int64)
    new[BEGIN] = BEGIN
    new[kept] = np.arange(2, len(kept) + 2)
    renumbered = [_renumber(keys, times, new) for keys, times in tables]
    unigrams = np.bincount(new, weights=counts, minlength=len(kept) + 2).astype(np.int64)
    if renumbered:
        unigrams = np.bincount(renumbered[0][0] & _MASK, minlength=len(kept) + 2)
    levels = []
    for n, (keys, times) in enumerate(renumbered, start=2):
        effective = times
        if n <= len(renumbered):
            effective = _contexts_of(keys, times, renumbered[n - 1][0], n)
        levels.append(_level(keys, effective, times >= least))
    return NgramModel(
        [*names[:2], *(names[i] for i in kept)],
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
    """In how many contexts each n-gram was seen; one that begins a sentence has but one, and is counted."""
    suffixes, contexts = np.unique(longer & ((1 << (BITS * n)) - 1), return_counts=True)
    places = np.minimum(np.searchsorted(suffixes, keys), max(len(suffixes) - 1, 0))
    found = suffixes[places] == keys if len(suffixes) else np.zeros(len(keys), dtype=np.bool_)
    begins = keys >> (BITS * (n - 1)) == BEGIN
    return np.where(begins, times, np.where(found, contexts[places] if len(suffixes) else 1, 1))


def _level(keys: NDArray[np.int64], counts: NDArray[np.int64], kept: NDArray[np.bool_]) -> Level:
    """Discount, and leave to the shorter context what is taken off or left out."""
    of = keys >> BITS
    firsts = np.flatnonzero(np.diff(of, prepend=-1))
    if not len(keys):
        empty = np.empty(0, dtype=np.int64)
        none = np.empty(0, dtype=np.float32)
        return Level(keys=empty, shares=none, contexts=empty, rests=none)
    totals = np.add.reduceat(counts, firsts)
    sizes = np.diff(firsts, append=len(keys))
    shares = np.where(kept, (counts - _discounts(counts)) / np.repeat(totals, sizes), 0.0)
    taken = np.add.reduceat(shares, firsts)
    some = taken > 0
    return Level(
        keys=keys[kept],
        shares=shares[kept].astype(np.float32),
        contexts=of[firsts][some],
        rests=(1 - taken[some]).astype(np.float32),
    )


def _unigrams(counts: NDArray[np.int64]) -> NDArray[np.float32]:
    """Of every number; what the discounts take is spread over all, so that none is without."""
    total = max(int(counts.sum()), 1)
    shares = (counts - _discounts(counts)) / total
    shares[BEGIN] = 0
    shares += (1 - shares.sum()) / (len(counts) - 1)
    # it is never predicted
    shares[BEGIN] = 0
    return np.asarray(shares, dtype=np.float32)


def _discounts(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """What is taken off counts of 0, 1, 2, and 3 or more (Chen and Goodman 1999, equation 26)."""
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
