"""PubMedQA (Jin et al., 2019): yes, no or maybe, about one abstract each.

Read: ``ori_pqal.json`` of its authors, an object for each PubMed id; and rows with ``pmid``, ``question``, ``answer``.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from orchestrator.evaluation.suites.base import Case, Cases, Gold, Record, records
from posology.types import Form

_VERDICTS = ("yes", "no", "maybe")


def read(path: Path) -> Cases:
    """Read PubMedQA. The gold passage is the question's abstract, ``pmid:N``."""
    return Cases(cases=tuple(map(_case, records(path, _unwrap))))


def _unwrap(found: Any) -> Iterable[tuple[str, Any]] | None:
    if not isinstance(found, dict):
        return ()
    return None if "question" in found else found.items()


def _case(record: Record) -> Case:
    pmid = record.text("pmid") if record.line else record.place
    verdict = record.choice("answer" if record.line else "final_decision", *_VERDICTS)
    return Case(
        id=pmid,
        fields={"question": record.text("question", "QUESTION"), "form": Form.YES_NO_MAYBE},
        gold=Gold(verdict=verdict, passages=(f"pmid:{pmid}",)),
        line=record.line,
    )
