"""Words: the smallest units that a compressor keeps or drops, and the bonds between them.

A filter of single words (TCRA-LLM's semantic compression, 4.2.2; Selective Context at the token level) would separate
a number from its unit and drop a "not", because such words have little information of their own. Here they form
bonds, which are kept or dropped whole. Some are protected: no fragment of a clause is shown without its negations, its
numbers with units and comparisons, and its drug names.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from posology.types import Sentence
from strategies.compression.reduction import extend_denials
from strategies.compression.wording.phrases import segment, telling

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Punctuation dropped at a fragment's end, before a mark of omission.
_DANGLING = ",;:"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Words:
    """The n words of a sentence: runs of characters without white space."""

    sentence: Sentence
    #: code-point offsets into the passage's text, shape ``(n,)`` each, int32
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    #: bond of each word, kept or dropped whole; from 0, ascending, shape ``(n,)``, int32
    bond: NDArray[np.int32]
    #: clause of each word, from 0, ascending, shape ``(n,)``, int32; no bond crosses clauses
    clause: NDArray[np.int32]
    #: whether its clause must not be shown without it; equal for all words of a bond; shape ``(n,)``
    protected: NDArray[np.bool_]

    @classmethod
    def of(cls, text: str, sentence: Sentence) -> Words:
        """Return the words of a sentence.

        Args:
            text: the passage's text.
            sentence: a sentence of :func:`posology.text.sentences.split`.
        """
        found = segment(text, (sentence,))
        starts = np.array(found.starts, np.int32)
        ends = np.array(found.ends, np.int32)
        n = len(starts)
        held, marked = telling(text, sentence, list(zip(found.starts, found.ends, strict=True)))
        turns = np.zeros(n, np.bool_)
        clauses = np.array(found.clauses, np.int32)
        turns[np.array(found.phrases, np.intp)] = np.diff(clauses, prepend=-1) > 0
        protected = np.array(marked, np.bool_)
        extend_denials(
            text,
            starts.astype(np.intp),
            ends.astype(np.intp),
            np.full(n, sentence.end),
            first=turns,
            protected=protected,
        )
        clause = np.cumsum(turns, dtype=np.int32) - np.int32(1)
        begins = np.ones(n, np.bool_)
        begins[1:] = ~np.array(held, np.bool_)[:-1] | (clause[1:] != clause[:-1])
        bond = np.cumsum(begins, dtype=np.int32) - np.int32(1)
        if n:
            protected = np.maximum.reduceat(protected, np.flatnonzero(begins))[bond]
        return cls(
            sentence=sentence,
            starts=starts,
            ends=ends,
            bond=bond,
            clause=clause,
            protected=protected,
        )

    @classmethod
    def bare(cls, text: str, sentence: Sentence) -> Words:
        """Return the words of a sentence without bonds or protection, for experiments only."""
        found = segment(text, (sentence,))
        n = len(found.starts)
        return cls(
            sentence=sentence,
            starts=np.array(found.starts, np.int32),
            ends=np.array(found.ends, np.int32),
            bond=np.arange(n, dtype=np.int32),
            clause=np.zeros(n, np.int32),
            protected=np.zeros(n, np.bool_),
        )

    def __len__(self) -> int:
        return len(self.starts)


def spans(text: str, words: Words, chosen: NDArray[np.bool_]) -> tuple[Sentence, ...]:
    """Return the kept words of a sentence as spans, in order, adjacent words joined.

    A span at the beginning or end of its sentence includes the punctuation there; other spans drop a comma, semicolon
    or colon at their end.

    Args:
        text: the passage's text.
        words: words of the sentence.
        chosen: whether each word is kept, shape ``(len(words),)``.
    """
    edge = np.flatnonzero(np.diff(chosen.astype(np.int8), prepend=0, append=0)).tolist()
    found = []
    whole, n = words.sentence, len(words)
    for first, after in zip(edge[::2], edge[1::2], strict=True):
        start = whole.start if first == 0 else int(words.starts[first])
        end = whole.end if after == n else int(words.ends[after - 1])
        if after < n:
            end = start + len(text[start:end].rstrip(_DANGLING))
        if end > start:
            found.append(Sentence(start=start, end=end))
    return tuple(found)


def choose(
    words: Sequence[Words], scores: Sequence[NDArray[np.float32]], share: float
) -> list[NDArray[np.bool_]]:
    """Choose the words with the highest scores, within a share of all sentences' words.

    A clause is opened with all of its protected words and the best of its other bonds, or not at all. Bonds are ranked
    by their mean scores.

    Args:
        words: words of each sentence.
        scores: score of each word of each sentence; higher scores stay.
        share: maximum share of all words that stays, 0 to 1.

    Returns:
        Which words of each sentence stay.

    Raises:
        ValueError: ``share`` is not 0 to 1.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must be 0 to 1 (got {share})")
    chosen = [np.zeros(len(one), np.bool_) for one in words]
    left = math.floor(share * sum(len(one) for one in words) + 1e-9)
    # opening of each clause, then its bonds: (minus mean score, order, sentence, words, following bonds)
    queue: list[tuple[float, int, int, NDArray[np.intp], list[NDArray[np.intp]]]] = []
    order = 0
    for at, (one, own) in enumerate(zip(words, scores, strict=True)):
        for opening, rest in _clauses(one, own):
            queue.append((-float(own[opening].mean()), order, at, opening, rest))
            order += 1
    heapq.heapify(queue)
    while queue and left:
        _, _, at, group, rest = heapq.heappop(queue)
        if len(group) > left:
            continue
        chosen[at][group] = True
        left -= len(group)
        for bond in rest:
            heapq.heappush(queue, (-float(scores[at][bond].mean()), order, at, bond, []))
            order += 1
    return chosen


def _clauses(
    words: Words, scores: NDArray[np.float32]
) -> list[tuple[NDArray[np.intp], list[NDArray[np.intp]]]]:
    """Return each clause's opening (its protected words and best other bond) and its remaining bonds."""
    clauses = []
    for clause in _groups(words.clause, np.arange(len(words))):
        needed = clause[words.protected[clause]]
        bonds = _groups(words.bond[clause], clause)
        others = [bond for bond in bonds if not words.protected[bond[0]]]
        opening = needed
        if others:
            # numbers alone are meaningless: the best bond comes with them
            best = max(others, key=lambda bond: float(scores[bond].mean()))
            others = [bond for bond in others if bond is not best]
            opening = np.sort(np.concatenate((needed, best)))
        clauses.append((opening, others))
    return clauses


def _groups(numbers: NDArray[np.int32], places: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Split places into runs of the same number."""
    if not len(places):
        return []
    return np.split(places, np.flatnonzero(np.diff(numbers)) + 1)
