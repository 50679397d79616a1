"""PubMedQA (Jin et al., 2019): yes, no or maybe, about one abstract each.

Read: ``ori_pqal.json`` of its authors, an object for each PubMed id; and rows with ``pmid``, ``question``, ``answer``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from orchestrator.evaluation.suites.base import Case, Cases, Gold, OwnPassage, Record, records
from posology.types import Form

_VERDICTS = ("yes", "no", "maybe")


def read(path: Path) -> Cases:
    """Read PubMedQA. The gold passage is the question's abstract, ``pmid:N``, without its conclusion and its title."""
    found = records(path, _unwrap)
    return Cases(
        cases=tuple(map(_case, found)),
        passages=tuple(one for record in found for one in _passage(record)),
    )


def _unwrap(found: Any) -> Iterable[tuple[str, Any]] | None:
    if not isinstance(found, dict):
        return ()
    return None if "question" in found else found.items()


def _case(record: Record) -> Case:
    pmid = _pmid(record)
    verdict = record.choice("answer" if record.line else "final_decision", *_VERDICTS)
    return Case(
        id=pmid,
        fields={"question": record.text("question", "QUESTION"), "form": Form.YES_NO_MAYBE},
        gold=Gold(verdict=verdict, passages=(f"pmid:{pmid}",)),
        line=record.line,
    )


def _passage(record: Record) -> Iterator[OwnPassage]:
    """Yield the abstract; its title is the question."""
    text = " ".join(record.texts("contexts" if record.line else "CONTEXTS"))
    if text:
        pmid = _pmid(record)
        yield OwnPassage(id=f"pmid:{pmid}", title=f"PubMed {pmid}", text=text)


def _pmid(record: Record) -> str:
    return record.text("pmid") if record.line else record.place
