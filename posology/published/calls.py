"""Model calls, what they cost, and errors, as JSON."""

from __future__ import annotations

from decimal import Decimal

from posology.published.base import Details, Dollars, Published
from posology.types import Effort, Outcome, PromptId, Served, Stage, Tier, Usage


class AttemptOutput(Published):
    """One attempt at one model call, successful or not."""

    id: str
    """Id of the attempt; the provider received it."""
    call: int
    """Number of the call within the run, from 1."""
    attempt: int
    """Number of the attempt within the call, from 1."""
    stage: Stage
    """Purpose of the call."""
    model: str
    """Model, as `provider:name`."""
    prompt: PromptId
    """Template of the messages."""
    outcome: Outcome
    """How the attempt ended; `lost`: its process died, billing status unknown."""
    error: str | None
    """Class of the error; null: the attempt succeeded."""
    usage: Usage | None
    """Tokens; null: unknown, so possibly billed."""
    cost: Dollars | None
    """Cost in dollars; null: unknown, because usage or price is."""
    started: float
    """Start, in POSIX seconds."""
    latency: float
    """Duration in seconds."""
    request_id: str | None
    """Id of the request at the provider; null: none was received."""
    strategy: str = ""
    """Strategy that made the call; empty: none."""
    input_bound: int = 0
    """Maximum input tokens."""
    max_tokens: int = 0
    """Maximum output tokens."""
    reserved: Dollars = Decimal(0)
    """Dollars that were reserved: the maximum cost."""
    prices: str = ""
    """Version of the prices."""
    tier: Tier = "standard"
    """Service tier that it was sent in."""
    effort: Effort | None = None
    """Level of reasoning effort that it asked for; null: none."""
    served: Served | None = None
    """Service tier that it is billed at, as the reply names it; null: no reply named one."""

    @property
    def charged(self) -> Decimal:
        """Dollars that count against limits: the cost, or the bound of an unknown cost."""
        return self.reserved if self.cost is None else self.cost


class Spending(Published):
    """Tokens and dollars of the model calls of a question."""

    attempts: tuple[AttemptOutput, ...]
    """All attempts, in order."""
    usage: Usage
    """Tokens of all attempts with known usage."""
    usage_complete: bool
    """Whether every attempt's usage is known; if not, an attempt may have been billed on top."""
    cost_usd: Dollars | None
    """Cost in dollars; null: usage or price of an attempt is unknown."""
    charged_usd: Dollars
    """Dollars that count against limits: unknown costs at their bounds."""

    @property
    def calls(self) -> int:
        """Number of model calls, each counted once however often it was tried."""
        return len({attempt.call for attempt in self.attempts})


class ErrorBody(Published):
    """An error as data."""

    type: str
    """Class of the error."""
    message: str
    """What is wrong, and what to do."""
    exit_code: int
    """Exit status of the command line for this error."""
    details: Details
    """Fields of the error."""
    spending: Spending | None
    """Spending until the error; null: the work had not begun to spend."""


class ErrorOutput(Published):
    """The output of any command with `--json` that fails."""

    error: ErrorBody
    """The error."""
