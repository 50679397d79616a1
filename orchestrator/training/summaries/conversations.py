"""Holds the conversations that a data set needs, and keeps every reply before the next is awaited."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from orchestrator.training.paid.calls import OWN_FAULT, Buyer, Purchase, buy_all
from orchestrator.training.summaries.rows import Replied, RunFile
from orchestrator.training.summaries.shortener import Shortened, Shortener
from posology.llm.memo import call_key
from posology.types import Call, Completion, Passage


class _Unanswered(Exception):
    """A run has no reply to a call."""


class Maker:
    """Shortens passages, several at once, each by a conversation of its own.

    Args:
        shortener: how.
        purchase: how it is paid for.
        run: keeps what was replied; a call that it has a reply to is not made.
        tell: is told how many passages are done.
    """

    def __init__(
        self,
        *,
        shortener: Shortener,
        purchase: Purchase,
        run: RunFile,
        tell: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._shortener = shortener
        self._purchase = purchase
        self._run = run
        self._tell = tell

    async def __call__(self, passages: Sequence[Passage]) -> None:
        """Shorten until all is done. What one call alone is refused for is written down, and the others go on.

        Raises:
            PosologyError: what would stop every call, such as a budget that is spent. What was under way
                has ended and is kept.
        """
        buyer = Buyer(self._purchase, spent=self._run.content.spent, failed=self._run.write)

        async def shorten(passage: Passage) -> None:
            with suppress(*OWN_FAULT):
                await self._shortener(passage, partial(self._complete, buyer, passage))
            self._tell(1)

        await buy_all(shorten, passages, at_once=self._purchase.at_once)

    async def _complete(self, buyer: Buyer, passage: Passage, call: Call) -> Completion:
        """The reply that a call has already; else one that is paid for, and kept."""
        key = call_key(call)
        known = self._run.content.replies.get(key)
        if known is not None:
            return _completion(known)
        bought = await buyer(call)
        completion = bought.completion
        # a few bytes; the loop waits for the disk, since a reply is lost to whoever is killed before
        self._run.write(
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
    """What became of a passage by the replies that a run has; ``None`` where they do not end its conversation."""

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
