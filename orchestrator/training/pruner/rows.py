"""Labels for a pruner, in a file of rows.

Every label stands for itself, with its question and sentences, so that rows can be sorted out, put together
from several files or written by hand.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter
from pydantic_core import from_json

from orchestrator.training.paid.rows import Failed, Format, Row, RowFile, open_rows, parse_rows
from orchestrator.training.pruner.examples import Example, cleaned
from posology.errors import BadFile, InputError


class Begin(Row):
    """How pairs are labelled from here on."""

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
    #: of the passages' lengths
    seed: int
    embedder: str
    #: digest of the prompt
    prompt: str


class Labelled(Row):
    """A question with a passage, and the sentences that its answer rests on."""

    row: Literal["label"] = "label"
    #: content of the call that labelled it; ``None``: somebody wrote the label
    call: str | None = None
    #: of the passage, in its index; ``None``: not known
    passage: str | None = None
    question: str = Field(min_length=1)
    title: str = ""
    sentences: tuple[str, ...] = Field(min_length=1)
    #: from 0; empty: there is no answer in it; ``None``: the reply did not tell, so it teaches nothing
    relevant: tuple[int, ...] | None
    #: what was replied
    reply: str | None = None
    #: dollars that count against limits
    cost: Decimal = Decimal(0)


_Line: TypeAlias = Annotated[Begin | Labelled | Failed, Field(discriminator="row")]
_line: TypeAdapter[Begin | Labelled | Failed] = TypeAdapter(_Line)


@dataclass(kw_only=True, slots=True)
class Labels:
    """What a file of labels holds."""

    #: ``None``: nobody was asked for them
    begin: Begin | None = None
    rows: list[Labelled] = field(default_factory=list)
    #: calls that were replied to
    calls: set[str] = field(default_factory=set)
    #: calls that failed and were not replied to since
    failures: dict[str, Failed] = field(default_factory=dict)
    #: dollars that all of it cost
    spent: Decimal = Decimal(0)

    def add(self, row: Begin | Labelled | Failed) -> None:
        """Take a row in."""
        match row:
            case Begin():
                self.begin = row
            case Labelled():
                self.rows.append(row)
                self.spent += row.cost
                if row.call is not None:
                    self.calls.add(row.call)
                    self.failures.pop(row.call, None)
            case Failed():
                self.failures[row.call] = row
                self.spent += row.cost


def _parse(raw: bytes) -> Begin | Labelled | Failed:
    data = from_json(raw)
    if isinstance(data, dict):
        # what people write
        data.setdefault("row", "label")
    return _line.validate_python(data)


LabelFile: TypeAlias = RowFile[Begin | Labelled | Failed, Labels]
_FORMAT = Format(
    parse=_parse,
    empty=Labels,
    add=Labels.add,
    stranger="it is no file of labels: a row has question, sentences and relevant",
)


def open_labels(path: Path) -> AbstractContextManager[LabelFile]:
    """Open a file to go on with, see :func:`orchestrator.training.paid.rows.open_rows`.

    Raises:
        BadFile: it cannot be read or written, holds something else, or another process writes it.
    """
    return open_rows(path, _FORMAT)


def read_examples(path: Path) -> list[Example]:
    """What a file teaches: its labels, but for those that did not tell. Of several of one pair the last counts.

    Rows need no more than ``question``, ``sentences`` and ``relevant``: that is what labels of people look like.

    Raises:
        BadFile: it cannot be read, or holds something else.
        InputError: it holds nothing to learn from.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(path)) from None
    found: dict[tuple[str, str, tuple[str, ...]], Example] = {}
    for number, row in enumerate(parse_rows(content, path, _FORMAT).rows, 1):
        if row.relevant is None:
            continue
        example = Example(
            question=row.question, title=row.title, sentences=row.sentences, relevant=row.relevant
        )
        try:
            example = cleaned(example)
        except ValueError as error:
            raise BadFile(f"label {number}: {error}", path=str(path)) from None
        found[example.question, example.title, example.sentences] = example
    if not found:
        raise InputError(f"{path} has no label to learn from")
    return list(found.values())
