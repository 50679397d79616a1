"""What :mod:`evals.money.overshoot` asks a provider for, and the provider's own books."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass
from decimal import Decimal

from posology.budget.prices.book import packaged
from posology.testing import Cut, Recorded, Reply, Step
from posology.types import Usage

CALLS = 64
CAP = Decimal("0.45")
#: seconds until a reply
LATENCY = 0.7
#: attempts a call
ATTEMPTS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Story:
    """What the calls ask for, and what becomes of them."""

    name: str
    model: str = "gpt-4o"
    #: of the prompt
    word: str = " data"
    input: int = 1_000
    output: int = 1_500
    max_tokens: int = 1_500
    #: every so many requests are done and billed, and their replies lost; 0: none
    lost: int = 0

    @property
    def cost(self) -> Decimal:
        """Dollars that one request is billed at."""
        billed = packaged().cost(f"openai:{self.model}", self.usage)
        assert billed is not None
        return billed

    @property
    def usage(self) -> Usage:
        """Tokens of one request."""
        return Usage(input=self.input, output=self.output)

    @property
    def prompt(self) -> str:
        """The one message of a call."""
        return self.word * self.input


STORIES = (
    Story(name="full"),
    Story(name="short", output=150),
    Story(name="lost", lost=4),
    Story(name="long", model="gpt-5.6-luna", word=" a", input=300_000, output=100, max_tokens=100),
)


class Books:
    """A provider's: what it was asked, and what it bills."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset(STORIES[0])

    def reset(self, story: Story) -> None:
        """Begin anew."""
        with self._lock:
            self._story = story
            self._numbers = itertools.count(1)
            self.requests = 0

    def answer(self, _request: Recorded) -> Step:
        """Do the work, and enter it."""
        with self._lock:
            number = next(self._numbers)
            self.requests = number
            story = self._story
        reply = Reply(text="Yes.", usage=story.usage, latency=LATENCY)
        return Cut(of=reply) if story.lost and number % story.lost == 0 else reply


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What came of one run."""

    answered: int
    refused: int
    #: calls that failed for another reason
    failed: int
    #: dollars that the side itself counts as spent; ``None``: unknown
    account: Decimal | None
    seconds: float
