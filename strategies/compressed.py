"""Compressed RAG: one call over what a compressor leaves of the retrieved passages."""

from __future__ import annotations

import time
from dataclasses import replace

import anyio.to_thread

from posology.seams import Complete, Compressor, Rewriter
from posology.types import (
    Answer,
    Call,
    Compressed,
    Compression,
    Excerpt,
    Refusal,
    Retrieval,
    Retrieved,
    Task,
)
from strategies.compression.leancontext import LeanContext
from strategies.evidence import shown_words, words
from strategies.single_call import NOTHING_FOUND, ask, conclude

NAME = "compressed"
NOTHING_LEFT = "Nothing of the passages was left to read when they were compressed."


class CompressedRag:
    """Compresses, asks once, for a cited answer or a refusal, and keeps only the quotes that stand.

    Quotes are checked against the whole passages: one from a fragment is found there, one that joins what an
    omission parts is not, and one from a summary is found only where the passage says the same.

    What a compressor makes of a passage is never longer than the passage: where it would be, the passage is shown
    whole. So its bytes bound what is shown of it, whatever writes.

    Args:
        compressor: chooses what is shown, or writes it; ``None``: LeanContext.
        keep: share that it keeps, 0 to 1; ``None``: as much as it finds right.

    Raises:
        ValueError: ``keep`` is not 0 to 1.
    """

    def __init__(
        self, *, compressor: Compressor | Rewriter | None = None, keep: float | None = None
    ) -> None:
        if keep is not None and not 0 <= keep <= 1:
            raise ValueError(f"a share of sentences is 0 to 1, not {keep}")
        self.compressor = LeanContext() if compressor is None else compressor
        self.keep = keep

    @property
    def calls(self) -> int:
        """Calls that it makes for a question, at most as a rule: a rewriter's, and the answer's."""
        return 2 if isinstance(self.compressor, Rewriter) else 1

    async def __call__(self, task: Task, complete: Complete) -> Answer | Refusal:
        """Answer from what is left of the passages, in their order.

        Where nothing is left there is nothing to ask about: that refuses without a call.

        Raises:
            ProviderError: a call failed, a rewriter's among them; nothing was answered.
        """
        passages = task.retrieval.passages
        if not passages:
            return Refusal(reason=NOTHING_FOUND, strategy=NAME)
        started = time.perf_counter()
        compressed = _no_longer(await self._compress(task, complete), task.retrieval)
        took = _took(compressed, task.retrieval, time.perf_counter() - started)
        call = ask(task, compressed.excerpts, strategy=NAME)
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
            notes=(*outcome.notes, *compressed.remarks, _told(compressed, task.retrieval)),
            shown=took.shown / took.words if took.words else None,
            compression=took,
        )

    def call(self, task: Task) -> Call | None:
        """The call for an answer; ``None`` where there is nothing to ask about. Blocking.

        Raises:
            TypeError: what it shows is written by calls of its own, and not known before them.
        """
        if isinstance(self.compressor, Rewriter):
            raise TypeError(f"nobody knows what {self.compressor.name} writes before it is asked")
        compressed = _no_longer(self.compressor(task.retrieval, self.keep), task.retrieval)
        return ask(task, compressed.excerpts, strategy=NAME)

    async def _compress(self, task: Task, complete: Complete) -> Compressed:
        if isinstance(self.compressor, Rewriter):
            return await self.compressor(task, self.keep, complete)
        # arithmetic at least, and a model's passes for some, for minutes, which neither another question should
        # wait for nor whoever cancels this one
        return await anyio.to_thread.run_sync(
            self.compressor, task.retrieval, self.keep, abandon_on_cancel=True
        )


def _no_longer(compressed: Compressed, retrieval: Retrieval) -> Compressed:
    """What is left, with passages whole of which more bytes would be shown than they have."""
    if compressed.extractive:
        return compressed
    by_id = {one.passage.id: one for one in retrieval.passages}
    kept = compressed.kept
    excerpts = []
    for excerpt in compressed.excerpts:
        whole = by_id[excerpt.passage.id]
        if _bytes(excerpt) <= len(_utf8(excerpt.passage.text)):
            excerpts.append(excerpt)
            continue
        kept += len(set(whole.sentences) - set(excerpt.sentences))
        excerpts.append(Excerpt(passage=whole.passage, sentences=whole.sentences))
    return replace(compressed, excerpts=tuple(excerpts), kept=kept)


def _bytes(excerpt: Excerpt) -> int:
    """Of what is shown, without marks of omission; space between sentences that are neighbours is shown, too."""
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


def _told(compressed: Compressed, retrieval: Retrieval) -> str:
    """How much of the passages was shown, for a reader of the answer."""
    passages = f"{len(compressed.excerpts)} of {len(retrieval.passages)} passages"
    sentences = f"{compressed.kept} of {compressed.sentences} sentences"
    length = _characters(compressed.excerpts) / _there(retrieval.passages)
    if compressed.extractive:
        return (
            f"The model was shown {length:.0%} of the text, of {passages}, with {sentences} whole."
        )
    return (
        f"The model was shown summaries by {compressed.compressor}: quotes were checked against the "
        f"passages. With {sentences} that were left whole, it was {length:.0%} as long as the text, of {passages}."
    )


def _there(passages: tuple[Retrieved, ...]) -> int:
    return sum(s.end - s.start for one in passages for s in one.sentences) or 1


def _characters(excerpts: tuple[Excerpt, ...]) -> int:
    sentences = sum(s.end - s.start for one in excerpts for s in one.sentences)
    return sentences + sum(len(one.summary or "") for one in excerpts)
