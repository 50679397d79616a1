"""The questions that a Q-table learns from, as a file gives them."""

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

#: all that a row may say: what else a question is asked with is the same for all of a run
FIELDS = ("question", "id", "form", "options", "answer", "answers")
#: characters of a reference answer, and references of a question
MAX_REFERENCE, MAX_REFERENCES = 10_000, 100
#: characters of a digest
_DIGEST = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """A question to learn from."""

    #: where it stands, from 1
    line: int
    query: Query
    #: right answers, any of which will do; empty: the answer from the whole context is the reference
    references: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Identity of the question, whatever its references."""
        said = [self.query.text, self.query.form, [[o.label, o.text] for o in self.query.options]]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:_DIGEST]


@dataclass(frozen=True, kw_only=True, slots=True)
class BadLine:
    """A line that no question can be read from."""

    #: from 1
    line: int
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Examples:
    """What a file holds."""

    good: tuple[Example, ...]
    bad: tuple[BadLine, ...]


def read_examples(lines: Iterable[bytes], settings: Settings) -> Examples:
    """Read questions, a JSON object a line; blank lines are none.

    A line that cannot be read is told, and the others are read. So is a question that stands there already:
    asked again it would be paid for again, and teach nothing.

    Args:
        lines: each ``{"question": …}`` with an ``id``, ``form`` and ``options`` as for a batch, and ``answer``
            or ``answers``: right answers, as strings.
        settings: for what is asked of every row of a batch.
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
            bad.append(BadLine(line=line, reason=f"the question stands in line {first} already"))
    return Examples(good=tuple(good), bad=tuple(bad))


def _example(line: int, raw: bytes, settings: Settings) -> Example:
    data = _object(raw)
    references: tuple[str, ...] = ()
    if data is not None:
        references = _references(data)
        if others := sorted(set(data) - set(FIELDS)):
            raise InvalidQuery(
                f"a question has no {others[0]!r} of its own here: it may have {', '.join(FIELDS)}",
                field=others[0],
            )
        raw = json.dumps(data).encode()
    row = read_row(0, line, raw, {}, settings)
    return Example(line=line, query=_query(row), references=references)


def _object(raw: bytes) -> dict[str, Any] | None:
    """What a line says; ``None`` where the reader of rows says why it is none."""
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
    """Take the right answers out of a row."""
    if "answer" in data and "answers" in data:
        raise InvalidQuery("a question has an answer or answers, not both", field="answers")
    given = data.pop("answers", None)
    alone = data.pop("answer", None)
    found = given if given is not None else [] if alone is None else [alone]
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise InvalidQuery("an answer is a string, and answers are a list of them", field="answers")
    kept = _distinct(found)
    if len(kept) > MAX_REFERENCES:
        raise InvalidQuery(f"a question has at most {MAX_REFERENCES} answers", field="answers")
    return kept


def _distinct(found: Sequence[str]) -> tuple[str, ...]:
    kept = tuple(dict.fromkeys(one.strip() for one in found))
    for one in kept:
        if not one:
            raise InvalidQuery("an answer has no words", field="answers")
        if len(one) > MAX_REFERENCE:
            raise InvalidQuery(
                f"an answer has more than {MAX_REFERENCE:,} characters", field="answers"
            )
        try:
            one.encode()
        except UnicodeEncodeError:
            raise InvalidQuery("an answer is not valid Unicode", field="answers") from None
    return kept
