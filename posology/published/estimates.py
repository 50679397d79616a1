"""JSON forms of cost estimates and their accuracy."""

from __future__ import annotations

from typing import Any

from posology.published.base import Dollars, Published
from posology.published.calls import ErrorBody
from posology.published.money import BalanceOutput
from posology.types import Lane


class StrategyEstimate(Published):
    """Estimated cost of one strategy, for one question or for all."""

    strategy: str
    """Name of the strategy."""
    questions: int
    """Number of questions."""
    calls: int
    """Maximum number of model calls, without repairs."""
    input_tokens: int
    """Expected input tokens of all calls."""
    output_tokens: int
    """Expected output tokens of all calls."""
    low_usd: Dollars
    """Low estimate in dollars: every reply is a few words and no partition has findings."""
    expected_usd: Dollars
    """Expected cost in dollars."""
    worst_usd: Dollars
    """Worst case in dollars: every reply needs a repair. With this cap no call is refused unless attempts fail."""
    repeated_usd: Dollars
    """Worst case in dollars if every attempt fails, possibly billed, as often as is allowed."""
    largest_worst_usd: Dollars
    """Largest worst case of a single question in dollars: the cap that each question needs."""


class QuestionEstimate(Published):
    """Estimated cost of one question."""

    row: int
    """Row of the question, from 0."""
    id: Any
    """The row's own `id`; null: it has none."""
    question: str
    """The question."""
    model: str
    """Model, as `provider:name`."""
    free: bool
    """Whether the model is declared free; its estimates are then 0."""
    passages: int
    """Number of retrieved passages."""
    decided: str
    """Strategy that was requested, or that the policy chooses."""
    strategies: tuple[StrategyEstimate, ...]
    """Estimate for each strategy."""


class BadQuestion(Published):
    """A row that cannot be estimated; the others can."""

    row: int
    """Number of the row, from 0."""
    id: Any
    """The row's own `id`; null: it has none."""
    error: ErrorBody
    """Why it cannot be estimated."""


class ScopeEstimate(BalanceOutput):
    """Remaining budget of a tenant in one scope, and whether it is enough."""

    expected_fits: bool
    """Whether the remaining budget covers the expected cost of the chosen strategies."""
    worst_fits: bool
    """Whether the remaining budget covers their worst case."""


class StrategyAccuracy(Published):
    """Estimates of one strategy compared with actual costs."""

    strategy: str
    """Name of the strategy."""
    questions: int
    """Number of questions that this strategy answered or refused, at a known cost."""
    estimated_usd: Dollars
    """Expected cost of these questions, in dollars."""
    actual_usd: Dollars
    """Actual cost of these questions, in dollars."""
    ratio: float | None
    """Actual total divided by expected total; null: nothing was expected."""
    p5: float | None
    """5th percentile of the ratios of single questions; null: there are none."""
    p50: float | None
    """Median of the ratios of single questions; null: there are none."""
    p95: float | None
    """95th percentile of the ratios of single questions; null: there are none."""
    within: float | None
    """Share of questions with a cost between their low estimate and their worst case; null: there are none."""
    over_worst: int
    """Number of questions above their worst case although no attempt was repeated: must be 0."""
    repeated: int
    """Number of questions with a repeated attempt."""
    unknown: int
    """Number of questions with an attempt of unknown cost; they are not counted above."""


class Accuracy(Published):
    """Estimates compared with actual costs."""

    strategies: tuple[StrategyAccuracy, ...]
    """Accuracy of each strategy."""
    unanswered: int
    """Number of rows without an answer: failed, cancelled or invalid."""
    other_index: int
    """Number of rows that were answered from another index or index version."""


class LaneEstimate(Published):
    """Total of the chosen strategies in one service tier."""

    tier: Lane
    """Service tier."""
    expected_usd: Dollars
    """Expected cost in dollars."""
    worst_usd: Dollars
    """Worst case in dollars; in flex and in batch-then-standard at the standard price."""
    waves: int | None = None
    """Batches, one after another, that the longest question takes without repairs; null: none are used."""
    latest_seconds: float | None
    """Seconds after which the provider ends the last of these batches, 24 hours each; null: it promises none."""


class EstimateOutput(Published):
    """Estimated costs: the output of `posology estimate --json` and of `POST /v1/estimate`."""

    questions: tuple[QuestionEstimate, ...]
    """Estimate of each question."""
    bad: tuple[BadQuestion, ...]
    """Rows that cannot be estimated."""
    totals: tuple[StrategyEstimate, ...]
    """Totals for each strategy, if it answered all questions."""
    decided: StrategyEstimate | None
    """Total if each question is answered by its chosen strategy; null: there are no questions."""
    lanes: tuple[LaneEstimate, ...] = ()
    """The same total in each service tier that all models are sold in; empty: there is no choice."""
    balances: tuple[ScopeEstimate, ...] | None
    """Remaining budget in each scope; null: no ledger is available."""
    accuracy: Accuracy | None
    """Comparison with actual costs; null: no answers were given to compare with."""
    attempts: int
    """Maximum attempts at one call."""
    history: int
    """Number of the tenant's calls in the last 30 days that reply lengths were estimated from."""
    prices: str
    """Version of the prices."""
    seconds: float
    """Duration in seconds."""
