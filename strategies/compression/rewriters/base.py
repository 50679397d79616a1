"""Base of rewriters: make one call for all passages and merge its texts with them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import anyio.to_thread
from pydantic import BaseModel

from posology.errors import UnusableReply
from posology.llm.models.effort import effort_of, reasoning_tokens
from posology.seams import Complete
from posology.text.quotes import Span, locate
from posology.text.sentences import split
from posology.types import (
    Call,
    Compressed,
    Excerpt,
    Retrieval,
    Retrieved,
    Sentence,
    Stage,
    Task,
)
from prompts.fence import position
from prompts.lengths import text_tokens, text_words
from prompts.template import Rendered
from strategies.compression.checked import check
from strategies.compression.results import of_spans, share_of
from strategies.evidence import whole


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """A model's text of a passage."""

    #: label as the model wrote it, e.g. ``P1``
    label: str
    text: str


class PassageRewriter(ABC):
    """:class:`~posology.seams.Rewriter` that asks a model once for a shorter text of each passage.

    A sentence of the reply that is word for word in its passage is shown as the passage's own, so that it can be
    quoted; the rest is a summary. Sentences that fail :mod:`strategies.compression.checked`, and passages without a
    text, are omitted.
    """

    #: name in records
    name: ClassVar[str]
    #: default share of the words to ask for
    default_keep: ClassVar[float]
    #: whether the model must write a text of every passage
    of_all: ClassVar[bool]

    @abstractmethod
    def render(self, task: Task, excerpts: Sequence[Excerpt], words: Sequence[int]) -> Rendered:
        """Render the messages.

        Args:
            task: has the question, and the digest of the user's own templates.
            excerpts: the passages to shorten.
            words: maximum words of each passage's text.
        """

    @abstractmethod
    def schema(self, passages: int) -> type[BaseModel]:
        """Return the form of a reply on so many passages."""

    @abstractmethod
    def read(self, reply: BaseModel) -> Iterable[Text]:
        """Return the texts of a reply of that form."""

    async def __call__(self, task: Task, keep: float | None, complete: Complete) -> Compressed:
        """Compress the passages of a task; all or nothing makes no call.

        Args:
            task: question, passages and model.
            keep: share of the words to ask for, 0 to 1; a model may write more or less; ``None``:
                :attr:`default_keep`.
            complete: makes paid calls.

        Raises:
            ValueError: ``keep`` is not 0 to 1.
            ProviderError: the call failed, or the provider's safety system declined it.
        """
        calls = await anyio.to_thread.run_sync(self.calls, task, keep)
        if not calls:
            share = share_of(keep, self.default_keep)
            left = [one.sentences if share == 1 else () for one in task.retrieval.passages]
            return of_spans(task.retrieval, left, compressor=self.name)
        (call,) = calls
        completion = await complete(call)
        if completion.parsed is None:
            raise UnusableReply(
                f"{call.model} declined to shorten the passages for {self.name}. Choose another compressor, or "
                "strategy direct.",
                provider=call.model.partition(":")[0],
                model=call.model,
                request_id=completion.request_id,
                usage=completion.usage,
            )
        # for long passages the check takes seconds, which would block the event loop
        merged = await anyio.to_thread.run_sync(self._merged, task.retrieval, completion.parsed)
        return Compressed(
            excerpts=merged.excerpts,
            kept=sum(len(excerpt.sentences) for excerpt in merged.excerpts),
            sentences=sum(len(one.sentences) for one in task.retrieval.passages),
            compressor=self.name,
            usage=completion.usage,
            remarks=tuple(merged.remarks(of_all=self.of_all)),
        )

    def calls(self, task: Task, keep: float | None) -> tuple[Call, ...]:
        """Return its one call, or none if all or nothing stays. Blocking.

        The bound on output tokens grows with the words asked for. If the task's own bound is smaller, fewer words
        are asked for.

        Raises:
            ValueError: ``keep`` is not 0 to 1.
        """
        share = share_of(keep, self.default_keep)
        passages = _readable(task.retrieval)
        if share in (0, 1) or not passages:
            return ()
        excerpts = whole(passages)
        words = [max(1, round(share * _words(one))) for one in passages]
        effort = effort_of(task.model, Stage.COMPRESS, task.effort)
        reasoning = reasoning_tokens(task.model, effort)
        bound = text_tokens(sum(words), len(words)) + reasoning
        if task.max_tokens is not None and task.max_tokens < bound:
            bound = task.max_tokens
            fits = text_words(bound - reasoning, len(words)) / sum(words)
            words = [max(1, int(fits * n)) for n in words]
        rendered = self.render(task, excerpts, words)
        return (
            Call(
                stage=Stage.COMPRESS,
                model=task.model,
                query=task.query,
                excerpts=excerpts,
                messages=rendered.messages,
                prompt=rendered.prompt,
                schema=self.schema(len(excerpts)),
                strategy=self.name,
                effort=effort,
                max_tokens=bound,
            ),
        )

    def expected_ratio(self, keep: float | None) -> float:
        """Return the share asked for."""
        return share_of(keep, self.default_keep)

    def _merged(self, retrieval: Retrieval, reply: BaseModel) -> _Merged:
        return _Merged.of(retrieval, list(self.read(reply)))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Merged:
    """The excerpts of a reply, with counts of what is missing."""

    excerpts: tuple[Excerpt, ...]
    #: texts whose label is no passage's
    unknown: int
    #: passages without a text
    missing: int
    #: sentences that failed the check
    dropped: int

    @classmethod
    def of(cls, retrieval: Retrieval, texts: Sequence[Text]) -> _Merged:
        """Merge texts with their passages; several texts of one passage are joined."""
        passages = _readable(retrieval)
        written: dict[int, list[str]] = {}
        unknown = dropped = 0
        for one in texts:
            place = position(one.label)
            if place is None or place >= len(passages):
                unknown += 1
            else:
                written.setdefault(place, []).append(one.text)
        excerpts = []
        for place, parts in sorted(written.items()):
            checked = check(" ".join(parts), passages[place].passage)
            dropped += checked.dropped
            excerpt = _excerpt(passages[place], checked.text)
            if excerpt.sentences or excerpt.summary is not None:
                excerpts.append(excerpt)
        return cls(
            excerpts=tuple(excerpts),
            unknown=unknown,
            missing=len(passages) - len(written),
            dropped=dropped,
        )

    def remarks(self, *, of_all: bool) -> Iterable[str]:
        """Yield remarks for the reader on what is missing.

        Args:
            of_all: whether the model had to write a text of every passage.
        """
        if of_all and self.missing:
            yield f"The model wrote nothing on {self.missing} of the passages; they were left out."
        if self.unknown:
            yield f"{self.unknown} of the summaries named an unknown passage and were left out."
        if self.dropped:
            yield (
                f"{self.dropped} sentences of summaries were left out: their numbers, names or negations differ "
                "from their passages."
            )


def _readable(retrieval: Retrieval) -> tuple[Retrieved, ...]:
    """Return the passages that are sent: those with text."""
    return tuple(one for one in retrieval.passages if one.sentences)


def _words(retrieved: Retrieved) -> int:
    return sum(len(s.of(retrieved.passage.text).split()) for s in retrieved.sentences)


def _excerpt(retrieved: Retrieved, text: str) -> Excerpt:
    """Return an excerpt of the text's sentences that are the passage's own, with the others as its summary."""
    own: set[Sentence] = set()
    others = []
    for part in split(text):
        sentence = _copied(part.of(text), retrieved)
        if sentence is None:
            others.append(part.of(text))
        else:
            own.add(sentence)
    return retrieved.excerpt(
        [s for s in retrieved.sentences if s in own], summary=" ".join(others) or None
    )


def _copied(words: str, retrieved: Retrieved) -> Sentence | None:
    """Return the passage's sentence that equals these words, or ``None``."""
    found = locate(words, retrieved.passage.text)
    if not isinstance(found, Span):
        return None
    for sentence in retrieved.sentences:
        # a final full stop may be missing
        if sentence.start == found.start and 0 <= sentence.end - found.end <= 1:
            return sentence
    return None
