"""JSON output of the ``policy`` and ``compressor`` commands."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from posology.described import published
from posology.published.base import Dollars, Published
from posology.published.money import RunCost

#: service tiers that a run can be bought in
RunTier: TypeAlias = Literal["standard", "batch"]


class QStateOutput(Published):
    """One state of a Q-table."""

    state: int
    """Number of the state, from 0."""
    keep: float
    """Share of the sentences kept whole; 1: no compression."""
    fallback: bool
    """Whether the share is the fallback, because an action has too few rewards."""
    values: tuple[float | None, ...]
    """Mean reward of each action; null: never tried."""
    visits: tuple[int, ...]
    """Number of rewards of each action."""
    population: float
    """Share of all rewards in this state."""


class QActionOutput(Published):
    """One action of a Q-table."""

    keep: float
    """Share of the sentences kept whole."""
    states: int
    """Number of states in which it is chosen."""
    population: float
    """Share of all rewards in those states."""


class QTableOutput(Published):
    """A Q-table: output of ``posology policy show --json``."""

    digest: str
    """Digest of the table."""
    parent: str | None
    """Digest of the table that feedback was added to; null: the table was trained."""
    created: datetime
    kind: str
    """Features of a state: difference, cosine or concatenation."""
    alpha: float
    """Weight of quality in a reward."""
    embedder: str
    compressor: str
    model: str
    k: int
    """Passages retrieved for a question."""
    prompts: dict[str, str]
    """Digest of each prompt, by name."""
    data: str
    """Digest of the questions."""
    least_visits: int
    """Minimum rewards of each action of a state."""
    fallback: float
    """Share kept in a state with fewer rewards."""
    rewards: int
    """Number of all rewards."""
    differs: tuple[str, ...]
    """Differences between the configured model and prompts and those of the training."""
    states: tuple[QStateOutput, ...]
    actions: tuple[QActionOutput, ...]


class ChangedStateOutput(Published):
    """A state of a Q-table with new feedback."""

    state: int
    rewards: int
    """Number of new rewards."""
    keep_before: float
    """Share of the sentences kept whole before."""
    keep_after: float
    """Share of the sentences kept whole after."""


class PromotionOutput(Published):
    """Changes of a Q-table by feedback: output of ``posology policy promote --json``."""

    tenant: str
    """Tenant that gave the feedback."""
    before: str
    """Digest of the table."""
    after: str | None
    """Digest of the new table; null: there was no feedback."""
    rewards: int
    """Number of new rewards."""
    left_out: int
    """Rewards without a state or action in the table, e.g. of a share that the budget stepped down to."""
    states: tuple[ChangedStateOutput, ...]
    """States with new feedback."""


class LeftOut(Published):
    """A line of the questions without a result."""

    line: int
    """Number of the line, from 1."""
    reason: str


class _Questions(Published):
    """Size of a run over questions."""

    questions: int
    calls: int
    """Distinct calls to make."""
    answered: int
    """Calls that already have a reply."""


class TrainingEstimate(RunCost, _Questions):
    """Cost estimate of a run over questions; calls that already have a reply are not included."""


class Explored(Published):
    """Means of one action over all questions."""

    keep: float
    """Share of the sentences kept whole."""
    questions: int
    tokens: float
    """Mean share of the context's tokens in the call."""
    quality: float
    """Mean quality of the answers, 0 to 1."""


class TrainOutput(Published):
    """Output of ``posology policy train --json``."""

    estimate: TrainingEstimate | None
    """Null: the table was computed from an earlier run."""
    run: str
    """File of the run."""
    out: str | None
    """File of the table; null: only planned."""
    learned: int
    """Questions with grades."""
    left_out: tuple[LeftOut, ...]
    failed: int
    """Calls without a usable reply."""
    spent_usd: Dollars
    """Spent by the run, earlier parts included."""
    actions: tuple[Explored, ...]
    table: QTableOutput | None
    """Null: only planned."""


class LabelOutput(Published):
    """Output of ``posology compressor label --json``."""

    estimate: TrainingEstimate
    out: str
    """File of the labels."""
    labelled: int
    """Pairs of question and passage with a usable label."""
    empty: int
    """Labelled pairs whose passage has no answer."""
    filtered: int
    """Unclear replies: they neither cite a sentence nor state that there is no answer."""
    failed: int
    """Calls without a usable reply."""
    left_out: tuple[LeftOut, ...]
    spent_usd: Dollars
    """Spent on the file so far."""


@published("Loss")
@dataclass(frozen=True, kw_only=True, slots=True)
class Losses:
    """Losses of Provence (equation 1)."""

    pruning: float
    """Mean cross-entropy of tokens, nats."""
    ranking: float
    """Mean squared distance from the teacher's scores."""

    def total(self, weight: float) -> float:
        """Return the loss of equation 1."""
        return self.pruning + weight * self.ranking


class PrunerOutput(Published):
    """Output of ``posology compressor train --json``."""

    labels: str
    init: str
    out: str
    """Folder of the model."""
    learned: int
    """Training pairs of question and passage."""
    held: int
    """Held-out pairs."""
    steps: int
    resumed_at: int
    """Steps before this run."""
    first: Losses
    """Mean of the first tenth of the steps."""
    last: Losses
    """Mean of the last tenth of the steps."""
    held_before: Losses | None
    """Of the held-out pairs before training; null: there are none."""
    held_after: Losses | None
    """Of the held-out pairs after training; null: there are none."""
    seconds: float
    """Seconds of this run."""


class _Passages(Published):
    """Size of a run over passages."""

    passages: int
    """Passages to shorten."""
    done: int
    """Passages that are already done."""


class DatasetEstimate(RunCost, _Passages):
    """Cost estimate of a data set; passages that are done are not included."""

    low_usd: Dollars
    """Minimum: every first reply fits."""
    worst_usd: Dollars
    """Maximum: no reply fits."""


class LeftOutPassage(Published):
    """A passage without a summary in the data set."""

    id: str
    reason: str
    """Never_fit (no reply had the right length and content), declined, failed or not_asked."""
    rounds: int
    """Number of replies."""


class DatasetOutput(Published):
    """Output of ``posology compressor dataset --json``."""

    estimate: DatasetEstimate
    run: str
    """File of the run."""
    out: str | None
    """File of the data set; null: only planned."""
    share: float
    """Target compression ratio (share of words kept)."""
    tolerance: float
    """Accepted deviation, as a share of the passage's words."""
    train: int
    validation: int
    test: int
    mean_share: float | None
    """Mean compression ratio; null: there is no summary."""
    mean_rounds: float | None
    """Mean replies per summary; null: there is no summary."""
    first_sentence: float | None
    """Share of summaries that begin with the passage's first sentence, as requested; null: there is no summary."""
    left_out: tuple[LeftOutPassage, ...]
    spent_usd: Dollars
    """Spent by the run, earlier parts included."""


class FinetuneOutput(Published):
    """Output of ``posology compressor finetune --json``."""

    out: str
    """Folder of the model."""
    share: float
    """Target compression ratio (share of words kept)."""
    init: str
    """Initial model."""
    losses: tuple[float, ...]
    """Validation loss of each epoch, nats per token."""
    best: int
    """Kept epoch, from 1."""
    test_loss: float | None
    """Nats per token; null: there is no test set."""
    left: float | None
    """Compression ratio on the test set; null: there is no test set."""
    seconds: float | None
    """Seconds per summary; null: there is no test set."""
    device: str
