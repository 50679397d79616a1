"""A user's own questions: the rows of a batch, each with the known answer in ``gold``.

::

    {"id": "a1", "question": "…", "form": "yes_no", "gold": {"verdict": "yes", "passages": ["pmid:10051933"]}}
    {"id": "a2", "question": "…", "k": 16, "gold": {"answers": ["81 mg", "81 milligrams"]}}
    {"id": "a3", "question": "…", "gold": {"answerable": false}}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from orchestrator.evaluation.suites.base import Case, Cases, Gold, Record, records
from posology.types import Form

#: fields that an evaluation sets for all rows
_SET = ("model", "policy", "strategy", "keep", "max_cost_usd", "index_version")
_GOLD = ("verdict", "answers", "passages", "answerable")


def read(path: Path) -> Cases:
    """Read questions; a row without an ``id`` is named by its line."""
    return Cases(cases=tuple(map(_case, records(path, lambda _: None))))


def _case(record: Record) -> Case:
    fields: dict[str, Any] = dict(record.data)
    own = fields.pop("id", None)
    gold = fields.pop("gold", None)
    if taken := next((name for name in _SET if name in fields), None):
        raise record.error(f"the field {taken!r} is set for all questions: give it to the command")
    if not isinstance(gold, dict):
        raise record.error(
            "the field 'gold' is missing: the known answer, as {\"verdict\": …}, or answers"
        )
    return Case(
        id=f"line {record.line}" if own is None else str(own),
        fields=fields,
        gold=_gold(Record(path=record.path, data=gold, line=record.line, place="gold"), fields),
        line=record.line,
    )


def _gold(record: Record, fields: dict[str, Any]) -> Gold:
    if unknown := next((name for name in record.data if name not in _GOLD), None):
        raise record.error(f"unknown field {unknown!r}. Allowed fields: {', '.join(_GOLD)}.")
    answerable = record.data.get("answerable", True)
    if not isinstance(answerable, bool):
        raise record.error("the field 'answerable' must be true or false")
    verdict = record.text("verdict") if "verdict" in record.data else None
    gold = Gold(
        verdict=_verdict(record, verdict, fields),
        answers=record.texts("answers"),
        passages=record.texts("passages"),
        answerable=answerable,
    )
    known = gold.verdict or gold.answers or gold.passages
    if answerable and not known:
        raise record.error('it needs verdict, answers or passages, or "answerable": false')
    if not answerable and (gold.verdict or gold.answers):
        raise record.error("a question that is not answerable must not have a verdict or answers")
    return gold


def _verdict(record: Record, given: str | None, fields: dict[str, Any]) -> str | None:
    if given is None:
        return None
    options = fields.get("options")
    form = fields.get("form")
    if isinstance(options, dict):
        allowed = [str(label) for label in options]
    elif form in (Form.YES_NO, Form.YES_NO_MAYBE):
        allowed = ["yes", "no"] + (["maybe"] if form == Form.YES_NO_MAYBE else [])
    else:
        raise record.error("a verdict needs the form yes_no or yes_no_maybe, or options")
    found = next((one for one in allowed if one.casefold() == given.casefold()), None)
    if found is None:
        raise record.error(f"the verdict must be one of {', '.join(allowed)} (got {given!r})")
    return found
