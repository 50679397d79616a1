"""What was explored, in a file of rows.

It holds all that a table is made of: tables for other weights, states or scores come of it without a call to a
model, and without an index.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from orchestrator.training.paid.rows import Failed, Format, Row, RowFile, open_rows, read_rows
from posology.errors import BadFile


class Begin(Row):
    """How questions are asked from here on."""

    row: Literal["begin"] = "begin"
    #: what the rows mean; files of other formats are not read
    format: Literal[1] = 1
    #: UTC, ISO 8601
    started: str
    #: ``provider:name``
    model: str
    #: passages that are retrieved for a question, and by which ranking
    k: int
    mode: str
    compressor: str
    embedder: str
    #: name and version
    index: str
    #: digest of each prompt, by its name
    prompts: dict[str, str]


class Arm(Row):
    """One action on one question: a share of its context, and the call that shows it."""

    keep: float
    #: content of the call, as the account knows it; ``None``: nothing is left to ask about
    call: str | None
    #: tokens of what the call shows of the context
    tokens: int


class Asked(Row):
    """A question, as the run before it ended begins: one that comes again replaces the first."""

    row: Literal["question"] = "question"
    #: identity of the question
    digest: str
    #: where it stood in its file, from 1
    line: int
    #: the verdicts that its answer may carry
    choices: tuple[str, ...]
    references: tuple[str, ...]
    #: vectors of its context and of itself, one after the other, float32, base64
    vectors: str
    #: tokens of the whole context, as a call shows it
    tokens: int
    arms: tuple[Arm, ...]


class Replied(Row):
    """What was answered to a call."""

    row: Literal["reply"] = "reply"
    call: str
    text: str
    choice: str | None
    refused: bool
    #: dollars that count against limits
    cost: Decimal


Line: TypeAlias = Annotated[Begin | Asked | Replied | Failed, Field(discriminator="row")]
_line: TypeAdapter[Begin | Asked | Replied | Failed] = TypeAdapter(Line)


@dataclass(kw_only=True, slots=True)
class Explored:
    """What a file of a run holds."""

    #: ``None``: nothing yet
    begin: Begin | None = None
    #: by digest, in order; those of the last begin alone
    questions: dict[str, Asked] = field(default_factory=dict)
    #: by call, of all begins
    replies: dict[str, Replied] = field(default_factory=dict)
    #: calls that failed and were not answered since
    failures: dict[str, Failed] = field(default_factory=dict)
    #: dollars that all of it cost
    spent: Decimal = Decimal(0)

    def add(self, row: Begin | Asked | Replied | Failed) -> None:
        """Take a row in.

        Raises:
            ValueError: nothing says yet how questions are asked.
        """
        if self.begin is None and not isinstance(row, Begin):
            raise ValueError("rows stand before the first that says how")
        match row:
            case Begin():
                self.begin, self.questions = row, {}
            case Asked():
                self.questions[row.digest] = row
            case Replied():
                self.replies[row.call] = row
                self.failures.pop(row.call, None)
                self.spent += row.cost
            case Failed():
                self.failures[row.call] = row
                self.spent += row.cost


def calls_of(questions: Iterable[Asked]) -> dict[str, tuple[Asked, Arm]]:
    """Every call that questions need, once, question by question; and one arm that it is of.

    A question is finished before the next, so that what is there teaches something whenever it ends.
    """
    found: dict[str, tuple[Asked, Arm]] = {}
    for asked in questions:
        for arm in asked.arms:
            if arm.call is not None:
                found.setdefault(arm.call, (asked, arm))
    return found


RunFile: TypeAlias = RowFile[Begin | Asked | Replied | Failed, Explored]
_FORMAT = Format(
    parse=_line.validate_json,
    empty=Explored,
    add=Explored.add,
    stranger="it is no file of `posology policy train`",
)


def open_run(path: Path) -> AbstractContextManager[RunFile]:
    """Open a file to go on with, see :func:`orchestrator.training.paid.rows.open_rows`.

    Raises:
        BadFile: it cannot be read or written, holds something else, or another process writes it.
    """
    return open_rows(path, _FORMAT)


def read_run(path: Path) -> Explored:
    """Read a file, and leave it as it is.

    Raises:
        BadFile: it cannot be read, holds something else, or nothing.
    """
    explored = read_rows(path, _FORMAT)
    if explored.begin is None:
        raise BadFile("nothing was explored in it", path=str(path))
    return explored
