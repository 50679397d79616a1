"""JSON output of `posology models`."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from posology.published.base import Published
from posology.types import Effort


class ModelOutput(Published):
    """One model: output of `posology models show --json`."""

    model: str
    """Name, as POSOLOGY_MODEL takes it."""
    known: bool
    """Whether the table of model families has it; if not, the safe defaults below hold."""
    reasoning: str
    """Whether it reasons before it replies: none, optional, always or unknown."""
    efforts: tuple[Effort, ...]
    """Levels of effort that it takes, lowest first."""
    default_effort: Effort | None
    """Level if a request names none; null: none, or unknown."""
    stages: dict[str, Effort | None]
    """Level that is sent in each stage with the present settings; null: none is sent."""
    reply_tokens: dict[str, int]
    """Bound on output tokens of a call in each stage, reasoning included."""
    temperature: str
    """When a request sets the temperature to 0: always, without reasoning or never."""
    context: int | None
    """Maximum tokens of input and output together; null: unknown."""
    output: int | None
    """Maximum output tokens; null: unknown."""
    tokenizer: str
    """How input tokens are bounded: openai, claude, newer, open or unknown. See the reference of models."""
    cache: str
    """Who writes prompts to a cache that bills writes: free, asked, declined or unknown."""
    tiers: tuple[str, ...]
    """Service tiers in which it is sold."""
    batch: bool
    """Whether the provider's batch endpoint takes it."""
    retires: date | None
    """Day on which the provider switches it off; null: none is announced."""
    input_usd_per_million: Decimal | None
    """Dollars per million input tokens of a short prompt; null: unknown."""
    output_usd_per_million: Decimal | None
    """Dollars per million output tokens; null: unknown."""
    priced: bool
    """Whether its calls can be reserved: without a price no call is made."""
    source: str
    """Source of what is known of it; empty: nothing is."""
    checked: date | None
    """When it was last compared with its source; null: never."""
    note: str
    """What is uncertain; empty: nothing."""
    measured: date | None
    """Day of the last `posology models check`; null: there was none, or its file was deleted."""
    measured_share: float | None
    """Largest share of the table's bound on input that was counted in a check; null: nothing was counted."""
    raised: float
    """Factor by which checks raised the table's bound on input; 1: not at all."""


class ModelList(Published):
    """Output of `posology models list --json`."""

    models: tuple[ModelOutput, ...]
    """Models of the price table that the table of model families has and that are not switched off, by provider and price."""


class ModelFinding(Published):
    """One finding of `posology models check`."""

    name: str
    """What was checked."""
    ok: bool | None
    """Whether it is as expected; null: not checked, or nothing can be concluded."""
    found: str
    """What was found."""


class CheckedCall(Published):
    """One call of `posology models check`."""

    name: str
    """Check that it was made for."""
    effort: Effort | None
    """Level of effort that was sent; null: none."""
    tokens_in: int | None
    """Input tokens; null: unknown."""
    tokens_out: int | None
    """Visible output tokens; null: unknown."""
    tokens_reasoning: int | None
    """Output tokens of reasoning; null: unknown."""
    input_bound: int
    """Input tokens that were reserved."""
    output_bound: int
    """Output tokens that were reserved, reasoning included."""
    cost_usd: Decimal | None
    """Cost in dollars; null: unknown."""
    seconds: float
    """Seconds from sending to the last byte."""
    error: str | None
    """Name of the error; null: it succeeded."""


class ModelCheck(Published):
    """Output of `posology models check --json`."""

    model: str
    """Name of the model."""
    ok: bool
    """Whether nothing is wrong."""
    findings: tuple[ModelFinding, ...]
    """All findings."""
    calls: tuple[CheckedCall, ...]
    """All calls, in order."""
    cost_usd: Decimal | None
    """Cost of all calls in dollars; null: that of a call is unknown."""
    charged_usd: Decimal
    """Dollars that count against limits: calls of unknown cost at their bounds."""
    seconds: float | None
    """Median duration of a call; null: none was made."""
