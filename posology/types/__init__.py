"""The values that flow through Posology.

Every value is a frozen, keyword-only dataclass without behaviour beyond its own arithmetic.
Offsets are code points into :attr:`Passage.text`; money is :class:`decimal.Decimal` US dollars;
times are seconds. ``None`` always means *unknown*, never zero.

This module imports nothing heavy: every other module of the system may import it freely.
"""

from __future__ import annotations

from posology.types.answers import (
    Answer,
    Citation,
    Conflict,
    Coverage,
    Decision,
    Level,
    Refusal,
    Resolution,
    Side,
    Situation,
    Task,
)
from posology.types.calls import (
    Attempt,
    Call,
    Completion,
    Finish,
    Message,
    Opening,
    Outcome,
    PromptId,
    Role,
    Stage,
    Usage,
)
from posology.types.jobs import TRANSITIONS, JobState
from posology.types.literature import (
    Encoded,
    Excerpt,
    Form,
    Hit,
    Option,
    Passage,
    Query,
    Ranking,
    Retrieval,
    Retrieved,
    Sentence,
    TokenVectors,
)
from posology.types.money import Balance, Limits, Reservation, Scope, Taken
from posology.types.partitions import (
    Extract,
    Extraction,
    Failure,
    Finding,
    Partition,
    Reduction,
)

__all__ = [
    "TRANSITIONS",
    "Answer",
    "Attempt",
    "Balance",
    "Call",
    "Citation",
    "Completion",
    "Conflict",
    "Coverage",
    "Decision",
    "Encoded",
    "Excerpt",
    "Extract",
    "Extraction",
    "Failure",
    "Finding",
    "Finish",
    "Form",
    "Hit",
    "JobState",
    "Level",
    "Limits",
    "Message",
    "Opening",
    "Option",
    "Outcome",
    "Partition",
    "Passage",
    "PromptId",
    "Query",
    "Ranking",
    "Reduction",
    "Refusal",
    "Reservation",
    "Resolution",
    "Retrieval",
    "Retrieved",
    "Role",
    "Scope",
    "Sentence",
    "Side",
    "Situation",
    "Stage",
    "Taken",
    "Task",
    "TokenVectors",
    "Usage",
]
