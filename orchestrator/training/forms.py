"""JSON output of the ``policy`` and ``compressor`` commands."""

from __future__ import annotations

from datetime import datetime

from posology.published.base import Dollars, Published
from posology.published.money import BalanceOutput


class QStateOutput(Published):
    """One state of a Q-table."""

    state: int
    """number of the state, from 0"""
    keep: float
    """share of the sentences kept whole; 1: no compression"""
    fallback: bool
    """whether the share is the fallback, because an action has too few rewards"""
    values: tuple[float | None, ...]
    """mean reward of each action; null: never tried"""
    visits: tuple[int, ...]
    """number of rewards of each action"""
    population: float
    """share of all rewards in this state"""


class QActionOutput(Published):
    """One action of a Q-table."""

    keep: float
    """share of the sentences kept whole"""
    states: int
    """number of states in which it is chosen"""
    population: float
    """share of all rewards in those states"""


class QTableOutput(Published):
    """A Q-table: output of ``posology policy show --json``."""

    digest: str
    """digest of the table"""
    parent: str | None
    """digest of the table that feedback was added to; null: the table was trained"""
    created: datetime
    kind: str
    """features of a state: difference, cosine or concatenation"""
    alpha: float
    """weight of quality in a reward"""
    embedder: str
    compressor: str
    model: str
    k: int
    """passages retrieved for a question"""
    prompts: dict[str, str]
    """digest of each prompt, by name"""
    data: str
    """digest of the questions"""
    least_visits: int
    """minimum rewards of each action of a state"""
    fallback: float
    """share kept in a state with fewer rewards"""
    rewards: int
    """number of all rewards"""
    differs: tuple[str, ...]
    """differences between the configured model and prompts and those of the training"""
    states: tuple[QStateOutput, ...]
    actions: tuple[QActionOutput, ...]


class ChangedStateOutput(Published):
    """A state of a Q-table with new feedback."""

    state: int
    rewards: int
    """number of new rewards"""
    keep_before: float
    """share of the sentences kept whole before"""
    keep_after: float
    """share of the sentences kept whole after"""


class PromotionOutput(Published):
    """Changes of a Q-table by feedback: output of ``posology policy promote --json``."""

    tenant: str
    """tenant that gave the feedback"""
    before: str
    """digest of the table"""
    after: str | None
    """digest of the new table; null: there was no feedback"""
    rewards: int
    """number of new rewards"""
    left_out: int
    """rewards without a state or action in the table, e.g. of a share that the budget stepped down to"""
    states: tuple[ChangedStateOutput, ...]
    """states with new feedback"""


class LeftOut(Published):
    """A line of the questions without a result."""

    line: int
    """number of the line, from 1"""
    reason: str


class TrainingEstimate(Published):
    """Cost estimate of a run over questions; calls that already have a reply are not included."""

    questions: int
    calls: int
    """distinct calls to make"""
    answered: int
    """calls that already have a reply"""
    free: bool
    """whether the model is declared free"""
    input_tokens: int
    """expected input tokens"""
    output_tokens: int
    """expected output tokens"""
    low_usd: Dollars
    """minimum: every reply has a few words"""
    expected_usd: Dollars
    """expected cost"""
    worst_usd: Dollars
    """maximum: every reply needs a repair"""
    spent_usd: Dollars
    """spent by the run so far"""
    cap_usd: Dollars | None
    """maximum cost of the run, earlier parts included; null: the tenant's limits alone"""
    balances: tuple[BalanceOutput, ...]
    """budgets of the tenant"""


class Explored(Published):
    """Means of one action over all questions."""

    keep: float
    """share of the sentences kept whole"""
    questions: int
    tokens: float
    """mean share of the context's tokens in the call"""
    quality: float
    """mean quality of the answers, 0 to 1"""


