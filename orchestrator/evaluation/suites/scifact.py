"""SciFact (Wadden et al., 2020): claims that abstracts support, contradict, or do not mention.

Read: ``claims_train.jsonl`` and ``claims_dev.jsonl`` of its authors, and rows whose ``evidence`` has one label for each
document. A claim is asked as a yes/no question; where no abstract bears on it, a refusal is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from orchestrator.evaluation.suites.base import Case, Cases, Gold, Record, records
from posology.types import Form

_VERDICTS = {"SUPPORT": "yes", "CONTRADICT": "no"}


def read(path: Path) -> Cases:
    """Read SciFact. Gold passages are the abstracts with evidence, ``scifact:DOC``."""
    found = records(path, lambda _: None)
    cases = [_case(record) for record in found]
    kept = tuple(case for case in cases if case is not None)
    skipped = {"evidence for and against": len(cases) - len(kept)} if len(kept) < len(cases) else {}
    return Cases(cases=kept, skipped=skipped)


def _case(record: Record) -> Case | None:
    """Return a claim; ``None``: its abstracts disagree, so that no verdict is right."""
    evidence = record.data.get("evidence")
    if not isinstance(evidence, dict):
        raise record.error(
            "the field 'evidence' is missing: claims without labels cannot be graded"
        )
    verdicts = {_verdict(record, label) for one in evidence.values() for label in _labels(one)}
    if len(verdicts) > 1:
        return None
    return Case(
        id=record.text("id"),
        fields={"question": record.text("claim"), "form": Form.YES_NO},
        gold=Gold(
            verdict=next(iter(verdicts), None),
            passages=tuple(f"scifact:{doc}" for doc in evidence),
            answerable=bool(verdicts),
        ),
        line=record.line,
    )


def _labels(evidence: object) -> Iterator[object]:
    for one in evidence if isinstance(evidence, list) else [evidence]:
        yield one.get("label") if isinstance(one, dict) else one


def _verdict(record: Record, label: object) -> str:
    if label not in _VERDICTS:
        raise record.error(f"a label must be SUPPORT or CONTRADICT (got {label!r})")
    return _VERDICTS[str(label)]
