"""How the sentences between the kept ones are reduced: by what each of their phrases tells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from posology.text._edges import DOUBTS, NEGATIONS
from posology.types import Retrieved, Sentence

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: What a mark of omission weighs where runs of phrases are compared, in words. It is three tokens, about
#: two words, and what it parts is harder to read: at 4 a third fewer are needed than at 1.
MARK = 4
#: Words between two fragments of a clause that are shown rather than a mark in their place.
GAP = 2
#: A fragment is at most this many phrases in a row, before it grows to its neighbours.
MAX_RUN = 8

#: what takes back the rest of its sentence, in lower case; "not only" does not
_DENIALS = re.compile(
    rf"\b(?:not(?!\s+only\b)|{'|'.join(sorted((NEGATIONS | DOUBTS) - {'not'}))})\b|n['’]t\b"
)
#: here ends what a denial before it takes back
_CONTRASTS = re.compile(r"[;—]|:\s|\b(?:but|whereas)\b", re.IGNORECASE)


class Reducer(Protocol):
    """Chooses what stays of the sentences of a passage that are not kept whole. Blocking."""

    @property
    def name(self) -> str:
        """Which it is, for the record."""
        ...

    def __call__(
        self, passages: Sequence[Retrieved], kept: NDArray[np.bool_], share: float
    ) -> list[tuple[Sentence, ...]]:
        """Choose spans of the sentences that are not kept.

        Args:
            passages: with what was computed of them at ingest.
            kept: of each sentence of all passages, in order, whether it is kept whole. Those of a passage
                between two kept ones, or before the first or after the last, are a stretch.
            share: of each stretch's words, how many may stay, 0 to 1.

        Returns:
            Of each passage, spans in order, none of them across sentences or of a kept one.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Nothing:
    """Drops the stretches: only the kept sentences stay ("only top-k", tables 3 and 5 of the paper)."""

    name: str = "nothing"

    def __call__(
        self,
        passages: Sequence[Retrieved],
        kept: NDArray[np.bool_],  # noqa: ARG002 - as its protocol says
        share: float,  # noqa: ARG002
    ) -> list[tuple[Sentence, ...]]:
        """No span."""
        return [() for _ in passages]


@dataclass(frozen=True, kw_only=True, slots=True)
class SelfInformation:
    """Keeps the phrases that tell the most, as Selective Context does (Li 2023), but without breaking them off what decides their meaning.

    Phrases stay with all that their clause may not be shown without: its negations, numbers and doses,
    which count against the share. What stands in the reach of a negation is of the negation's clause,
    up to the end of the sentence or to a contrast ("but", a semicolon). Of each clause at most one run of
    phrases is chosen, by bits per word of what it costs, the marks of omission included: runs are preferred
    over scattered phrases. Of the share, too, each mark takes a word. What then is left goes to the phrases
    beside the runs.

    Of a passage without :class:`~posology.types.Phrases` nothing stays, as with :class:`Nothing`: the index
    was built without an annotator.
    """

    name: str = "self_information"

    def __call__(
        self, passages: Sequence[Retrieved], kept: NDArray[np.bool_], share: float
    ) -> list[tuple[Sentence, ...]]:
        """Choose spans, see :class:`Reducer`."""
        found: list[list[Sentence]] = [[] for _ in passages]
        layout = Layout.of(passages, kept)
        if layout is not None:
            for place, span in spans_of(_choose(layout, share), layout, passages):
                found[place].append(span)
        return [tuple(spans) for spans in found]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Layout:
    """The n phrases of m sentences, as if all passages were one text, each on lines of its own."""

    #: the passage of each sentence, and its number there, shape ``(m,)``
    passage: NDArray[np.intp]
    number: NDArray[np.intp]
    #: the sentence of each phrase, shape ``(n,)``
    sentence: NDArray[np.intp]
    #: where each phrase begins and ends in its own passage, shape ``(n,)``
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    #: the stretch of each, from 0; -1 where its sentence is kept; shape ``(n,)``
    stretch: NDArray[np.intp]
    #: the clause of each, from 0, without gaps, shape ``(n,)``
    clause: NDArray[np.intp]
    #: what its clause may not be shown without, shape ``(n,)``
    protected: NDArray[np.bool_]
    #: words of each, shape ``(n,)``
    words: NDArray[np.float64]
    #: bits of each, shape ``(n,)``
    bits: NDArray[np.float64]

    @classmethod
    def of(cls, passages: Sequence[Retrieved], kept: NDArray[np.bool_]) -> Layout | None:
        """Of passages; ``None`` where there is no phrase to choose."""
        known = [(i, p.phrases) for i, p in enumerate(passages) if p.phrases is not None]
        counts = np.zeros(len(passages), np.intp)
        for i, phrases in known:
            counts[i] = len(phrases.starts)
        if not counts.any() or kept.all():
            return None
        lengths = [len(p.passage.text) + 1 for p in passages]
        offsets = np.cumsum([0, *lengths])[:-1]
        sizes = [len(p.sentences) for p in passages]
        passage = np.repeat(np.arange(len(passages)), sizes)
        number = np.concatenate([np.arange(size) for size in sizes])
        begins = np.array([s.start for p in passages for s in p.sentences]) + offsets[passage]
        finishes = np.array([s.end for p in passages for s in p.sentences]) + offsets[passage]

        starts = np.concatenate([phrases.starts for _, phrases in known])
        shift = np.repeat(offsets, counts)
        sentence = np.searchsorted(begins, starts + shift, side="right") - 1
        clauses = np.concatenate([phrases.clauses for _, phrases in known])
        first = np.ones(len(starts), np.bool_)
        # clauses of all passages are numbered alike; none crosses a sentence
        first[1:] = (clauses[1:] != clauses[:-1]) | (sentence[1:] != sentence[:-1])
        protected = np.concatenate([phrases.protected for _, phrases in known])
        ends = np.concatenate([phrases.ends for _, phrases in known])
        extend_denials(
            "\n".join([p.passage.text for p in passages]),
            starts + shift,
            ends + shift,
            finishes[sentence],
            first=first,
            protected=protected,
        )
        words = np.concatenate([phrases.words for _, phrases in known]).astype(np.float64)
        bits = words * np.concatenate([phrases.information for _, phrases in known])
        return cls(
            passage=passage,
            number=number,
            sentence=sentence,
            starts=starts,
            ends=ends,
            stretch=_stretches(kept, passage)[sentence],
            clause=np.cumsum(first) - 1,
            protected=protected,
            words=words,
            bits=bits,
        )


