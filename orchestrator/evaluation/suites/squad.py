"""Files in the form of SQuAD (Rajpurkar et al., 2016 and 2018), such as COVID-QA: short answers, and none.

Read: a document with ``data``, and rows with ``context`` and ``qas``.
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
    records,
)


def read(path: Path) -> Cases:
    """Read SQuAD's form. The gold passage is the question's paragraph, ``squad:N``, counted from 0 in the file."""
    found = records(path, _unwrap)
    return Cases(
        cases=tuple(case for n, record in enumerate(found) for case in _cases(record, n)),
        passages=tuple(
            OwnPassage(
                id=f"squad:{n}",
                title=str(record.data.get("title") or f"Paragraph {n}").replace("_", " "),
                text=record.text("context"),
            )
            for n, record in enumerate(found)
        ),
    )


def _unwrap(found: Any) -> Iterable[tuple[str, Any]] | None:
    if not isinstance(found, dict):
        return ()
    return None if "qas" in found else _paragraphs(found.get("data"))


def _paragraphs(data: Any) -> Iterator[tuple[str, Any]]:
    for name, article in listed(data, "article"):
        if not isinstance(article, dict):
            # reported as no object
            yield name, article
            continue
        for place, paragraph in listed(article.get("paragraphs"), "paragraph"):
            titled = {"title": article.get("title")}
            yield (
                f"{name}, {place}",
                titled | paragraph if isinstance(paragraph, dict) else paragraph,
            )


def _cases(record: Record, number: int) -> Iterator[Case]:
    asked = record.data.get("qas")
    if not isinstance(asked, list):
        raise record.error("the field 'qas' must be a list")
    for place, data in listed(asked, "question"):
        inner = Record(
            path=record.path,
            data=data if isinstance(data, dict) else {},
            line=record.line,
            place=f"{record.place}, {place}" if record.place else place,
        )
        answers = inner.data.get("answers") or []
        if not isinstance(answers, list) or not all(isinstance(one, dict) for one in answers):
            raise inner.error("the field 'answers' must be a list of objects")
        texts = (str(one.get("text", "")).strip() for one in answers)
        accepted = tuple(dict.fromkeys(text for text in texts if text))
        answerable = not inner.data.get("is_impossible", not accepted)
        if answerable and not accepted:
            raise inner.error("the question has no answer")
        yield Case(
            id=inner.text("id"),
            fields={"question": inner.text("question")},
            gold=Gold(
                answers=accepted if answerable else (),
                passages=(f"squad:{number}",) if answerable else (),
                answerable=answerable,
            ),
            line=record.line,
        )
