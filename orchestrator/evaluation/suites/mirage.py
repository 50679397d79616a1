"""MIRAGE (Xiong et al., 2024): its ``benchmark.json``, which holds parts of five question sets.

Questions whose options are yes and no, or yes, no and maybe, are asked in these forms; the others with their options.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from orchestrator.evaluation.suites.base import Case, Cases, Gold, Record, records
from posology.types import Form

_FORMS = {
    frozenset({"yes", "no"}): Form.YES_NO,
    frozenset({"yes", "no", "maybe"}): Form.YES_NO_MAYBE,
}


def read(path: Path) -> Cases:
    """Read MIRAGE. A question's id is ``PART/ID``; ``PMID`` gives gold passages where a part has it."""
    return Cases(cases=tuple(map(_case, records(path, _unwrap))))


def _unwrap(found: Any) -> Iterable[tuple[str, Any]]:
    return _each(found) if isinstance(found, dict) else ()


def _each(found: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for part, questions in found.items():
        if isinstance(questions, dict):
            for name, data in questions.items():
                yield f"{part}/{name}", data
        else:
            # reported as no object
            yield part, questions


def _case(record: Record) -> Case:
    options = record.data.get("options")
    if not isinstance(options, dict) or not all(isinstance(one, str) for one in options.values()):
        raise record.error("the field 'options' must be an object of texts")
    label = record.text("answer")
    if label not in options:
        raise record.error(
            f"the field 'answer' must be one of {', '.join(options)} (got {label!r})"
        )
    form = _FORMS.get(frozenset(text.casefold() for text in options.values()))
    fields: dict[str, Any] = {"question": record.text("question")}
    pmids = record.data.get("PMID") or []
    return Case(
        id=record.place,
        fields=fields | ({"form": form} if form else {"options": options}),
        gold=Gold(
            verdict=options[label].casefold() if form else label,
            passages=tuple(
                f"pmid:{one}" for one in (pmids if isinstance(pmids, list) else [pmids])
            ),
        ),
    )
