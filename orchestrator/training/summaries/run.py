"""A data set of passages and summaries: conversations with a model as a paid run, then the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from anyio import to_thread

from orchestrator.connections import Connections
from orchestrator.question.estimates.tokens import Counting, packaged_counter
from orchestrator.settings import Settings
from orchestrator.training.forms import DatasetEstimate, DatasetOutput, LeftOutPassage
from orchestrator.training.paid.calls import Buys
from orchestrator.training.paid.rows import Row
from orchestrator.training.paid.run import Costs, PaidRun, Quote
from orchestrator.training.summaries.pairs import Pair, split_of, write_pairs
from orchestrator.training.summaries.price import estimate
from orchestrator.training.summaries.rows import Begin, Replied, Replies, RunFile
from orchestrator.training.summaries.sample import Drawn, Wish, lot
from orchestrator.training.summaries.shortener import Ending, Shortened, Shortener
from posology.errors import ConfigurationError
from posology.llm.memo import call_key
from posology.llm.models.names import parse
from posology.text.sentences import split
from posology.types import Call, Completion, Passage, Tier
from prompts.template import digests

PROMPTS = ("shorten", "shorten_again")


class _Unanswered(Exception):
    """A run has no reply to a call."""


class Shortening(PaidRun[Replies, Passage]):
    """Shortens passages, each by its own conversation.

    Args:
        file: keeps the replies; a call with a reply in the file is not made.
        todo: passages without a complete conversation in the file.
        shortener: holds the conversations.
        begin: describes how passages are shortened.
    """

    def __init__(
        self, file: RunFile, todo: Sequence[Passage], shortener: Shortener, begin: Begin
    ) -> None:
        super().__init__(file, todo, model=shortener.model)
        self._shortener = shortener
        self._begin = begin

    def begin(self) -> Sequence[Row]:
        """Return the ``begin`` row if there are passages to shorten."""
        return (self._begin,) if self.todo else ()

    def kept(self, call: str) -> bool:
        """See :meth:`PaidRun.kept`."""
        return call in self.file.content.replies

    async def price(self, connections: Connections, settings: Settings, tier: Tier) -> Costs:
        """Estimate the missing conversations; see :meth:`PaidRun.price`."""
        counting = Counting(packaged_counter(), native_schema=settings.native_schema)

        def count() -> Costs:
            return estimate(
                self.todo,
                self._shortener,
                prices=connections.prices,
                bound=connections.bound,
                counting=counting,
                tier=tier,
            )

        return await to_thread.run_sync(count)

    async def ask(self, item: Passage, buyer: Buys) -> None:
        """Shorten a passage; keep each reply before the next call."""
        await self._shortener(item, partial(self._complete, buyer, item))

    async def _complete(self, buyer: Buys, passage: Passage, call: Call) -> Completion:
        """Return the reply in the file, or pay for one and keep it."""
        key = call_key(call)
        known = self.file.content.replies.get(key)
        if known is not None:
            return _completion(known)
        bought = await buyer(call)
        completion = bought.completion
        await self.file.keep(
            Replied(
                call=key,
                passage=passage.id,
                text=completion.text,
                finish=completion.finish,
                served_model=completion.served_model,
                cost=bought.cost,
            )
        )
        return completion


async def recalled(shortener: Shortener, passage: Passage, run: RunFile) -> Shortened | None:
    """Return the result for a passage by the replies in a file; ``None``: its conversation is not complete."""

    async def complete(call: Call) -> Completion:
        known = run.content.replies.get(call_key(call))
        if known is None:
            raise _Unanswered
        return _completion(known)

    try:
        return await shortener(passage, complete)
    except _Unanswered:
        return None


def _completion(known: Replied) -> Completion:
    return Completion(
        text=known.text, usage=None, finish=known.finish, served_model=known.served_model
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Passages to shorten, and how."""

    drawn: Drawn
    wish: Wish
    shortener: Shortener

    async def plan(self, file: RunFile) -> Shortening:
        """Find the passages without a complete conversation. Nothing is spent.

        Raises:
            ConfigurationError: the model is offline and cannot write summaries.
        """
        shortener = self.shortener
        if parse(shortener.model).provider == "offline":
            raise ConfigurationError(
                f"{shortener.model} only quotes; it cannot write summaries. Choose another model with --model."
            )
        done = [await recalled(shortener, one, file) for one in self.drawn.passages]
        todo = [one for one, found in zip(self.drawn.passages, done, strict=True) if found is None]
        begin = Begin(
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            model=shortener.model,
            share=shortener.share,
            tolerance=shortener.tolerance,
            rounds=shortener.rounds,
            seed=self.wish.seed,
            prompts=digests(PROMPTS),
        )
        return Shortening(file, todo, shortener, begin)


