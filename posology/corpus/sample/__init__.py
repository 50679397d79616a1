"""The sample corpus: notes and questions that were written for Posology; see README.md beside this."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

from posology.query import make_query
from posology.types import Query


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldQuote:
    """A place in a note that carries an answer."""

    passage_id: str
    quote: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleQuestion:
    """A question with its gold answer."""

    id: str
    query: Query
    topic: str
    #: ``None`` where the corpus does not answer the question
    answer: str | None
    #: the gold verdict of a choice or yes/no question
    choice: str | None
    #: ids of the notes that hold the answer; empty where none does
    gold: frozenset[str]
    evidence: tuple[GoldQuote, ...]
    unanswerable: bool
    #: whether the short demonstration asks it
    demo: bool


@contextmanager
def notes_file() -> Iterator[Path]:
    """Open the notes as a JSONL file, also if the package is not unpacked."""
    with as_file(files(__package__) / "notes.jsonl") as path:
        yield path


def questions() -> tuple[SampleQuestion, ...]:
    """Return all sample questions, in the file's order."""
    lines = (files(__package__) / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(_question(json.loads(line)) for line in lines)


def _question(row: Mapping[str, object]) -> SampleQuestion:
    match row:
        case {
            "id": str(id_),
            "question": str(text),
            "form": str(form),
            "options": dict() | None as options,
            "topic": str(topic),
            "answer": str() | None as answer,
            "choice": str() | None as choice,
            "gold": list(gold),
            "evidence": list(evidence),
            "unanswerable": bool(unanswerable),
            "demo": bool(demo),
        }:
            return SampleQuestion(
                id=id_,
                query=make_query(text, form=form, options=options),
                topic=topic,
                answer=answer,
                choice=choice,
                gold=frozenset(gold),
                evidence=tuple(
                    GoldQuote(passage_id=e["passage"], quote=e["quote"]) for e in evidence
                ),
                unanswerable=unanswerable,
                demo=demo,
            )
    raise ValueError(f"not a sample question: {row}")
