"""Compressed RAG: one call over what a compressor selects of the retrieved passages."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import anyio.to_thread
from anyio.lowlevel import RunVar

from posology.errors import InvalidQuery
from posology.seams import Complete, Compressor, Guess, Rewriter
from posology.turns import long_work
from posology.types import (
    Answer,
    Call,
    Compressed,
    Compression,
    Excerpt,
    PlannedCall,
    Refusal,
    Retrieval,
    Retrieved,
    Task,
)
from prompts.fence import OMISSION
from strategies.compression.leancontext import LeanContext
from strategies.evidence import cut, shown_words, whole, words
from strategies.single_call import NOTHING_FOUND, OneCall, ask, conclude, planned

NAME = "compressed"
NOTHING_LEFT = "Compression left no text of the passages to read."
#: precedes the remaining text of a passage that has a summary
_TEXT = "\ntext: "
#: seconds of computing above which compressions of a process run one after another
_LONG = 2.0
_TURN = RunVar[anyio.CapacityLimiter]("_TURN")


def _one_by_one() -> anyio.CapacityLimiter:
    """Return the limiter of long compressions: several at once take the cores from short ones, and end no sooner."""
    try:
        return _TURN.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(1)
        _TURN.set(limiter)
        return limiter


class CompressedRag(OneCall):
    """Compresses, then asks once for a cited answer or a refusal; keeps only verified quotes.

    Quotes are checked against the whole passages: a quote from a fragment is found there, one that joins text across
    an omission is not, and one from a summary is found only if the passage says the same.

    A compressed passage is never longer than the passage: otherwise the passage is shown whole. So the passage's bytes
    bound what is shown, also of a summary.

    Args:
        compressor: selects or writes what is shown; ``None``: LeanContext.
        keep: share to keep, 0 to 1; ``None``: the compressor's own choice.
        seconds: predicted seconds of computing, above which nothing is compressed; ``None``: no limit.

    Raises:
        ValueError: ``keep`` is not 0 to 1.
    """

    def __init__(
        self,
        *,
        compressor: Compressor | Rewriter | None = None,
        keep: float | None = None,
        seconds: float | None = None,
    ) -> None:
        if keep is not None and not 0 <= keep <= 1:
            raise ValueError(f"keep must be from 0 to 1 (got {keep})")
        self.compressor = LeanContext() if compressor is None else compressor
        self.keep = keep
        self.seconds = seconds

    async def __call__(self, task: Task, complete: Complete) -> Answer | Refusal:
        """Answer from what is left of the passages, in their order.

        If nothing is left, it refuses without a call.

        Raises:
            ProviderError: a call failed, a rewriter's included.
            InvalidQuery: compressing would take longer than it may.
            Occupied: it would take long, and the tenant has such a compression in work.
        """
        passages = task.retrieval.passages
        if not passages:
            return Refusal(reason=NOTHING_FOUND, strategy=NAME)
        started = time.perf_counter()
        parts = await self._compress(task, complete)
        compressed = joined(parts)
        took = _took(compressed, task.retrieval, time.perf_counter() - started)
        call = ask(task, compressed.excerpts, strategy=NAME, before=_before(parts))
        if call is None:
            return Refusal(
                reason=NOTHING_LEFT,
                strategy=NAME,
                notes=compressed.remarks,
                shown=0.0,
                compression=took,
            )
        outcome = conclude(task.query, await complete(call), call.excerpts, strategy=NAME)
        return replace(
            outcome,
            notes=(*outcome.notes, *compressed.remarks, _remark(compressed, task.retrieval)),
            shown=took.shown / took.words if took.words else None,
            compression=took,
        )

    def call(self, task: Task) -> Call | None:
        """Render the call for an answer; ``None`` if nothing is left. Blocking.

        Raises:
            TypeError: the compressor is a rewriter, whose text is unknown before its own calls.
        """
        if isinstance(self.compressor, Rewriter):
            raise TypeError(f"the call cannot be rendered before {self.compressor.name} is asked")
        parts = self._select(_retrievals(task))
        return ask(task, joined(parts).excerpts, strategy=NAME, before=_before(parts))

    def calls(self, task: Task, guess: Guess) -> Iterable[PlannedCall]:
        """Plan a rewriter's calls and the call for an answer. Runs only compressors that select text in time."""
        compressor = self.compressor
        if not task.retrieval.passages:
            return
        if not isinstance(compressor, Rewriter):
            if compressor.extractive and not self._too_long(task):
                yield from super().calls(task, guess)
            else:
                yield self._unwritten(task, guess)
            return
        # the steps before paid for what they added
        added = _added(task)[-1]
        calls = compressor.calls(added, self.keep)
        tokens = _tokens(added, guess) * compressor.expected_ratio(self.keep) / max(1, len(calls))
        for call in calls:
            yield PlannedCall(
                call=call, input=guess.input(call), output=guess.output(call, default=tokens)
            )
        # if the rewriter keeps nothing, there is no call for an answer
        yield replace(self._unwritten(task, guess), share=guess.found(task.model))

    def _too_long(self, task: Task) -> bool:
        assert not isinstance(self.compressor, Rewriter)
        return (
            self.seconds is not None
            and self.compressor.seconds(task.retrieval, self.keep) > self.seconds
        )

    def count(self, task: Task) -> int:
        """Return 1, or 2 with a rewriter."""
        return super().count(task) + isinstance(self.compressor, Rewriter)

    async def _compress(self, task: Task, complete: Complete) -> tuple[Compressed, ...]:
        if isinstance(self.compressor, Rewriter):
            written = []
            for one in _added(task):
                part = await self.compressor(one, self.keep, complete)
                written.append(_no_longer(part, one.retrieval))
            return tuple(written)
        needed = await anyio.to_thread.run_sync(self.compressor.seconds, task.retrieval, self.keep)
        if self.seconds is not None and needed > self.seconds:
            raise InvalidQuery(
                f"{self.compressor.name} would compute for about {needed:.0f} s, and at most {self.seconds:g} s are "
                "allowed: ask for fewer passages (k), or name another compressor",
                field="compressor",
            )
        if needed <= _LONG:
            return await self._run(task, None)
        with long_work():
            return await self._run(task, _one_by_one())

    async def _run(
        self, task: Task, limiter: anyio.CapacityLimiter | None
    ) -> tuple[Compressed, ...]:
        # a compressor may compute for minutes: neither other questions nor a cancellation wait for it
        return await anyio.to_thread.run_sync(
            self._select, _retrievals(task), abandon_on_cancel=True, limiter=limiter
        )

    def _select(self, retrievals: Sequence[Retrieval]) -> tuple[Compressed, ...]:
        assert not isinstance(self.compressor, Rewriter)
        return tuple(_no_longer(self.compressor(one, self.keep), one) for one in retrievals)

    def _unwritten(self, task: Task, guess: Guess) -> PlannedCall:
        """Plan the call for an answer over text that is not written yet.

        At worst each passage is as long as it is, in characters that are counted by their bytes, with all the
        marks of omission that there is room for.
        """
        passages = task.retrieval.passages
        bare = _rendered(task, tuple(Excerpt(passage=p.passage, sentences=()) for p in passages))
        longest = tuple(
            Excerpt(
                passage=p.passage,
                sentences=(),
                summary="7"
                * (len(_utf8(p.passage.text)) + len(_utf8(OMISSION)) * (len(p.sentences) + 1))
                + _TEXT,
            )
            for p in passages
        )
        call = planned(bare, guess)
        return replace(
            call,
            input=call.input + _tokens(task, guess) * self.compressor.expected_ratio(self.keep),
            worst_cases=(_rendered(task, whole(passages)), _rendered(task, longest)),
        )