def dataset_estimate(wanted: Wanted, quote: Quote) -> DatasetEstimate:
    """Return the published form of a quote."""
    passages = quote.costs.calls
    return DatasetEstimate(
        passages=passages, done=len(wanted.drawn.passages) - passages, **quote.fields()
    )


async def conclude(
    wanted: Wanted, run: RunFile, estimate: DatasetEstimate, out: Path
) -> DatasetOutput:
    """Write the data set of the summaries that fit.

    Raises:
        BadFile: the data set cannot be written.
    """
    summaries: list[Shortened] = []
    left_out: list[LeftOutPassage] = []
    for passage in wanted.drawn.passages:
        one = await recalled(wanted.shortener, passage, run)
        if one is None:
            left_out.append(LeftOutPassage(id=passage.id, reason="failed", rounds=0))
        elif one.ending is Ending.FITS:
            summaries.append(one)
        else:
            left_out.append(
                LeftOutPassage(id=passage.id, reason=str(one.ending), rounds=one.rounds)
            )
    pairs = pairs_of(summaries, wanted.shortener, seed=wanted.wish.seed)
    write_pairs(pairs, out)
    return output(wanted, run, estimate, pairs=pairs, left_out=left_out, out=str(out))


def pairs_of(found: Sequence[Shortened], shortener: Shortener, *, seed: int) -> tuple[Pair, ...]:
    """Split summaries into a data set: 80 % training, 10 % validation, 10 % test, at random.

    Args:
        found: summaries that fit.
        shortener: that wrote them.
        seed: of the split.
    """
    # other lots than those of the sample: else all passages that a larger sample adds were test rows
    ordered = sorted(found, key=lambda one: lot(~seed, one.passage.id))
    return tuple(
        Pair(
            id=one.passage.id,
            split=split_of(place, len(ordered)),
            text=one.passage.text,
            summary=one.summary,
            share=shortener.share,
            rounds=one.rounds,
            model=shortener.model,
        )
        for place, one in enumerate(ordered)
    )


def output(
    wanted: Wanted,
    run: RunFile,
    estimate: DatasetEstimate,
    *,
    pairs: Sequence[Pair] = (),
    left_out: Sequence[LeftOutPassage] = (),
    out: str | None = None,
) -> DatasetOutput:
    """Return the published form; without pairs and file, that of a run that was only planned."""
    splits = [pair.split for pair in pairs]
    return DatasetOutput(
        estimate=estimate,
        run=str(run.path),
        out=out,
        share=wanted.shortener.share,
        tolerance=wanted.shortener.tolerance,
        train=splits.count("train"),
        validation=splits.count("validation"),
        test=splits.count("test"),
        mean_share=_mean([len(p.summary.split()) / len(p.text.split()) for p in pairs]),
        mean_rounds=_mean([pair.rounds for pair in pairs]),
        first_sentence=_mean([_begins(pair) for pair in pairs]),
        left_out=tuple(left_out),
        spent_usd=run.content.spent,
    )


def _begins(pair: Pair) -> bool:
    """Return whether a summary begins with the first sentence of its passage."""
    first = split(pair.text)[0].of(pair.text)
    return " ".join(pair.summary.split()).startswith(" ".join(first.split()))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
