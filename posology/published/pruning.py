"""What labelling for a pruner and training it give, as JSON."""

from __future__ import annotations

from posology.published.answers import Dollars, Published
from posology.published.training import LeftOut, TrainingEstimate


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