def _stretches(kept: NDArray[np.bool_], passage: NDArray[np.intp]) -> NDArray[np.intp]:
    """The stretch of each sentence, -1 where it is kept."""
    first = ~kept
    first[1:] &= kept[:-1] | (passage[1:] != passage[:-1])
    return np.where(kept, -1, np.cumsum(first) - 1)


def extend_denials(
    text: str,
    starts: NDArray[np.intp],
    ends: NDArray[np.intp],
    finishes: NDArray[np.intp],
    *,
    first: NDArray[np.bool_],
    protected: NDArray[np.bool_],
) -> None:
    """Make what a denial reaches one clause with it, in place.

    Commas end clauses, but not a negation's reach: of "no difference in mortality, or cost" the cost
    may not be shown alone.

    Args:
        text: of all passages.
        starts: of each phrase, in the text.
        ends: the same.
        finishes: where each phrase's sentence ends.
        first: whether each is the first of its clause.
        protected: what a clause may not be shown without.
    """
    denials = [match.span() for match in _DENIALS.finditer(_lower(text))]
    places = np.searchsorted(starts, [start for start, _ in denials], side="right") - 1
    for (start, end), at in zip(denials, places.tolist(), strict=True):
        if at < 0 or start >= ends[at]:
            continue
        protected[at] = True
        finish = int(finishes[at])
        contrast = _CONTRASTS.search(text, end, finish)
        reach = contrast.start() if contrast else finish
        first[at + 1 : int(np.searchsorted(starts, reach, side="left"))] = False


