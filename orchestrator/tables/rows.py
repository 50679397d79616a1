"""File of a table's paid run: every reply, found by the content of its call, so that no call is paid for twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from orchestrator.training.paid.rows import Failed, Format, Paid, Row, Rows, Start, open_rows
from posology.types import Finish


class Begin(Start):
    """How the documents after this row are read."""

    #: names of the fields
    fields: tuple[str, ...]
    #: digest of the prompt
    prompt: str


class Replied(Row):
    """The reply to a call."""

    row: Literal["reply"] = "reply"
    #: digest of the call's content
    call: str
    #: id of the document
    document: str
    text: str
    finish: Finish
    served_model: str
    #: dollars counted against limits
    cost: Decimal


_Line: TypeAlias = Annotated[Begin | Replied | Failed, Field(discriminator="row")]
_line: TypeAdapter[Begin | Replied | Failed] = TypeAdapter(_Line)


@dataclass(kw_only=True, slots=True)
class Replies(Paid):
    """Content of a run's file."""

    #: by call digest
    replies: dict[str, Replied] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Add a row."""
        match row:
            case Replied():
                self.replies[row.call] = row
                self.add_reply(row.call, row.cost)
            case Failed():
                self.add_failure(row)


RunFile: TypeAlias = Rows[Replies]
#: format of its rows
REPLIES = Format(
    parse=_line.validate_json,
    empty=Replies,
    add=Replies.add,
    mismatch="not a run file of `posology table`",
)
#: opens a file to append to it, see :func:`orchestrator.training.paid.rows.open_rows`
open_run = partial(open_rows, form=REPLIES)