def joined(parts: Sequence[Compressed]) -> Compressed:
    """Return parts that were compressed one after another as one."""
    first, *others = parts
    for one in others:
        known = first.usage is not None and one.usage is not None
        first = replace(
            first,
            excerpts=first.excerpts + one.excerpts,
            kept=first.kept + one.kept,
            sentences=first.sentences + one.sentences,
            usage=first.usage + one.usage if known else None,  # type: ignore[operator]
            remarks=tuple(dict.fromkeys((*first.remarks, *one.remarks))),
        )
    return first


def _added(task: Task) -> tuple[Task, ...]:
    """Return the passages that each step of a ladder added, up to this one; without a ladder, all.

    They are compressed apart: what an earlier step showed stays as it was, so that its prompt can be read from a cache.
    """
    if task.step is None:
        return (task,)
    ends = pairwise((0, *task.step.before, len(task.retrieval.passages)))
    return tuple(cut(replace(task, step=None), first, end - first) for first, end in ends)


def _retrievals(task: Task) -> tuple[Retrieval, ...]:
    return tuple(one.retrieval for one in _added(task))


def _before(parts: Sequence[Compressed]) -> tuple[int, ...]:
    """Return the number of excerpts that each step before showed."""
    return tuple(accumulate(len(part.excerpts) for part in parts[:-1]))


