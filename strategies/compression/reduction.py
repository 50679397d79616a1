"""Reducers: choose what stays of the sentences that are not kept whole, by self-information of phrases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from posology.text.quoting.edges import DOUBTS, NEGATIONS
from posology.types import Retrieved, Sentence

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Cost of a mark of omission when runs of phrases are compared, in words. It is three tokens, about two words,
#: and fragments are harder to read: at 4 a third fewer marks are needed than at 1.
MARK = 4
#: Maximum words between two fragments of a clause that are shown instead of a mark.
GAP = 2
#: Maximum phrases of a fragment before it grows to its neighbours.
MAX_RUN = 8

#: Negations and doubts, which reach to the end of their sentence, in lower case; "not only" is none.
_DENIALS = re.compile(
    rf"\b(?:not(?!\s+only\b)|{'|'.join(sorted((NEGATIONS | DOUBTS) - {'not'}))})\b|n['’]t\b"
)
#: Contrasts that end the reach of a negation.
_CONTRASTS = re.compile(r"[;—]|:\s|\b(?:but|whereas)\b", re.IGNORECASE)


class Reducer(Protocol):
    """Chooses spans of the sentences that are not kept whole. Blocking."""

    @property
    def name(self) -> str:
        """Return its name for records."""
        ...

    def __call__(
        self, passages: Sequence[Retrieved], kept: NDArray[np.bool_], share: float
    ) -> list[tuple[Sentence, ...]]:
        """Choose spans of the sentences that are not kept.

        Args:
            passages: passages with their annotations from ingest.
            kept: whether each sentence of all passages, in order, is kept whole. The other sentences of a passage
                in a row form a stretch.
            share: maximum share of each stretch's words that stays, 0 to 1.

        Returns:
            Spans of each passage, in order, none across sentences or in a whole one.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Nothing:
    """Reducer that drops the stretches: only whole sentences stay ("only top-k", tables 3 and 5 of the paper)."""

    name: str = "nothing"

    def __call__(
        self,
        passages: Sequence[Retrieved],
        kept: NDArray[np.bool_],  # noqa: ARG002 - as its protocol says
        share: float,  # noqa: ARG002
    ) -> list[tuple[Sentence, ...]]:
        """Return no spans."""
        return [() for _ in passages]


