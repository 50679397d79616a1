"""Label file of a pruner: one self-contained row for each question and passage.

Every label carries its question and sentences. Rows can therefore be filtered, merged from several files or
written by hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter
from pydantic_core import from_json

from orchestrator.training.paid.rows import (
    Failed,
    Format,
    Paid,
    Row,
    RowFile,
    Start,
    open_rows,
    parse_rows,
)
from orchestrator.training.pruner.examples import Example, cleaned
from posology.errors import BadFile, InputError


class Begin(Start):
    """How the pairs after this row are labelled."""

    #: passages retrieved for a question
    k: int
    #: ranking that they are retrieved by
    mode: str
    #: of the excerpts' lengths
    seed: int
    embedder: str
    #: digest of the prompt
    prompt: str


class Labelled(Row):
    """A question, some sentences of a passage, and which of them the answer rests on."""

    row: Literal["label"] = "label"
    #: digest of the call's content; ``None``: written by hand
    call: str | None = None
    #: id of the passage in its index; ``None``: unknown
    passage: str | None = None
    question: str = Field(min_length=1)
    title: str = ""
    sentences: tuple[str, ...] = Field(min_length=1)
    #: places of the relevant sentences, from 0; empty: the passage has no answer; ``None``: the reply was unclear,
    #: so the row is not used
    relevant: tuple[int, ...] | None
    #: text of the reply
    reply: str | None = None
    #: dollars counted against limits
    cost: Decimal = Decimal(0)


_Line: TypeAlias = Annotated[Begin | Labelled | Failed, Field(discriminator="row")]
_line: TypeAdapter[Begin | Labelled | Failed] = TypeAdapter(_Line)


@dataclass(kw_only=True, slots=True)
class Labels(Paid):
    """Content of a label file."""

    #: ``None``: no label was bought
    begin: Begin | None = None
    rows: list[Labelled] = field(default_factory=list)
    #: digests of the calls that have a reply
    calls: set[str] = field(default_factory=set)

    def add(self, row: Row) -> None:
        """Add a row."""
        match row:
            case Begin():
                self.begin = row
            case Labelled():
                self.rows.append(row)
                self.add_reply(row.call, row.cost)
                if row.call is not None:
                    self.calls.add(row.call)
            case Failed():
                self.add_failure(row)


def _parse(raw: bytes) -> Begin | Labelled | Failed:
    data = from_json(raw)
    if isinstance(data, dict):
        # rows written by hand need no kind
        data.setdefault("row", "label")
    return _line.validate_python(data)


LabelFile: TypeAlias = RowFile[Labels]
_FORMAT = Format(
    parse=_parse,
    empty=Labels,
    add=Labels.add,
    mismatch="not a label file: each row needs question, sentences and relevant",
)
#: opens a file to append to it, see :func:`orchestrator.training.paid.rows.open_rows`
open_labels = partial(open_rows, form=_FORMAT)


def read_examples(path: Path) -> list[Example]:
    """Read the labels of a file, without those of unclear replies. The last label of a pair wins.

    Rows written by hand need only ``question``, ``sentences`` and ``relevant``.

    Raises:
        BadFile: the file cannot be read or is of another kind.
        InputError: the file has no usable label.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(path)) from None
    examples: dict[tuple[str, str, tuple[str, ...]], Example] = {}
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
        examples[example.question, example.title, example.sentences] = example
    if not examples:
        raise InputError(
            f"{path} has no usable label (every 'relevant' is null or the file is empty)."
        )
    return list(examples.values())
