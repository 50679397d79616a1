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
    Level,
    Refusal,
    Resolution,
    Rung,
    Side,
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
from posology.types.compression import Compressed, Compression, Saving
from posology.types.decisions import DECLINE, Decision, Dose, Offer, Situation
from posology.types.jobs import TRANSITIONS, JobState
from posology.types.literature import (
    MODES,
    Encoded,
    EncodedQuery,
    Excerpt,
    Filters,
    Folded,
    Form,
    Hit,
    Mode,
    Option,
    Passage,
    Phrases,
    Query,
    Ranking,
    Retrieval,
    Retrieved,
    SameAs,
    Sentence,
    TokenCodes,
    TokenVectors,
)
from posology.types.money import Balance, Limits, Reservation, Scope, Taken
from posology.types.partitions import Extract, Extraction, Failure, Finding, Partition, Reduction

__all__ = [
    "DECLINE",
    "MODES",
    "TRANSITIONS",
    "Answer",
    "Attempt",
    "Balance",
    "Call",
    "Citation",
    "Completion",
    "Compressed",
    "Compression",
    "Conflict",
    "Coverage",
    "Decision",
    "Dose",
    "Encoded",
    "EncodedQuery",
    "Excerpt",
    "Extract",
    "Extraction",
    "Failure",
    "Filters",
    "Finding",
    "Finish",
    "Folded",
    "Form",
    "Hit",
    "JobState",
    "Level",
    "Limits",
    "Message",
    "Mode",
    "Offer",
    "Opening",
    "Option",
    "Outcome",
    "Partition",
    "Passage",
    "Phrases",
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
    "Rung",
    "SameAs",
    "Saving",
    "Scope",
    "Sentence",
    "Side",
    "Situation",
    "Stage",
    "Taken",
    "Task",
    "TokenCodes",
    "TokenVectors",
    "Usage",
]