@dataclass(frozen=True, kw_only=True, slots=True)
class SelfInformation:
    """Reducer that keeps the phrases with the most self-information, as Selective Context does (Li 2023).

    Unlike the paper's, phrases stay with the protected parts of their clause: its negations, numbers and doses,
    which count against the share. The reach of a negation belongs to its clause, up to the end of the sentence or
    to a contrast ("but", a semicolon). At most one run of phrases is chosen of each clause, by bits per word of
    cost, marks of omission included, so runs win over scattered phrases. Each mark also takes a word of
    the share. The remaining words go to the phrases beside the runs.

    A passage without :class:`~posology.types.Phrases` (of an index built without an annotator) is dropped, as with
    :class:`Nothing`.
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
    """The n phrases of the m sentences of all passages, as one text with one passage a line."""

    #: passage of each sentence, and its number in it, shape ``(m,)``
    passage: NDArray[np.intp]
    number: NDArray[np.intp]
    #: sentence of each phrase, shape ``(n,)``
    sentence: NDArray[np.intp]
    #: start and end of each phrase in its passage, shape ``(n,)``
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    #: stretch of each phrase, from 0; -1 if its sentence is kept whole; shape ``(n,)``
    stretch: NDArray[np.intp]
    #: clause of each phrase, from 0, without gaps, shape ``(n,)``
    clause: NDArray[np.intp]
    #: whether its clause must not be shown without it, shape ``(n,)``
    protected: NDArray[np.bool_]
    #: words of each phrase, shape ``(n,)``
    words: NDArray[np.float64]
    #: bits of each phrase, shape ``(n,)``
    bits: NDArray[np.float64]

    @classmethod
    def of(cls, passages: Sequence[Retrieved], whole: NDArray[np.bool_]) -> Layout | None:
        """Return the layout of passages; ``None`` if there is no phrase to choose."""
        known = [(i, p.phrases) for i, p in enumerate(passages) if p.phrases is not None]
        counts = np.zeros(len(passages), np.intp)
        for i, phrases in known:
            counts[i] = len(phrases.starts)
        if not counts.any() or whole.all():
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
        # passages number their clauses alike; no clause crosses a sentence
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
            stretch=_stretches(whole, passage)[sentence],
            clause=np.cumsum(first) - 1,
            protected=protected,
            words=words,
            bits=bits,
        )


def _stretches(kept: NDArray[np.bool_], passage: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the stretch of each sentence, -1 if it is kept whole."""
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
    """Merge the reach of each negation into the negation's clause, in place.

    Commas end clauses, but not a negation's reach: of "no difference in mortality, or cost" the cost
    must not be shown alone.

    Args:
        text: text of all passages.
        starts: start of each phrase in the text.
        ends: end of each phrase in the text.
        finishes: end of each phrase's sentence in the text.
        first: whether each phrase is the first of its clause; changed.
        protected: whether each phrase's clause must not be shown without it; changed.
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
    """Return the text in lower case with the same length; searching it is faster than ignoring case."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def _choose(layout: Layout, share: float) -> NDArray[np.bool_]:
    """Return which phrases stay: of each clause at most one run and its protected phrases."""
    inside = layout.stretch >= 0
    total = np.bincount(layout.stretch[inside], weights=layout.words[inside])
    if share == 1 or not len(total):
        return inside
    budget = np.floor(total * share + 1e-9)
    runs = _Runs.of(layout, budget)
    left: list[float] = budget.tolist()
    chosen = np.zeros(len(layout.words), np.bool_)
    taken = np.zeros(layout.clause[-1] + 1, np.bool_)
    #: run of each opened clause
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
            chosen[first : last + 1] = True
    if seen:
        chosen |= layout.protected & taken[layout.clause]
        _bridge(chosen, layout, left)
        for first, last in seen.values():
            _grow(chosen, layout, left, range(last + 1, len(chosen)))
            _grow(chosen, layout, left, range(first - 1, -1, -1))
    return chosen


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Runs:
    """All m candidate runs of phrases within clauses, the most bits per word of cost first."""

    #: first and last phrase of each run, shape ``(m,)``
    first: NDArray[np.intp]
    last: NDArray[np.intp]
    #: words that each run shows, with its clause's protected phrases, and a word for each mark of omission,
    #: shape ``(m,)``
    cost: NDArray[np.float64]

    @classmethod
    def of(cls, layout: Layout, budget: NDArray[np.float64]) -> _Runs:
        """Return the runs that fit the budget of their stretch, in words."""
        clause, protected = layout.clause, layout.protected
        head = protected.copy()
        head[1:] &= ~(protected[:-1] & (clause[1:] == clause[:-1]))
        n = len(clause)
        sums = np.zeros((n + 1, 5))
        own = sums[1:]
        own[:, 0], own[:, 1] = layout.words, layout.bits
        # of protected phrases: words, bits, and number of groups
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


def _bridge(chosen: NDArray[np.bool_], layout: Layout, left: list[float]) -> None:
    """Show the words between two fragments of a clause if a mark would cost as much."""
    shown = np.flatnonzero(chosen)
    for a, b in zip(shown[:-1].tolist(), shown[1:].tolist(), strict=True):
        if b - a < 2 or layout.clause[a] != layout.clause[b]:
            continue
        words = float(layout.words[a + 1 : b].sum())
        stretch = int(layout.stretch[a])
        if words <= min(GAP, left[stretch]):
            chosen[a + 1 : b] = True
            left[stretch] -= words


def _grow(chosen: NDArray[np.bool_], layout: Layout, left: list[float], beside: range) -> None:
    """Spend the remaining words on the phrases beside a run, in its clause: they need no new mark."""
    clause = layout.clause[beside.start - beside.step]
    for i in beside:
        if layout.clause[i] != clause:
            return
        if chosen[i]:
            continue
        stretch = layout.stretch[i]
        if layout.words[i] > left[stretch]:
            return
        chosen[i] = True
        left[stretch] -= layout.words[i]


def spans_of(
    chosen: NDArray[np.bool_], layout: Layout, passages: Sequence[Retrieved]
) -> Iterator[tuple[int, Sentence]]:
    """Yield the kept phrases as spans, adjacent ones joined, each with the number of its passage.

    A span at the beginning or end of its sentence includes the punctuation there, which needs no mark of omission.
    """
    shown = np.flatnonzero(chosen)
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
