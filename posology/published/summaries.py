"""What making a summarization model takes and gives, as JSON."""

from __future__ import annotations

from posology.published.answers import Dollars, Published
from posology.published.money import BalanceOutput


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
