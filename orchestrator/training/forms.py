"""What training a Q-table takes and gives, as JSON."""

from __future__ import annotations

from datetime import datetime

from posology.published.base import Dollars, Published
from posology.published.money import BalanceOutput


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


class LabelOutput(Published):
    """What ``posology compressor label --json`` prints."""

    estimate: TrainingEstimate
    out: str
    """file of the labels"""
    labelled: int
    """pairs of question and passage with a label, of which a pruner learns"""
    empty: int
    """of those, pairs whose passage holds no answer"""
    filtered: int
    """replies that neither cite a sentence nor say that there is no answer"""
    failed: int
    """calls that no reply came of"""
    left_out: tuple[LeftOut, ...]
    spent_usd: Dollars
    """by the file, all that it spent before included"""


class Loss(Published):
    """What equation 1 of Provence came to."""

    pruning: float
    """mean cross-entropy of tokens, nats"""
    ranking: float
    """mean squared distance of scores to the teacher's"""


class PrunerOutput(Published):
    """What ``posology compressor train --json`` prints."""

    labels: str
    init: str
    out: str
    """folder of the model"""
    learned: int
    """pairs of question and passage"""
    held: int
    """pairs that were kept aside"""
    steps: int
    resumed_at: int
    """steps that an earlier run had made"""
    first: Loss
    """of the first tenth of the steps"""
    last: Loss
    """of the last tenth"""
    held_before: Loss | None
    """of what was kept aside; null: nothing was"""
    held_after: Loss | None
    seconds: float
    """of this run"""


class DatasetEstimate(Published):
    """What is to be paid for, before any of it is: passages that an earlier run is done with are not."""

    passages: int
    """to be shortened"""
    done: int
    """passages besides, which are done already"""
    free: bool
    """the model costs nothing, by declaration"""
    input_tokens: int
    """at best guess"""
    output_tokens: int
    """at best guess"""
    low_usd: Dollars
    """when every first reply fits"""
    expected_usd: Dollars
    """at best guess"""
    worst_usd: Dollars
    """what is reserved when no reply ever fits"""
    spent_usd: Dollars
    """by the run before now"""
    cap_usd: Dollars | None
    """for the run with all that it spent before; null: the tenant's limits alone"""
    balances: tuple[BalanceOutput, ...]
    """what the tenant has left"""


class LeftOutPassage(Published):
    """A passage that is not in the data set."""

    id: str
    reason: str
    """never_fit: no reply had the length, or said only what the passage says; declined; failed; not_asked"""
    rounds: int
    """replies that were read"""


class DatasetOutput(Published):
    """What ``posology compressor dataset --json`` prints."""

    estimate: DatasetEstimate
    run: str
    """file of all replies"""
    out: str | None
    """file of the data set; null: nothing was asked"""
    share: float
    """of the words, that summaries were to have"""
    tolerance: float
    """by how much of the passage's words they may be off"""
    train: int
    validation: int
    test: int
    mean_share: float | None
    """of the words, that they have on average; null: there is none"""
    mean_rounds: float | None
    """replies that each took on average; null: there is none"""
    first_sentence: float | None
    """share of them that begin with the passage's first sentence, as they were asked to; null: there is none"""
    left_out: tuple[LeftOutPassage, ...]
    spent_usd: Dollars
    """by the run, all that it spent before included"""


class FinetuneOutput(Published):
    """What ``posology compressor finetune --json`` prints."""

    out: str
    """folder of the model"""
    share: float
    """of the words, that its summaries are to have"""
    init: str
    """what it was made from"""
    losses: tuple[float, ...]
    """on the validation set, nats a token, an epoch each"""
    best: int
    """epoch that is kept, from 1"""
    test_loss: float | None
    """null: there is no test set"""
    left: float | None
    """share of the words that summaries of the test set have; null: there is none"""
    seconds: float | None
    """a summary; null: there is no test set"""
    device: str
