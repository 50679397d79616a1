"""File of a data set's paid run: every reply of every conversation.

Replies are found by the content of their calls. No call is paid for twice: not after a kill, nor for more
passages, nor in another order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from orchestrator.training.paid.rows import Failed, Format, Paid, Row, RowFile, Start, open_rows
from posology.types import Finish


class Begin(Start):
    """How the passages after this row are shortened."""

    #: target share of the words
    share: float
    tolerance: float
    #: maximum replies for a passage
    rounds: int
    seed: int
    #: digest of each prompt, by name
    prompts: dict[str, str]


class Replied(Row):
    """The reply to a call."""

    row: Literal["reply"] = "reply"
    #: digest of the call's content
    call: str
    #: id of the passage
    passage: str
    text: str
    finish: Finish
    served_model: str
    #: dollars counted against limits
    cost: Decimal


Line: TypeAlias = Annotated[Begin | Replied | Failed, Field(discriminator="row")]
_line: TypeAdapter[Begin | Replied | Failed] = TypeAdapter(Line)


@dataclass(kw_only=True, slots=True)
class Replies(Paid):
    """Content of a run's file."""

    #: ``None``: the file is empty
    begin: Begin | None = None
    #: by call digest
    replies: dict[str, Replied] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Add a row."""
        match row:
            case Begin():
                self.begin = row
            case Replied():
                self.replies[row.call] = row
                self.add_reply(row.call, row.cost)
            case Failed():
                self.add_failure(row)


RunFile: TypeAlias = RowFile[Replies]
_FORMAT = Format(
    parse=_line.validate_json,
    empty=Replies,
    add=Replies.add,
    mismatch="not a run file of `posology compressor dataset`",
)
#: opens a file to append to it, see :func:`orchestrator.training.paid.rows.open_rows`
open_run = partial(open_rows, form=_FORMAT)
