"""File of a calibration's run: the features of each retrieved question, so that a calibration resumes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from orchestrator.training.paid.rows import Format, Row, RowFile, open_rows


class Begin(Row):
    """First row."""

    row: Literal["begin"] = "begin"
    #: version of the file format; other versions are rejected
    format: Literal[1] = 1
    #: UTC, ISO 8601
    started: str
    embedder: str


class Observed(Row):
    """One question with one number of passages in one order. A later row of the same replaces this one."""

    row: Literal["question"] = "question"
    #: identity of the question and its gold passages
    digest: str
    order: str
    k: int
    #: name and version
    index: str
    #: ranking whose first passage stands for gold; ``None``: the question has gold passages
    held: str | None
    #: whether the key passage is not among the first three shown
    issue: bool
    #: whether no gold passage was retrieved; ``None``: the question has none
    absent: bool | None
    #: see :func:`policies.preflight_features.observe`
    features: Mapping[str, float | str]


Key: TypeAlias = tuple[str, str, int]
Line: TypeAlias = Annotated[Begin | Observed, Field(discriminator="row")]
_line: TypeAdapter[Begin | Observed] = TypeAdapter(Line)


@dataclass(kw_only=True, slots=True)
class Content:
    """Content of a run's file."""

    #: ``None``: the file is empty
    begin: Begin | None = None
    #: last row by question, order and number of passages
    observed: dict[Key, Observed] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Add a row.

        Raises:
            ValueError: the first row is not a ``begin`` row, or a later one is of another embedder.
        """
        match row:
            case Begin():
                if self.begin is not None and self.begin.embedder != row.embedder:
                    raise ValueError(
                        f"the run is of embedder {self.begin.embedder}, not of {row.embedder}"
                    )
                self.begin = row
            case Observed():
                if self.begin is None:
                    raise ValueError("the first row must be a 'begin' row")
                self.observed[row.digest, row.order, row.k] = row


RunFile: TypeAlias = RowFile[Content]
_FORMAT = Format(
    parse=_line.validate_json,
    empty=Content,
    add=Content.add,
    mismatch="not a run file of `posology policy calibrate`",
)
#: opens a file to append to it, see :func:`orchestrator.training.paid.rows.open_rows`
open_run = partial(open_rows, form=_FORMAT)
