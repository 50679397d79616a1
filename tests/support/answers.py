"""Answers as they are published."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from posology.published.answers import AskOutput, Status
from posology.published.calls import Spending
from posology.published.decisions import DecisionOutput
from posology.published.watches.forms import WatchChange
from posology.types import Dose, Form, Usage

NOTHING_SPENT = Spending(
    attempts=(), usage=Usage(), usage_complete=True, cost_usd=Decimal(0), charged_usd=Decimal(0)
)


def a_change(**given: Any) -> WatchChange:
    """A change of a watch in which an answer became a refusal, unless it is given otherwise."""
    fields: dict[str, Any] = {
        "at": datetime(2026, 1, 15, tzinfo=UTC),
        "job": "job_1",
        "index": "index@2",
        "status_before": Status.ANSWERED,
        "status": Status.REFUSED,
        "choice_before": None,
        "choice": None,
        **dict.fromkeys(
            ("sources_new", "sources_gone", "conflicts_new", "conflicts_gone", "evidence"), ()
        ),
    }
    return WatchChange(**fields | given)


def an_answer(**given: Any) -> AskOutput:
    """An answer without evidence, to direct RAG, unless it is given otherwise."""
    fields: dict[str, Any] = {
        "status": Status.UNSUPPORTED,
        "question": "Does it help?",
        "form": Form.FREE,
        "model": "openai:gpt-4o-mini",
        "answer": "It helps.",
        "choice": None,
        "refusal": None,
        "evidence": (),
        "dropped_quotes": 0,
        "notes": (),
        "conflicts": (),
        "coverage": None,
        "strategy": "direct",
        "decision": DecisionOutput(
            dose=Dose(strategy="direct"), policy="fixed", reason="it was asked for"
        ),
        "spending": NOTHING_SPENT,
        "retrieved": (),
        "index": "none",
        "retrieval_seconds": 0.0,
        "seconds": 0.0,
    }
    return AskOutput(**fields | given)
