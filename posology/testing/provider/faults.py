"""A provider's bad days: faults drawn by chance, the same ones for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from posology.testing.provider.echo import texts_of
from posology.testing.provider.steps import Broken, Cut, Recorded, Reply, Status, Step
from posology.types import Usage

#: characters a token has, about
_CHARACTERS = 4
_HALF = 0.5
_BREAKS: Final[tuple[Literal["cut", "end", "error"], ...]] = ("cut", "end", "error")


@dataclass(frozen=True, kw_only=True, slots=True)
class Faults:
    """How often what goes wrong; each share is of all requests, and together they are at most 1."""

    #: seconds until a reply, drawn uniformly between the two
    latency: tuple[float, float] = (0.0, 0.0)
    #: share that gets a 429
    rate_limited: float = 0.0
    #: seconds, which each 429 asks the client to wait
    retry_after: float = 0.1
    #: share that gets a 500
    errors: float = 0.0
    #: share whose connection is cut
    cuts: float = 0.0
    #: share that gets an error in a reply of status 200: by turns a 429, and a 502 of unknown billing
    errors_within: float = 0.0
    #: share whose reply says 0 for every count of tokens; it is billed as any other
    zero_usage: float = 0.0
    #: share of streams that break off in the middle: by turns the connection, the body, and by an error
    breaks: float = 0.0
    #: share of the cut ones that the provider finishes before, and bills: half of these lose the
    #: whole reply, half the end of it
    cuts_after_work: float = 0.5

    def __post_init__(self) -> None:
        low, high = self.latency
        if not 0 <= low <= high:
            raise ValueError("latency is two numbers of seconds, the smaller one first")
        shares = (
            self.rate_limited, self.errors, self.cuts, self.errors_within, self.zero_usage, self.breaks
        )  # fmt: skip
        if min(shares) < 0 or sum(shares) > 1 or not 0 <= self.cuts_after_work <= 1:
            raise ValueError("each share is between 0 and 1, and so is the sum of the faults'")


class Chance:
    """Says what to do with each request: a function from a request to its step.

    The n-th request meets the same fate in every run with the same seed, but concurrent clients do
    not arrive in the same order.

    Args:
        faults: how often what goes wrong.
        reply: from a request's body to the text of the reply.
        usage: from a request's body and the text of the reply to the tokens that are billed.
        seed: of the draws.
    """

    def __init__(
        self,
        faults: Faults,
        *,
        reply: Callable[[Any], str],
        usage: Callable[[Any, str], Usage] | None = None,
        seed: int = 0,
    ) -> None:
        self._faults = faults
        self._reply = reply
        self._usage = usage or estimate
        self._random = random.Random(seed)  # noqa: S311 - faults, not secrets

    def __call__(self, _request: Recorded) -> Step:
        """Draw a step."""
        faults = self._faults
        # as many draws whatever comes of them, so that one fate does not move all later ones
        fate, detail, between = (self._random.random() for _ in range(3))
        low, high = faults.latency
        reply = Reply(text=self._reply, usage=self._usage, latency=low + (high - low) * between)
        if fate < faults.rate_limited:
            return Status(code=429, headers={"retry-after": f"{faults.retry_after:g}"})
        fate -= faults.rate_limited
        if fate < faults.errors:
            return Status(code=500)
        fate -= faults.errors
        if fate < faults.errors_within:
            wait = {"retry-after": f"{faults.retry_after:g}"}
            return Status(code=429 if detail < _HALF else 502, within=True, headers=wait)
        fate -= faults.errors_within
        if fate < faults.zero_usage:
            return replace(reply, zeros=True)
        fate -= faults.zero_usage
        if fate < faults.breaks:
            return Broken(of=reply, by=_BREAKS[int(detail * len(_BREAKS))])
        fate -= faults.breaks
        if fate >= faults.cuts:
            return reply
        if detail >= faults.cuts_after_work:
            return Cut()
        return Cut(of=reply, after_bytes=None if detail < faults.cuts_after_work / 2 else 40)


def estimate(asked: Any, text: str) -> Usage:
    """Tokens from lengths: different for different requests, so that sums can be compared."""
    messages = asked.get("messages", ()) if isinstance(asked, dict) else ()
    system = asked.get("system", "") if isinstance(asked, dict) else ""
    texts = [text for m in messages for text in texts_of(m.get("content"))]
    length = sum(map(len, [*texts_of(system), *texts]))
    return Usage(input=1 + length // _CHARACTERS, output=1 + len(text) // _CHARACTERS)
