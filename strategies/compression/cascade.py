"""Cascades: keep the most relevant sentences whole and compress the rest (LeanContext, table 3)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio.to_thread
import numpy as np

from posology.seams import Complete, Compressor, Rewriter
from posology.types import (
    Call,
    Compressed,
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

#: Default share of the sentences kept whole: "Only Top-k = 0.1" in table 3.
DEFAULT_KEEP = 0.1
#: ``top+NAME`` or ``top:0.2+NAME``
_NAME = re.compile(r"([a-z_]+)(?::(0|1|0?\.[0-9]+|[01]\.[0-9]*))?\+(.+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class CascadeName:
    """The parts of a cascade's name."""

    #: compressor that chooses the whole sentences, e.g. ``top``
    top: str
    #: share of whole sentences; ``None``: the cascade's default
    share: float | None
    #: name of the compressor of the rest, possibly another cascade
    rest: str


def parse(name: str) -> CascadeName | None:
    """Parse a cascade's name; return ``None`` if it is not one."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    share = None if match[2] is None else float(match[2])
    if share is not None and share > 1:
        return None
    return CascadeName(top=match[1], share=share, rest=match[3])


class _TwoParts(Generic[RestT]):
    """Base of both cascades: one compressor keeps sentences whole, another handles the rest."""

    def __init__(
        self, *, name: str, top: Compressor, rest: RestT, keep: float = DEFAULT_KEEP
    ) -> None:
        self._name = name
        self._top = top
        self._rest = rest
        self._keep = share_of(keep, DEFAULT_KEEP)

    @property
    def name(self) -> str:
        """Return the name of both parts."""
        return self._name

    def expected_ratio(self, keep: float | None) -> float:
        """Return the share kept whole plus the expected share of the rest."""
        share = share_of(keep, self._keep)
        return share + (1 - share) * self._rest.expected_ratio(None)

    def _part(self, retrieval: Retrieval, keep: float | None) -> _Parted:
        return _Parted.of(retrieval, self._top(retrieval, share_of(keep, self._keep)))


class Cascade(_TwoParts[Compressor]):
    """Compressor that keeps sentences whole and passes only the others to a :class:`~posology.seams.Compressor`.

    Spans of both parts appear in the passage's order; a summary replaces the other sentences.

    Args:
        name: name in records.
        top: chooses the sentences kept whole.
        rest: compresses the others, by its own default share.
        keep: default share of the sentences kept whole.
    """

    @property
    def extractive(self) -> bool:
        """Return whether both parts are extractive."""
        return self._top.extractive and self._rest.extractive

    def __call__(self, retrieval: Retrieval, keep: float | None) -> Compressed:
        """Compress the passages of a retrieval.

        Args:
            retrieval: passages with their annotations from ingest.
            keep: share of the sentences kept whole; ``None``: the cascade's default.

        Raises:
            ValueError: ``keep`` is not 0 to 1.
        """
        parted = self._part(retrieval, keep)
        if not parted.rest.passages:
            return parted.joined(None, self._name)
        return parted.joined(self._rest(parted.rest, None), self._name)

    def seconds(self, retrieval: Retrieval, keep: float | None) -> float:
        """Return the seconds of both parts, as if the second one received all sentences."""
        share = share_of(keep, self._keep)
        return self._top.seconds(retrieval, share) + self._rest.seconds(retrieval, None)


class RewritingCascade(_TwoParts[Rewriter]):
    """Rewriter that keeps sentences whole and passes only the others to a :class:`~posology.seams.Rewriter`.

    Args:
        name: name in records.
        top: chooses the sentences kept whole.
        rest: rewrites the others, by its own default share.
        keep: default share of the sentences kept whole.
    """

    async def __call__(self, task: Task, keep: float | None, complete: Complete) -> Compressed:
        """Compress the passages of a task.

        Args:
            task: question, passages and model.
            keep: share of the sentences kept whole; ``None``: the cascade's default.
            complete: makes paid calls.

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
        """Return the rewriter's calls for the rest. Blocking.

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
    """Return the cascade of two parts; it makes paid calls if the second part does.

    Args:
        name: name in records.
        top: chooses the sentences kept whole.
        rest: compresses or rewrites the others.
        keep: default share of the sentences kept whole; ``None``: :data:`DEFAULT_KEEP`.
    """
    share = share_of(keep, DEFAULT_KEEP)
    if isinstance(rest, Rewriter):
        return RewritingCascade(name=name, top=top, rest=rest, keep=share)
    return Cascade(name=name, top=top, rest=rest, keep=share)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class _Parted:
    """A retrieval divided into whole sentences and the rest."""

    whole: Retrieval
    #: sentences kept whole, of each passage
    kept: tuple[frozenset[Sentence], ...]
    #: passages cut to their other sentences; passages without any are omitted
    rest: Retrieval
    #: by passage id: the rest's sentences as they stand in the whole passage
    sources: Mapping[str, tuple[Sentence, ...]]

    @classmethod
    def of(cls, retrieval: Retrieval, top: Compressed) -> _Parted:
        """Divide a retrieval by the sentences that a compressor left whole."""
        left = {excerpt.passage.id: set(excerpt.sentences) for excerpt in top.excerpts}
        staying = []
        others = []
        sources = {}
        for one in retrieval.passages:
            stay = frozenset(left.get(one.passage.id, ())).intersection(one.sentences)
            staying.append(stay)
            rest = np.array([s not in stay for s in one.sentences], np.bool_)
            if rest.any():
                others.append(_cut(one, rest))
                sources[one.passage.id] = tuple(s for s in one.sentences if s not in stay)
        return cls(
            whole=retrieval,
            kept=tuple(staying),
            rest=replace(retrieval, passages=tuple(others)),
            sources=MappingProxyType(sources),
        )

    def joined(self, rest: Compressed | None, name: str) -> Compressed:
        """Join the whole sentences with the compressed rest; ``None``: there was no rest."""
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
                excerpts.append(one.excerpt(shown, summary=summary))
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
    """Translate spans of a cut passage to the whole one.

    Args:
        spans: spans in the cut passage, each within a sentence.
        sentences: sentences of the cut passage.
        sources: the same sentences in the whole passage.
    """
    found = []
    for span in spans:
        for sentence, source in zip(sentences, sources, strict=True):
            if sentence.start <= span.start and span.end <= sentence.end:
                by = source.start - sentence.start
                found.append(Sentence(start=span.start + by, end=span.end + by))
    return found


def _cut(retrieved: Retrieved, rest: NDArray[np.bool_]) -> Retrieved:
    """Cut a passage to some of its sentences, with their annotations from ingest.

    Args:
        retrieved: the whole passage.
        rest: whether each sentence stays.
    """
    text = ""
    sentences: list[Sentence] = []
    end = None
    for sentence, stays in zip(retrieved.sentences, rest.tolist(), strict=True):
        if not stays:
            continue
        if end is not None:
            between = retrieved.passage.text[end : sentence.start]
            # keep white space between neighbouring sentences as it was
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
        roles=None if retrieved.roles is None else tuple(compress(retrieved.roles, rest)),
    )


def _phrases(
    phrases: Phrases,
    sentences: Sequence[Sentence],
    rest: NDArray[np.bool_],
    moved: Sequence[Sentence],
) -> Phrases:
    """Return the phrases of the sentences that stay, at their new offsets."""
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
    """Return the token codes of the heading and of the sentences that stay."""
    stays = np.concatenate(([True], rest))
    return TokenCodes(
        codes=tokens.codes[np.repeat(stays, tokens.counts)], counts=tokens.counts[stays]
    )
