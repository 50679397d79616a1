"""Text processing: sentences with exact offsets, verified quotes, refusals, tokens."""

from __future__ import annotations

from posology.text.quotes import Claimed, Dropped, DropReason, Span, Verified, locate, verify
from posology.text.refusals import is_refusal
from posology.text.sentences import split
from posology.text.tokens import approximate, wordpiece_counter

__all__ = [
    "Claimed",
    "DropReason",
    "Dropped",
    "Span",
    "Verified",
    "approximate",
    "is_refusal",
    "locate",
    "split",
    "verify",
    "wordpiece_counter",
]