def _lower(text: str) -> str:
    """The text in lower case, of the same length; searched several times as fast as without regard to case."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def _choose(layout: Layout, share: float) -> NDArray[np.bool_]:
    """Which phrases stay: of each clause at most one run, and all of it that is protected."""
    inside = layout.stretch >= 0
    total = np.bincount(layout.stretch[inside], weights=layout.words[inside])
    if share == 1 or not len(total):
        return inside
    budget = np.floor(total * share + 1e-9)
    runs = _Runs.of(layout, budget)
    left: list[float] = budget.tolist()
    kept = np.zeros(len(layout.words), np.bool_)
    taken = np.zeros(layout.clause[-1] + 1, np.bool_)
    #: of each clause its run
    seen: dict[int, tuple[int, int]] = {}
    for first, last, clause, stretch, cost in zip(
        runs.first.tolist(),
        runs.last.tolist(),
        layout.clause[runs.first].tolist(),
        layout.stretch[runs.first].tolist(),
        runs.cost.tolist(),
        strict=True,
    ):
        if cost <= left[stretch] and clause not in seen:
            seen[clause] = first, last
            left[stretch] -= cost
            taken[clause] = True
            kept[first : last + 1] = True
    if seen:
        kept |= layout.protected & taken[layout.clause]
        _bridge(kept, layout, left)
        for first, last in seen.values():
            _grow(kept, layout, left, range(last + 1, len(kept)))
            _grow(kept, layout, left, range(first - 1, -1, -1))
    return kept


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Runs:
    """All m runs of phrases of one clause that could be shown, the most bits per word of cost first."""

    #: of each its first and its last phrase, shape ``(m,)``
    first: NDArray[np.intp]
    last: NDArray[np.intp]
    #: words that each shows, the rest of its clause that is protected included, and a word a mark of
    #: omission, shape ``(m,)``
    cost: NDArray[np.float64]

    @classmethod
    def of(cls, layout: Layout, budget: NDArray[np.float64]) -> _Runs:
        """Of a passage, where each stretch may show so many words."""
        clause, protected = layout.clause, layout.protected
        head = protected.copy()
        head[1:] &= ~(protected[:-1] & (clause[1:] == clause[:-1]))
        n = len(clause)
        sums = np.zeros((n + 1, 5))
        own = sums[1:]
        own[:, 0], own[:, 1] = layout.words, layout.bits
        # of what is protected: words, bits, and how many groups it forms
        own[:, 2], own[:, 3], own[:, 4] = layout.words, layout.bits, head
        own[:, 2:4] *= protected[:, None]
        np.cumsum(own, axis=0, out=own)
        borders = np.searchsorted(clause, np.arange(clause[-1] + 2))

        inside = np.flatnonzero(layout.stretch >= 0)
        first = np.repeat(inside, MAX_RUN)
        last = (inside[:, None] + np.arange(MAX_RUN)).ravel()
        valid = last < borders[clause[first] + 1]
        first, last = first[valid], last[valid]

        of_run = sums[last + 1] - sums[first]
        mine = clause[first]
        outside = (sums[borders[1:], 2:] - sums[borders[:-1], 2:])[mine] - of_run[:, 2:]
        words, marks = of_run[:, 0] + outside[:, 0], 1 + outside[:, 2]
        worth = (of_run[:, 1] + outside[:, 1]) / (words + MARK * marks)
        cost = words + marks
        fits = np.flatnonzero(cost <= budget[layout.stretch[first]])
        best = fits[np.argsort(-worth[fits], kind="stable")]
        return cls(first=first[best], last=last[best], cost=cost[best])


def _bridge(kept: NDArray[np.bool_], layout: Layout, left: list[float]) -> None:
    """Show what parts two fragments of a clause where a mark in its place would cost as much."""
    shown = np.flatnonzero(kept)
    for a, b in zip(shown[:-1].tolist(), shown[1:].tolist(), strict=True):
        if b - a < 2 or layout.clause[a] != layout.clause[b]:
            continue
        words = float(layout.words[a + 1 : b].sum())
        stretch = int(layout.stretch[a])
        if words <= min(GAP, left[stretch]):
            kept[a + 1 : b] = True
            left[stretch] -= words


def _grow(kept: NDArray[np.bool_], layout: Layout, left: list[float], beside: range) -> None:
    """Spend what is left on the phrases beside a run, in its clause: they need no mark of their own."""
    clause = layout.clause[beside.start - beside.step]
    for i in beside:
        if layout.clause[i] != clause:
            return
        if kept[i]:
            continue
        stretch = layout.stretch[i]
        if layout.words[i] > left[stretch]:
            return
        kept[i] = True
        left[stretch] -= layout.words[i]


def spans_of(
    kept: NDArray[np.bool_], layout: Layout, passages: Sequence[Retrieved]
) -> Iterator[tuple[int, Sentence]]:
    """The kept phrases as spans, those in a row as one, each with the number of its passage.

    A span that begins or ends with its sentence takes in the punctuation there: it is nothing that a
    mark of omission should stand for.
    """
    shown = np.flatnonzero(kept)
    if not len(shown):
        return
    of = layout.sentence
    parts = (np.diff(shown) > 1) | (np.diff(of[shown]) > 0)
    firsts = shown[np.concatenate(([True], parts))]
    lasts = shown[np.concatenate((parts, [True]))]
    edge = np.concatenate(([True], of[1:] != of[:-1], [True]))
    for sentence, start, end, begins, finishes in zip(
        of[firsts].tolist(),
        layout.starts[firsts].tolist(),
        layout.ends[lasts].tolist(),
        edge[firsts].tolist(),
        edge[lasts + 1].tolist(),
        strict=True,
    ):
        place = int(layout.passage[sentence])
        whole = passages[place].sentences[layout.number[sentence]]
        yield (
            place,
            Sentence(start=whole.start if begins else start, end=whole.end if finishes else end),
        )
