"""What training a Q-table takes and gives, as JSON."""

from __future__ import annotations

from posology.published.answers import Dollars, Published
from posology.published.money import BalanceOutput
from posology.published.policies import QTableOutput


class LeftOut(Published):
    """A line of the questions that nothing was learned from."""

    line: int
    """from 1"""
    reason: str


class TrainingEstimate(Published):
    """What is to be paid for, before any of it is: calls that an earlier run was answered are not."""

    questions: int
    calls: int
    """of different content: what two actions show alike is asked once"""
    answered: int
    """calls besides, which are answered already"""
    free: bool
    """the model costs nothing, by declaration"""
    input_tokens: int
    """at best guess"""
    output_tokens: int
    """at best guess"""
    low_usd: Dollars
    """when every reply is of a few words"""
    expected_usd: Dollars
    """at best guess"""
    worst_usd: Dollars
    """what is reserved when every reply needs a repair"""
    spent_usd: Dollars
    """by the run before now"""
    cap_usd: Dollars | None
    """for the run with all that it spent before; null: the tenant's limits alone"""
    balances: tuple[BalanceOutput, ...]
    """what the tenant has left"""


class Explored(Published):
    """What one action came to, all questions taken together."""

    keep: float
    """share of the sentences that was kept whole"""
    questions: int
    tokens: float
    """share of the context's tokens that was shown, on average"""
    quality: float
    """of the answers, 0 to 1, on average"""


class TrainOutput(Published):
    """What ``posology policy train --json`` prints."""

    estimate: TrainingEstimate | None
    """null: the table is made of an earlier run, and nothing is asked"""
    run: str
    """file of all answers"""
    out: str | None
    """file of the table; null: none was made"""
    learned: int
    """questions"""
    left_out: tuple[LeftOut, ...]
    failed: int
    """calls that no answer came of"""
    spent_usd: Dollars
    """by the run, all that it spent before included"""
    actions: tuple[Explored, ...]
    table: QTableOutput | None
    """null: none was made"""
