"""JSON output of ``posology policy calibrate``, and of ``posology policy show`` for a calibration."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.training.forms import LeftOut
from posology.described import published
from posology.published.base import Published


@published("ReachOutput")
@dataclass(frozen=True, kw_only=True, slots=True)
class Reach:
    """Reach of a probability, on held-out questions."""

    k: int
    """Passages retrieved for a question."""
    least: float
    """Least probability."""
    questions: int
    issues: int
    """Questions whose key passage is not among the first three."""
    share: float
    """Share of all questions at or above the probability."""
    recall: float
    """Share of the issues at or above it."""
    mendable: float | None
    """Share of the issues whose key passage was retrieved; null: there are none."""


class OrderOutput(Published):
    """Calibration of one order of passages."""

    order: str
    """A mode, or RE-RANKER of MODE."""
    threshold: float
    """Least probability of an issue: all passages are read in one call, or by BriefContext at once."""
    questions: int | None
    """Questions that it was learned from; null: unknown."""
    held: str | None
    """Ranking whose first passage stood for the key passage; null: the key passages were known."""
    rate: float | None
    """Share of questions with the issue; null: unknown."""
    reach: tuple[Reach, ...]
    """Recall of the flag and of BriefContext at once; empty: the key passages were unknown."""


class CalibrationOutput(Published):
    """A calibration of preflight: output of ``posology policy show --json`` without a Q-table."""

    digest: str
    embedder: str | None
    """Null: unknown."""
    packaged: bool
    """Whether it comes with Posology."""
    at_once: float | None
    """Least probability at which the configured policy gives BriefContext at once; null: it has no preflight."""
    orders: tuple[OrderOutput, ...]


class CalibratedOutput(Published):
    """Output of ``posology policy calibrate --json``."""

    run: str
    """File of the run."""
    out: str
    """File of the calibration."""
    order: str
    """Calibrated order."""
    retrieved: int
    """Questions retrieved by this command; others were in the run's file."""
    left_out: tuple[LeftOut, ...]
    calibration: CalibrationOutput
