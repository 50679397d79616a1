"""File of questions for training, labels and tests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.jobs.rows import Row, read_row
from orchestrator.settings import Settings
from posology.errors import InvalidQuery
from posology.query import make_query
from posology.types import Query

#: fields of a row; other options are the same for all questions of a run
FIELDS = ("question", "id", "form", "options", "answer", "answers", "gold")
#: maximum characters of a reference answer, and references of a question
MAX_REFERENCE, MAX_REFERENCES = 10_000, 100
#: characters of a digest
_DIGEST = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """A question with its reference answers."""

    #: line, from 1
    line: int
    query: Query
    #: correct answers, any of which is accepted; empty: the whole context's answer is the reference
    references: tuple[str, ...]
    #: ids of the passages that answer it; empty: unknown
    gold: frozenset[str] = frozenset()

    @property
    def digest(self) -> str:
        """Digest of the question without its references."""
        content = [
            self.query.text,
            self.query.form,
            [[o.label, o.text] for o in self.query.options],
        ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:_DIGEST]


@dataclass(frozen=True, kw_only=True, slots=True)
class BadLine:
    """An invalid line."""

    #: from 1
    line: int
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Examples:
    """Content of a file."""

    good: tuple[Example, ...]
    bad: tuple[BadLine, ...]


def read_examples(lines: Iterable[bytes], settings: Settings) -> Examples:
    """Read questions, one JSON object per line; blank lines are skipped.

    Invalid lines and repeated questions are returned as bad lines; they do not stop the others.

    Args:
        lines: each ``{"question": …}`` with an ``id``, ``form`` and ``options`` as for a batch, ``answer`` or
            ``answers``: correct answers, as strings, and ``gold``: ids of the passages that answer it.
        settings: limits of a batch's rows.
    """
    good: list[Example] = []
    bad: list[BadLine] = []
    seen: dict[str, int] = {}
    for line, raw in enumerate(lines, 1):
        if not raw.strip():
            continue
        try:
            example = _example(line, raw, settings)
        except InvalidQuery as error:
            bad.append(BadLine(line=line, reason=error.message))
            continue
        first = seen.setdefault(example.digest, line)
        if first == line:
            good.append(example)
        else:
            bad.append(BadLine(line=line, reason=f"the question repeats line {first}"))
    return Examples(good=tuple(good), bad=tuple(bad))


def _example(line: int, raw: bytes, settings: Settings) -> Example:
    data = _object(raw)
    references: tuple[str, ...] = ()
    gold: frozenset[str] = frozenset()
    if data is not None:
        references, gold = _references(data), _gold(data)
        if others := sorted(set(data) - set(FIELDS)):
            raise InvalidQuery(
                f"unknown field {others[0]!r}. Allowed fields: {', '.join(FIELDS)}.",
                field=others[0],
            )
        raw = json.dumps(data).encode()
    row = read_row(0, line, raw, {}, settings)
    return Example(line=line, query=_query(row), references=references, gold=gold)


def _object(raw: bytes) -> dict[str, Any] | None:
    """Return the object of a line; ``None``: it is not one, and the reader of rows reports why."""
    try:
        data = json.loads(raw.decode().removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _query(row: Row) -> Query:
    if row.request is None:
        assert row.error is not None
        raise InvalidQuery(row.error.message, field="row")
    request = row.request
    return make_query(request.question, form=request.form, options=request.options)


def _references(data: dict[str, Any]) -> tuple[str, ...]:
    """Remove the correct answers from a row and return them."""
    if "answer" in data and "answers" in data:
        raise InvalidQuery("give either answer or answers, not both", field="answers")
    given = data.pop("answers", None)
    alone = data.pop("answer", None)
    found = given if given is not None else [] if alone is None else [alone]
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise InvalidQuery(
            "answer must be a string, and answers a list of strings", field="answers"
        )
    kept = _distinct(found)
    if len(kept) > MAX_REFERENCES:
        raise InvalidQuery(
            f"a question must have at most {MAX_REFERENCES} answers (got {len(kept)})",
            field="answers",
        )
    return kept


def _gold(data: dict[str, Any]) -> frozenset[str]:
    """Remove the ids of gold passages from a row and return them."""
    found = data.pop("gold", None)
    if found is None:
        return frozenset()
    if not isinstance(found, list) or not all(isinstance(one, str) and one for one in found):
        raise InvalidQuery("gold must be a list of ids of passages", field="gold")
    return frozenset(found)


def _distinct(found: Sequence[str]) -> tuple[str, ...]:
    answers = tuple(dict.fromkeys(one.strip() for one in found))
    for one in answers:
        if not one:
            raise InvalidQuery("an answer must not be empty", field="answers")
        if len(one) > MAX_REFERENCE:
            raise InvalidQuery(
                f"an answer must have at most {MAX_REFERENCE:,} characters (got {len(one):,})",
                field="answers",
            )
        try:
            one.encode()
        except UnicodeEncodeError:
            raise InvalidQuery("an answer is not valid Unicode", field="answers") from None
    return answers