def _rendered(task: Task, excerpts: tuple[Excerpt, ...]) -> Call:
    before = task.step.before if task.step else ()
    call = ask(task, excerpts, strategy=NAME, before=before)
    assert call is not None
    return call


def _tokens(task: Task, guess: Guess) -> float:
    return guess.tokens((one.passage.text for one in task.retrieval.passages), task.model)


def _no_longer(compressed: Compressed, retrieval: Retrieval) -> Compressed:
    """Show a passage whole if its compressed form has more bytes."""
    if compressed.extractive:
        return compressed
    by_id = {one.passage.id: one for one in retrieval.passages}
    kept = compressed.kept
    excerpts = []
    for excerpt in compressed.excerpts:
        original = by_id[excerpt.passage.id]
        if _bytes(excerpt) <= len(_utf8(excerpt.passage.text)):
            excerpts.append(excerpt)
            continue
        kept += len(set(original.sentences) - set(excerpt.sentences))
        excerpts.append(original.excerpt())
    return replace(compressed, excerpts=tuple(excerpts), kept=kept)


def _bytes(excerpt: Excerpt) -> int:
    """Return the UTF-8 size of an excerpt, without marks of omission but with space between adjacent sentences."""
    text = excerpt.passage.text
    size = len(_utf8(excerpt.summary or ""))
    end = None
    for sentence in excerpt.sentences:
        between = text[sentence.start if end is None else end : sentence.start]
        size += len(_utf8(sentence.of(text))) + (0 if between.strip() else len(_utf8(between)))
        end = sentence.end
    return size


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _took(compressed: Compressed, retrieval: Retrieval, seconds: float) -> Compression:
    return Compression(
        compressor=compressed.compressor,
        extractive=compressed.extractive,
        kept=compressed.kept,
        sentences=compressed.sentences,
        shown=shown_words(compressed.excerpts),
        words=words(retrieval.passages),
        seconds=seconds,
        usage=compressed.usage,
    )


def _remark(compressed: Compressed, retrieval: Retrieval) -> str:
    """Say how much of the passages was shown, for a reader of the answer."""
    passages = f"{len(compressed.excerpts)} of {len(retrieval.passages)} passages"
    sentences = f"{compressed.kept} of {compressed.sentences} sentences"
    length = _characters(compressed.excerpts) / _all_characters(retrieval.passages)
    if compressed.extractive:
        return f"The model was shown {length:.0%} of the text, from {passages}, with {sentences} complete."
    return (
        f"The model was shown summaries by {compressed.compressor}: quotes were checked against the "
        f"passages. They came from {passages}, kept {sentences} complete, and had {length:.0%} of the text's length."
    )


def _all_characters(passages: tuple[Retrieved, ...]) -> int:
    return sum(s.end - s.start for one in passages for s in one.sentences) or 1


def _characters(excerpts: tuple[Excerpt, ...]) -> int:
    sentences = sum(s.end - s.start for one in excerpts for s in one.sentences)
    return sentences + sum(len(one.summary or "") for one in excerpts)
