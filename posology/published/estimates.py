"""What questions will cost, and how far off that was, as JSON."""

from __future__ import annotations

from typing import Any

from posology.published.base import Dollars, Published
from posology.published.calls import ErrorBody
from posology.published.money import BalanceOutput


class StrategyEstimate(Published):
    """What one strategy costs for one question, or for all."""

    strategy: str
    questions: int
    calls: int
    """without repairs, at most"""
    input_tokens: int
    """of all calls, at best guess"""
    output_tokens: int
    """of all calls, at best guess"""
    low_usd: Dollars
    """when every reply is of a few words and no partition holds anything"""
    expected_usd: Dollars
    """at best guess"""
    worst_usd: Dollars
    """what is reserved when every reply needs a repair: with this as its cap nothing is refused, unless \
attempts fail"""
    repeated_usd: Dollars
    """the worst when every attempt fails, possibly billed, as often as is allowed"""
    largest_worst_usd: Dollars
    """the worst of a single question: what a cap for each of them must be"""


class QuestionEstimate(Published):
    """What one question costs."""

    row: int
    """place among the questions, from 0"""
    id: Any
    """the row's own ``id``, where it has one"""
    question: str
    model: str
    free: bool
    """the model costs nothing, by declaration; its estimates are 0"""
    passages: int
    """passages that were retrieved"""
    decided: str
    """the strategy that the policy decides for, or that was asked for"""
    strategies: tuple[StrategyEstimate, ...]


class BadQuestion(Published):
    """A row that cannot be estimated; the others can."""

    row: int
    id: Any
    error: ErrorBody


class ScopeEstimate(BalanceOutput):
    """What a tenant has left in one scope, and whether it is enough."""

    expected_fits: bool
    """whether the expected cost of what is decided is left"""
    worst_fits: bool
    """whether its worst is left"""


class StrategyAccuracy(Published):
    """How far off the estimates of one strategy were."""

    strategy: str
    questions: int
    """answered or refused, by this strategy, at a cost that is known"""
    estimated_usd: Dollars
    """what was expected of these"""
    actual_usd: Dollars
    """what they cost"""
    ratio: float | None
    """actual by expected, of the totals; null where nothing was expected"""
    p5: float | None
    """of the questions' own ratios"""
    p50: float | None
    p95: float | None
    within: float | None
    """share of the questions that cost no less than their low and no more than their worst"""
    over_worst: int
    """questions that cost more than their worst, although no attempt was repeated: must be 0"""
    repeated: int
    """questions of which an attempt was repeated"""
    unknown: int
    """questions with an attempt of unknown cost: not among the others"""


class Accuracy(Published):
    """Estimates beside what questions did cost."""

    strategies: tuple[StrategyAccuracy, ...]
    unanswered: int
    """rows without an answer: failed, cancelled, or no valid request"""
    other_index: int
    """rows that were answered from another index, or another version of it"""


class EstimateOutput(Published):
    """What ``posology estimate --json`` prints, and ``POST /v1/estimate`` answers."""

    questions: tuple[QuestionEstimate, ...]
    bad: tuple[BadQuestion, ...]
    totals: tuple[StrategyEstimate, ...]
    """if all questions were answered by one strategy, for each"""
    decided: StrategyEstimate | None
    """if each question is answered as is decided for it; null without questions"""
    balances: tuple[ScopeEstimate, ...] | None
    """null where no ledger is at hand"""
    accuracy: Accuracy | None
    """null unless answers were given to compare with"""
    attempts: int
    """at one call, at most"""
    history: int
    """the tenant's own calls of the last 30 days that replies were guessed by"""
    prices: str
    """which prices these are"""
    seconds: float