class TrainOutput(Published):
    """Output of ``posology policy train --json``."""

    estimate: TrainingEstimate | None
    """null: the table was computed from an earlier run"""
    run: str
    """file of the run"""
    out: str | None
    """file of the table; null: only planned"""
    learned: int
    """questions with grades"""
    left_out: tuple[LeftOut, ...]
    failed: int
    """calls without a usable reply"""
    spent_usd: Dollars
    """spent by the run, earlier parts included"""
    actions: tuple[Explored, ...]
    table: QTableOutput | None
    """null: only planned"""


class LabelOutput(Published):
    """Output of ``posology compressor label --json``."""

    estimate: TrainingEstimate
    out: str
    """file of the labels"""
    labelled: int
    """pairs of question and passage with a usable label"""
    empty: int
    """labelled pairs whose passage has no answer"""
    filtered: int
    """unclear replies: they neither cite a sentence nor state that there is no answer"""
    failed: int
    """calls without a usable reply"""
    left_out: tuple[LeftOut, ...]
    spent_usd: Dollars
    """spent on the file so far"""


class Loss(Published):
    """Losses of Provence (equation 1)."""

    pruning: float
    """mean cross-entropy of tokens, nats"""
    ranking: float
    """mean squared distance from the teacher's scores"""


class PrunerOutput(Published):
    """Output of ``posology compressor train --json``."""

    labels: str
    init: str
    out: str
    """folder of the model"""
    learned: int
    """training pairs of question and passage"""
    held: int
    """held-out pairs"""
    steps: int
    resumed_at: int
    """steps before this run"""
    first: Loss
    """mean of the first tenth of the steps"""
    last: Loss
    """mean of the last tenth of the steps"""
    held_before: Loss | None
    """of the held-out pairs before training; null: there are none"""
    held_after: Loss | None
    """of the held-out pairs after training; null: there are none"""
    seconds: float
    """seconds of this run"""


class DatasetEstimate(Published):
    """Cost estimate of a data set; passages that are done are not included."""

    passages: int
    """passages to shorten"""
    done: int
    """passages that are already done"""
    free: bool
    """whether the model is declared free"""
    input_tokens: int
    """expected input tokens"""
    output_tokens: int
    """expected output tokens"""
    low_usd: Dollars
    """minimum: every first reply fits"""
    expected_usd: Dollars
    """expected cost"""
    worst_usd: Dollars
    """maximum: no reply fits"""
    spent_usd: Dollars
    """spent by the run so far"""
    cap_usd: Dollars | None
    """maximum cost of the run, earlier parts included; null: the tenant's limits alone"""
    balances: tuple[BalanceOutput, ...]
    """budgets of the tenant"""


class LeftOutPassage(Published):
    """A passage without a summary in the data set."""

    id: str
    reason: str
    """never_fit (no reply had the right length and content), declined, failed or not_asked"""
    rounds: int
    """number of replies"""


class DatasetOutput(Published):
    """Output of ``posology compressor dataset --json``."""

    estimate: DatasetEstimate
    run: str
    """file of the run"""
    out: str | None
    """file of the data set; null: only planned"""
    share: float
    """target compression ratio (share of words kept)"""
    tolerance: float
    """accepted deviation, as a share of the passage's words"""
    train: int
    validation: int
    test: int
    mean_share: float | None
    """mean compression ratio; null: there is no summary"""
    mean_rounds: float | None
    """mean replies per summary; null: there is no summary"""
    first_sentence: float | None
    """share of summaries that begin with the passage's first sentence, as requested; null: there is no summary"""
    left_out: tuple[LeftOutPassage, ...]
    spent_usd: Dollars
    """spent by the run, earlier parts included"""


class FinetuneOutput(Published):
    """Output of ``posology compressor finetune --json``."""

    out: str
    """folder of the model"""
    share: float
    """target compression ratio (share of words kept)"""
    init: str
    """initial model"""
    losses: tuple[float, ...]
    """validation loss of each epoch, nats per token"""
    best: int
    """kept epoch, from 1"""
    test_loss: float | None
    """nats per token; null: there is no test set"""
    left: float | None
    """compression ratio on the test set; null: there is no test set"""
    seconds: float | None
    """seconds per summary; null: there is no test set"""
    device: str
