"""Cascades: the sentences that matter most whole, and another compressor for the rest (LeanContext, table 3)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio.to_thread
import numpy as np

from posology.seams import Complete, Compressor, Rewriter
from posology.types import (
    Call,
    Compressed,
    Excerpt,
    Phrases,
    Retrieval,
    Retrieved,
    Sentence,
    Task,
    TokenCodes,
)
from strategies.compression.results import share_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

RestT = TypeVar("RestT", bound=Compressor | Rewriter)

#: Share of the sentences that are kept whole where nobody says: "Only Top-k = 0.1" in table 3.
DEFAULT_KEEP = 0.1
#: ``top+NAME`` or ``top:0.2+NAME``
_NAME = re.compile(r"([a-z_]+)(?::(0|1|0?\.[0-9]+|[01]\.[0-9]*))?\+(.+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class CascadeName:
    """A cascade's name, taken apart."""

    #: what chooses the sentences that stay whole, e.g. ``top``
    top: str
    #: their share; ``None``: the cascade's own
    share: float | None
    #: name of the compressor of the rest, which may be a cascade's again
    rest: str


def parse(name: str) -> CascadeName | None:
    """Take a cascade's name apart; ``None``: it is no cascade's."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    share = None if match[2] is None else float(match[2])
    if share is not None and share > 1:
        return None
    return CascadeName(top=match[1], share=share, rest=match[3])


class _TwoParts(Generic[RestT]):
    """What both cascades are: sentences that are kept whole, and what becomes of the others."""

    def __init__(
        self, *, name: str, top: Compressor, rest: RestT, keep: float = DEFAULT_KEEP
    ) -> None:
        self._name = name
        self._top = top
        self._rest = rest
        self._keep = share_of(keep, DEFAULT_KEEP)

    @property
    def name(self) -> str:
        """Of both parts."""
        return self._name

    def expected_ratio(self, keep: float | None) -> float:
        """The share that is kept, and of the others what is expected to be left of them."""
        return _left(share_of(keep, self._keep), self._rest)

    def _part(self, retrieval: Retrieval, keep: float | None) -> _Parted:
        return _Parted.of(retrieval, self._top(retrieval, share_of(keep, self._keep)))


class Cascade(_TwoParts[Compressor]):
    """Keeps sentences whole, and hands a :class:`~posology.seams.Compressor` the others, which are all that it sees.

    In its own order, what is left of a passage stands among the sentences that were kept; a summary stands for
    the others. As a compressor itself.

    Args:
        name: for the record.
        top: chooses the sentences that are kept: those that it leaves whole, of its own share of them.
        rest: compresses the others, as much as it finds right.
        keep: share of the sentences that are kept where nobody says.
    """

    @property
    def extractive(self) -> bool:
        """Whether both parts are."""
        return self._top.extractive and self._rest.extractive

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
        """Compress the passages of a retrieval.

        Args:
            retrieval: passages with what was computed of them at ingest.
            keep: share of the sentences that are kept whole; ``None``: the cascade's.

        Raises:
            ValueError: ``keep`` is not 0 to 1.
        """
        parted = self._part(retrieval, keep)
        if not parted.rest.passages:
            return parted.joined(None, self._name)
        return parted.joined(self._rest(parted.rest, None), self._name)

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:
        """Of both parts, as if the second saw all."""
        share = share_of(keep, self._keep)
        return self._top.seconds(retrieval, share) + self._rest.seconds(retrieval, None)


class RewritingCascade(_TwoParts[Rewriter]):
    """The same with a :class:`~posology.seams.Rewriter` of the rest, as a rewriter itself.

    Args:
        name: for the record.
        top: chooses the sentences that are kept: those that it leaves whole, of its own share of them.
        rest: writes the others anew, as much as it finds right.
        keep: share of the sentences that are kept where nobody says.
    """

    async def __call__(self, task: Task, keep: float | None, complete: Complete) -> Compressed:
        """Compress the passages of a task.

        Args:
            task: question, passages and model.
            keep: share of the sentences that are kept whole; ``None``: the cascade's.
            complete: spends.

        Raises:
            ValueError: ``keep`` is not 0 to 1.
            ProviderError: a call failed.
        """
        parted = await anyio.to_thread.run_sync(self._part, task.retrieval, keep)
        if not parted.rest.passages:
            return parted.joined(None, self._name)
        rest = await self._rest(replace(task, retrieval=parted.rest), None, complete)
        return parted.joined(rest, self._name)

    def calls(self, task: Task, keep: float | None) -> tuple[Call, ...]:
        """The rewriter's calls for the rest. Blocking.

        Raises:
            ValueError: ``keep`` is not 0 to 1.
        """
        parted = self._part(task.retrieval, keep)
        if not parted.rest.passages:
            return ()
        return self._rest.calls(replace(task, retrieval=parted.rest), None)


def cascade(
    *, name: str, top: Compressor, rest: Compressor | Rewriter, keep: float | None
) -> Cascade | RewritingCascade:
    """The cascade of two parts, which spends where the second does.

    Args:
        name: for the record.
        top: chooses the sentences that are kept whole.
        rest: for the others.
        keep: share of the sentences that are kept where nobody says; ``None``: :data:`DEFAULT_KEEP`.
    """
    share = share_of(keep, DEFAULT_KEEP)
    if isinstance(rest, Rewriter):
        return RewritingCascade(name=name, top=top, rest=rest, keep=share)
    return Cascade(name=name, top=top, rest=rest, keep=share)


def _left(share: float, rest: Compressor | Rewriter) -> float:
    return share + (1 - share) * rest.expected_ratio(None)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Parted:
    """A retrieval in two parts."""

    whole: Retrieval
    #: of each passage the sentences that stay whole
    kept: tuple[frozenset[Sentence], ...]
    #: passages of the other sentences alone, where there are any; their texts hold nothing else
    rest: Retrieval
    #: of each passage of the rest its sentences, by where they begin in the whole passage
    sources: Mapping[str, tuple[Sentence, ...]]

    @classmethod
    def of(cls, retrieval: Retrieval, top: Compressed) -> _Parted:
        """By the sentences that a compressor left whole."""
        left = {excerpt.passage.id: set(excerpt.sentences) for excerpt in top.excerpts}
        kept = []
        others = []
        sources = {}
        for one in retrieval.passages:
            stay = frozenset(left.get(one.passage.id, ())).intersection(one.sentences)
            kept.append(stay)
            rest = np.array([s not in stay for s in one.sentences], np.bool_)
            if rest.any():
                others.append(_cut(one, rest))
                sources[one.passage.id] = tuple(s for s in one.sentences if s not in stay)
        return cls(
            whole=retrieval,
            kept=tuple(kept),
            rest=replace(retrieval, passages=tuple(others)),
            sources=MappingProxyType(sources),
        )

    def joined(self, rest: Compressed | None, name: str) -> Compressed:
        """What is kept, and what is left of the rest, as one; ``None``: there was no rest."""
        left = {} if rest is None else {one.passage.id: one for one in rest.excerpts}
        cut = {one.passage.id: one for one in self.rest.passages}
        excerpts = []
        whole = 0
        for one, stay in zip(self.whole.passages, self.kept, strict=True):
            own = left.get(one.passage.id)
            shown = list(stay)
            if own is not None:
                sources = self.sources[one.passage.id]
                shown += _moved(own.sentences, cut[one.passage.id].sentences, sources)
            summary = None if own is None else own.summary
            if shown or summary is not None:
                shown.sort(key=lambda span: span.start)
                whole += len(set(shown).intersection(one.sentences))
                excerpts.append(
                    Excerpt(passage=one.passage, sentences=tuple(shown), summary=summary)
                )
        done = Compressed(
            excerpts=tuple(excerpts),
            kept=whole,
            sentences=sum(len(one.sentences) for one in self.whole.passages),
            compressor=name,
        )
        return done if rest is None else replace(done, usage=rest.usage, remarks=rest.remarks)


def _moved(
    spans: Sequence[Sentence], sentences: Sequence[Sentence], sources: Sequence[Sentence]
) -> list[Sentence]:
    """Spans of a cut passage in the whole one.

    Args:
        spans: in the cut passage, each within a sentence.
        sentences: of the cut passage.
        sources: the same sentences in the whole one.
    """
    found = []
    for span in spans:
        for sentence, source in zip(sentences, sources, strict=True):
            if sentence.start <= span.start and span.end <= sentence.end:
                by = source.start - sentence.start
                found.append(Sentence(start=span.start + by, end=span.end + by))
    return found


def _cut(retrieved: Retrieved, rest: NDArray[np.bool_]) -> Retrieved:
    """A passage of some of its sentences alone, with what was computed of them at ingest.

    Args:
        retrieved: the whole passage.
        rest: which sentences stay.
    """
    text = ""
    sentences: list[Sentence] = []
    end = None
    for sentence, stays in zip(retrieved.sentences, rest.tolist(), strict=True):
        if not stays:
            continue
        if end is not None:
            between = retrieved.passage.text[end : sentence.start]
            # what stood between sentences that were neighbours, if it was nothing but space
            text += " " if between.strip() else between
        start = len(text)
        text += sentence.of(retrieved.passage.text)
        sentences.append(Sentence(start=start, end=len(text)))
        end = sentence.end
    return replace(
        retrieved,
        passage=replace(retrieved.passage, text=text),
        sentences=tuple(sentences),
        sentence_vectors=retrieved.sentence_vectors[rest],
        phrases=None
        if retrieved.phrases is None
        else _phrases(retrieved.phrases, retrieved.sentences, rest, sentences),
        tokens=None if retrieved.tokens is None else _tokens(retrieved.tokens, rest),
    )


def _phrases(
    phrases: Phrases,
    sentences: Sequence[Sentence],
    rest: NDArray[np.bool_],
    moved: Sequence[Sentence],
) -> Phrases:
    """The phrases of the sentences that stay, at their new places."""
    begins = np.array([s.start for s in sentences])
    of = np.searchsorted(begins, phrases.starts, side="right") - 1
    stay = rest[of]
    shifts = np.zeros(len(sentences), np.int32)
    shifts[rest] = np.array([s.start for s in moved]) - begins[rest]
    by = shifts[of[stay]]
    return Phrases(
        starts=phrases.starts[stay] + by,
        ends=phrases.ends[stay] + by,
        words=phrases.words[stay],
        information=phrases.information[stay],
        clauses=phrases.clauses[stay],
        protected=phrases.protected[stay],
    )


def _tokens(tokens: TokenCodes, rest: NDArray[np.bool_]) -> TokenCodes:
    """The token codes of the heading and of the sentences that stay."""
    stays = np.concatenate(([True], rest))
    return TokenCodes(
        codes=tokens.codes[np.repeat(stays, tokens.counts)], counts=tokens.counts[stays]
    )
