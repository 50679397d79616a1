"""File of a Q-table's paid run: questions, actions and replies.

It holds everything that a table is computed from. Tables with other weights, states or scores need no further
call to a model and no index.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from orchestrator.training.paid.rows import (
    Failed,
    Format,
    Paid,
    Row,
    RowFile,
    Start,
    open_rows,
    read_rows,
)
from posology.errors import BadFile


class Begin(Start):
    """How the questions after this row are asked."""

    #: passages retrieved for a question
    k: int
    #: ranking that they are retrieved by
    mode: str
    compressor: str
    embedder: str
    #: name and version
    index: str
    #: digest of each prompt, by name
    prompts: dict[str, str]


class Arm(Row):
    """One action on one question: a share of its context, and the call that shows it."""

    #: share of the sentences kept whole
    keep: float
    #: digest of the call's content; ``None``: the share is empty, so no call is made
    call: str | None
    #: tokens of the context in the call
    tokens: int


class Asked(Row):
    """A question. A later row of the same digest replaces this one."""

    row: Literal["question"] = "question"
    #: identity of the question
    digest: str
    #: line of the questions' file, from 1
    line: int
    #: verdicts that its answer may carry
    choices: tuple[str, ...]
    references: tuple[str, ...]
    #: vectors of its context and of itself, concatenated, float32, base64
    vectors: str
    #: tokens of the whole context in a call
    tokens: int
    arms: tuple[Arm, ...]


class Replied(Row):
    """The reply to a call."""

    row: Literal["reply"] = "reply"
    #: digest of the call's content
    call: str
    text: str
    choice: str | None
    refused: bool
    #: dollars counted against limits
    cost: Decimal


Line: TypeAlias = Annotated[Begin | Asked | Replied | Failed, Field(discriminator="row")]
_line: TypeAdapter[Begin | Asked | Replied | Failed] = TypeAdapter(Line)


@dataclass(kw_only=True, slots=True)
class Explored(Paid):
    """Content of a run's file."""

    #: ``None``: the file is empty
    begin: Begin | None = None
    #: questions after the last ``begin`` row, by digest, in order
    questions: dict[str, Asked] = field(default_factory=dict)
    #: all replies, by call digest
    replies: dict[str, Replied] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Add a row.

        Raises:
            ValueError: no ``begin`` row precedes it.
        """
        if self.begin is None and not isinstance(row, Begin):
            raise ValueError("the first row must be a 'begin' row")
        match row:
            case Begin():
                self.begin, self.questions = row, {}
            case Asked():
                self.questions[row.digest] = row
            case Replied():
                self.replies[row.call] = row
                self.add_reply(row.call, row.cost)
            case Failed():
                self.add_failure(row)


def calls_of(questions: Iterable[Asked]) -> dict[str, tuple[Asked, Arm]]:
    """Return each distinct call of some questions, with one arm that needs it.

    Calls are ordered question by question, so that an interrupted run has complete questions to learn from.
    """
    found: dict[str, tuple[Asked, Arm]] = {}
    for asked in questions:
        for arm in asked.arms:
            if arm.call is not None:
                found.setdefault(arm.call, (asked, arm))
    return found


RunFile: TypeAlias = RowFile[Explored]
_FORMAT = Format(
    parse=_line.validate_json,
    empty=Explored,
    add=Explored.add,
    mismatch="not a run file of `posology policy train`",
)
#: opens a file to append to it, see :func:`orchestrator.training.paid.rows.open_rows`
open_run = partial(open_rows, form=_FORMAT)


def read_run(path: Path) -> Explored:
    """Read a run's file without changing it.

    Raises:
        BadFile: the file cannot be read, is of another kind, or is empty.
    """
    explored = read_rows(path, _FORMAT)
    if explored.begin is None:
        raise BadFile("the run file is empty", path=str(path))
    return explored
