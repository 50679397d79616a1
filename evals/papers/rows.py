"""The rows of a run: JSON lines, one a question, arm and reader. An interrupted run resumes from them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from evals.papers.suite import Item, Suite
from orchestrator.evaluation.folder import CALLS, Calls, open_calls
from orchestrator.training.paid.rows import Format, Row, RowFile, make_folder, open_rows
from posology.errors import InputError

ROWS, REPORT = "rows.jsonl", "report.md"
#: characters of a key
_KEY = 20


class Begun(Row):
    """The data and the seed of all rows after it."""

    row: Literal["begin"] = "begin"
    format: Literal[1] = 1
    #: UTC, ISO 8601
    started: str
    #: version of Posology
    version: str
    suite: str
    seed: int
    #: digest of the data files
    data: str


class Result(Row):
    """One question in one arm with one reader."""

    row: Literal["result"] = "result"
    #: digest of what decides the values
    key: str
    reader: str
    question: str
    arm: str
    #: by measure; ``None``: the question has none
    values: dict[str, float | None]


@dataclass(kw_only=True, slots=True)
class Content:
    """The rows of a file."""

    begun: Begun | None = None
    #: by key
    results: dict[str, Result] = field(default_factory=dict)


def _add(content: Content, row: Row) -> None:
    if isinstance(row, Begun):
        if content.begun is not None:
            raise ValueError("the run begins twice")
        content.begun = row
    elif isinstance(row, Result):
        content.results[row.key] = row


_any: TypeAdapter[Row] = TypeAdapter(Annotated[Begun | Result, Field(discriminator="row")])
_ROWS: Format[Content] = Format(
    parse=_any.validate_json,
    empty=Content,
    add=_add,
    mismatch="not a file of rows of evals.papers",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Folder:
    """An open, locked folder of a run."""

    path: Path
    rows: RowFile[Content]
    #: attempts at calls of readers that are paid, with their replies
    calls: RowFile[Calls]


@contextmanager
def open_folder(path: Path) -> Iterator[Folder]:
    """Open the folder of a run, and lock it; create it if it does not exist.

    Raises:
        BadFile: it cannot be written, its files are of another kind, or another process writes to it.
    """
    make_folder(path)
    with ExitStack() as stack:
        rows = stack.enter_context(open_rows(path / ROWS, _ROWS))
        calls = stack.enter_context(open_calls(path / CALLS))
        yield Folder(path=path, rows=rows, calls=calls)


def check(folder: Folder, begun: Begun) -> None:
    """Check that the folder's rows, if it has any, are of the same suite, data and seed.

    Raises:
        InputError: they are not.
    """
    before = folder.rows.content.begun
    if before is None:
        return
    for name in ("suite", "seed", "data"):
        was, now = getattr(before, name), getattr(begun, name)
        if was != now:
            raise InputError(
                f"the rows in {folder.path} have {name} {was}, and this run has {now}: pass another folder with --out"
            )


def key_of(suite: Suite, item: Item, identity: Sequence[str]) -> str:
    """Return the key of an item with a reader of this identity."""
    content = [suite.name, suite.version, item.question, item.arm, *identity]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:_KEY]


def digest_of(data: Path, files: Sequence[str]) -> str:
    """Return a digest of data files.

    Raises:
        InputError: one is missing.
    """
    found = hashlib.sha256()
    for name in files:
        if not (data / name).is_file():
            raise InputError(f"{data} has no {name}. Pass --data with the folder of the data sets.")
        found.update((data / name).read_bytes())
    return found.hexdigest()[:_KEY]
