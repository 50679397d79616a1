"""What was replied for a data set, in a file of rows.

A conversation is found again by the content of its calls, so that nothing is asked for twice: not after a kill,
nor for more passages, nor in another order.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from orchestrator.training.paid.rows import Failed, Format, Row, RowFile, open_rows
from posology.types import Finish


class Begin(Row):
    """How passages are shortened from here on."""

    row: Literal["begin"] = "begin"
    #: what the rows mean; files of other formats are not read
    format: Literal[1] = 1
    #: UTC, ISO 8601
    started: str
    #: ``provider:name``
    model: str
    share: float
    tolerance: float
    rounds: int
    seed: int
    #: digest of each prompt, by its name
    prompts: dict[str, str]


class Replied(Row):
    """What was replied to a call."""

    row: Literal["reply"] = "reply"
    #: content of the call
    call: str
    #: of the passage
    passage: str
    text: str
    finish: Finish
    served_model: str
    #: dollars that count against limits
    cost: Decimal


Line: TypeAlias = Annotated[Begin | Replied | Failed, Field(discriminator="row")]
_line: TypeAdapter[Begin | Replied | Failed] = TypeAdapter(Line)


@dataclass(kw_only=True, slots=True)
class Paid:
    """What a file of a run holds."""

    #: ``None``: nothing yet
    begin: Begin | None = None
    #: by call
    replies: dict[str, Replied] = field(default_factory=dict)
    #: calls that failed and were not replied to since
    failures: dict[str, Failed] = field(default_factory=dict)
    #: dollars that all of it cost
    spent: Decimal = Decimal(0)

    def add(self, row: Begin | Replied | Failed) -> None:
        """Take a row in."""
        match row:
            case Begin():
                self.begin = row
            case Replied():
                self.replies[row.call] = row
                self.failures.pop(row.call, None)
                self.spent += row.cost
            case Failed():
                self.failures[row.call] = row
                self.spent += row.cost


RunFile: TypeAlias = RowFile[Begin | Replied | Failed, Paid]
_FORMAT = Format(
    parse=_line.validate_json,
    empty=Paid,
    add=Paid.add,
    stranger="it is no file of `posology compressor dataset`",
)


def open_run(path: Path) -> AbstractContextManager[RunFile]:
    """Open a file to go on with, see :func:`orchestrator.training.paid.rows.open_rows`.

    Raises:
        BadFile: it cannot be read or written, holds something else, or another process writes it.
    """
    return open_rows(path, _FORMAT)
