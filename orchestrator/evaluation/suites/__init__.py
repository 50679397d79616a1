"""Suites of questions with known answers, read from files that the user gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType

from orchestrator.evaluation.suites import bioasq, mirage, pubmedqa, questions, scifact, squad
from orchestrator.evaluation.suites.base import Read, Suite, bad_file
from posology.errors import InputError

#: name of a format → reader of its files
READERS: Mapping[str, Read] = MappingProxyType(
    {
        "questions": questions.read,
        "pubmedqa": pubmedqa.read,
        "bioasq": bioasq.read,
        "mirage": mirage.read,
        "scifact": scifact.read,
        "squad": squad.read,
    }
)
_SUFFIXES = frozenset({".gz", ".json", ".jsonl", ".ndjson"})


def read_suites(given: Sequence[str]) -> tuple[Suite, ...]:
    """Read suites, each ``FORMAT:PATH``, or ``PATH`` for a file of questions.

    Raises:
        BadFile: a file cannot be read, or a row of it is wrong.
        InputError: two suites have one name, or a suite has no question.
    """
    suites: dict[str, Suite] = {}
    for text in given:
        suite = _read(text)
        if suite.name in suites:
            raise InputError(
                f"two suites are named {suite.name}: rename one of the files", suite=suite.name
            )
        suites[suite.name] = suite
    return tuple(suites.values())


def _read(text: str) -> Suite:
    kind, colon, path = text.partition(":")
    if not colon or kind not in READERS:
        kind, path = "questions", text
    where = Path(path)
    name = _stem(where) if kind == "questions" else f"{kind}:{_stem(where)}"
    found = READERS[kind](where)
    if not found.cases:
        raise bad_file(where, f"no question of the format {kind} is in it")
    ids: set[str] = set()
    for case in found.cases:
        if case.id in ids:
            raise bad_file(where, f"two questions have the id {case.id!r}", case.line)
        ids.add(case.id)
    return Suite(name=name, **{one.name: getattr(found, one.name) for one in fields(found)})


def _stem(path: Path) -> str:
    while path.suffix in _SUFFIXES:
        path = path.with_suffix("")
    return path.name
