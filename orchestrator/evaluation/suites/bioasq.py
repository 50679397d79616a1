"""BioASQ task b (Tsatsaronis et al., 2015): its yes/no questions.

Read: the task's JSON (``questions``), and rows with the same fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from orchestrator.evaluation.suites.base import (
    Case,
    Cases,
    Gold,
    OwnPassage,
    Record,
    listed,
    pmid_of,
    records,
)
from posology.types import Form

_TYPE = "yesno"


def read(path: Path) -> Cases:
    """Read BioASQ. Gold passages are the abstracts of a question's ``documents``, ``pmid:N``."""
    found = records(path, _unwrap)
    asked = [one for one in found if one.data.get("type") == _TYPE]
    skipped = {"no yes/no question": len(found) - len(asked)} if len(found) > len(asked) else {}
    return Cases(cases=tuple(map(_case, asked)), skipped=skipped, passages=tuple(_passages(found)))


def _unwrap(found: Any) -> Iterable[tuple[str, Any]] | None:
    if not isinstance(found, dict):
        return ()
    return None if "body" in found else listed(found.get("questions"), "question")


def _case(record: Record) -> Case:
    passages = (pmid_of(address) for address in record.texts("documents"))
    return Case(
        id=record.text("id"),
        fields={"question": record.text("body"), "form": Form.YES_NO},
        gold=Gold(
            verdict=record.choice("exact_answer", "yes", "no"),
            passages=tuple(dict.fromkeys(one for one in passages if one)),
        ),
        line=record.line,
    )


def _passages(found: Iterable[Record]) -> Iterator[OwnPassage]:
    """Yield the snippets of all questions, together for each abstract."""
    texts: dict[str, dict[str, None]] = {}
    for record in found:
        snippets = record.data.get("snippets") or []
        for one in snippets if isinstance(snippets, list) else []:
            if not isinstance(one, dict) or not isinstance(one.get("text"), str):
                raise record.error("the field 'snippets' must be a list of objects with text")
            if name := pmid_of(str(one.get("document"))):
                texts.setdefault(name, {})[one["text"].strip()] = None
    for name, some in texts.items():
        yield OwnPassage(id=name, title=name.replace("pmid:", "PubMed "), text=" ".join(some))
