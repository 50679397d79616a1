"""What policies learned, and what feedback changes of it, as JSON."""

from __future__ import annotations

from datetime import datetime

from posology.published.base import Published


class QStateOutput(Published):
    """One state of a Q-table."""

    state: int
    """from 0"""
    keep: float
    """share of the sentences that is kept whole in it; 1: nothing is compressed"""
    fallback: bool
    """whether that is the stated default, since an action was tried too rarely"""
    values: tuple[float | None, ...]
    """mean reward of each action; null: never tried"""
    visits: tuple[int, ...]
    """rewards behind each"""
    population: float
    """share of all rewards that came in it"""


class QActionOutput(Published):
    """One action of a Q-table."""

    keep: float
    states: int
    """in how many states it is chosen"""
    population: float
    """share of all rewards that came in those"""


class QTableOutput(Published):
    """A Q-table: what ``posology policy show --json`` prints."""

    digest: str
    """identity of its content"""
    parent: str | None
    """digest of the table from which it came by feedback; null: it was trained"""
    created: datetime
    kind: str
    """what a state is: difference, cosine or concatenation"""
    alpha: float
    """weight of quality in a reward"""
    embedder: str
    compressor: str
    model: str
    k: int
    """passages that were retrieved for a question"""
    prompts: dict[str, str]
    """digest of each prompt"""
    data: str
    """digest of the questions"""
    least_visits: int
    """rewards that each action of a state must have"""
    fallback: float
    """share that is kept where it has not"""
    rewards: int
    """all that came"""
    differs: tuple[str, ...]
    """in what the model and the prompts that are set up here are not those that it learned from"""
    states: tuple[QStateOutput, ...]
    actions: tuple[QActionOutput, ...]


class ChangedStateOutput(Published):
    """A state of a Q-table to which feedback came."""

    state: int
    rewards: int
    """that came"""
    keep_before: float
    """share of the sentences that is kept whole"""
    keep_after: float


class PromotionOutput(Published):
    """What feedback changes of a Q-table: what ``posology policy promote --json`` prints."""

    tenant: str
    """whose feedback it is"""
    before: str
    """digest of the table"""
    after: str | None
    """digest of the new one; null: no feedback came, and none was made"""
    rewards: int
    """that came"""
    left_out: int
    """rewards of what is no state or no action of the table, such as a share that money stepped down to"""
    states: tuple[ChangedStateOutput, ...]
    """those to which feedback came"""
