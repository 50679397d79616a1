"""The folder of an evaluation: rows, paid calls and what they were made with. An interrupted run resumes from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from orchestrator.evaluation.forms import EvalRow
from orchestrator.training.paid.rows import Format, Row, RowFile, make_folder, open_rows, read_rows
from posology.budget.ledger import entries
from posology.errors import InputError
from posology.types import Attempt, Completion, Finish, Outcome, Usage

#: names of the files
ROWS, CALLS, MARKDOWN, HTML, SUMMARY = (
    "rows.jsonl",
    "calls.jsonl",
    "report.md",
    "report.html",
    "summary.json",
)


class Begun(Row):
    """The index that all rows of a folder are from."""

    row: Literal["begin"] = "begin"
    #: version of the file format
    format: Literal[1] = 1
    #: UTC, ISO 8601
    started: str
    #: version of Posology
    version: str
    #: name and version of the index, e.g. ``index@17``
    index: str
    #: number of that version
    index_version: int
    #: when the index was made, which tells it from others, ISO 8601
    index_created: str


class Opened(Row):
    """An attempt that is about to be sent."""

    row: Literal["opened"] = "opened"
    #: key of the row that it is made for
    key: str
    #: number of the call for that row, from 1
    call: int
    #: its fields, as in the ledger
    attempt: dict[str, Any]


class Closed(Row):
    """An attempt that has ended."""

    row: Literal["closed"] = "closed"
    key: str
    #: digest of the call's content: an equal call gets this reply again
    content: str
    attempt: dict[str, Any]
    #: the reply; ``None``: there is none
    reply: dict[str, Any] | None


@dataclass(kw_only=True, slots=True)
class Calls:
    """Content of the file of calls."""

    begun: Begun | None = None
    #: attempts by key of their row, then by id
    attempts: dict[str, dict[str, Attempt]] = field(default_factory=dict)
    #: replies by key of their row, then by digest of the call
    replies: dict[str, dict[str, Completion]] = field(default_factory=dict)

    @property
    def spent(self) -> Decimal:
        """Dollars charged so far, attempts that never ended at their bounds."""
        of_rows = self.attempts.values()
        return sum((one.charged for some in of_rows for one in some.values()), Decimal(0))


_call_row: TypeAdapter[Row] = TypeAdapter(
    Annotated[Begun | Opened | Closed, Field(discriminator="row")]
)


def _add_call(content: Calls, row: Row) -> None:
    match row:
        case Begun():
            if content.begun is not None:
                raise ValueError("the run begins twice")
            content.begun = row
        case Opened():
            # until its end is known: perhaps billed
            lost = {"call": row.call, "outcome": Outcome.LOST, "latency": 0.0}
            _attempts(content, row.key)[row.attempt["id"]] = entries.attempt(row.attempt | lost)
        case Closed():
            attempt = entries.attempt(row.attempt)
            _attempts(content, row.key)[attempt.id] = attempt
            if row.reply is not None:
                content.replies.setdefault(row.key, {})[row.content] = _completion(row.reply)


def _attempts(content: Calls, key: str) -> dict[str, Attempt]:
    return content.attempts.setdefault(key, {})


def reply(completion: Completion) -> dict[str, Any]:
    """Return a reply as JSON; its text is parsed again when it is used."""
    plain = {name: getattr(completion, name) for name in Completion.__slots__}
    return plain | {"usage": entries.usage(completion.usage), "parsed": None}


def _completion(stored: dict[str, Any]) -> Completion:
    usage = stored["usage"]
    return Completion(
        **stored
        | {
            "finish": Finish(stored["finish"]),
            "usage": None if usage is None else Usage(**usage),
        }
    )


_CALLS: Format[Calls] = Format(
    parse=_call_row.validate_json,
    empty=Calls,
    add=_add_call,
    mismatch="not a file of calls of `posology eval`",
)
#: rows by key
Rows = dict[str, EvalRow]


def _add_row(content: Rows, row: Row) -> None:
    assert isinstance(row, EvalRow)
    content[row.key] = row


_ROWS: Format[Rows] = Format(
    parse=EvalRow.model_validate_json,
    empty=dict,
    add=_add_row,
    mismatch="not a file of rows of `posology eval`",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Folder:
    """An open, locked folder."""

    path: Path
    rows: RowFile[Rows]
    calls: RowFile[Calls]


def open_calls(path: Path) -> AbstractContextManager[RowFile[Calls]]:
    """Open and lock a file of calls; see :func:`~orchestrator.training.paid.rows.open_rows`."""
    return open_rows(path, _CALLS)


@contextmanager
def open_folder(path: Path) -> Iterator[Folder]:
    """Open the folder of a run, and lock it; create it if it does not exist.

    Raises:
        BadFile: it cannot be written, its files are of another kind, or another process writes to it.
    """
    make_folder(path)
    with ExitStack() as stack:
        yield Folder(
            path=path,
            calls=stack.enter_context(open_calls(path / CALLS)),
            rows=stack.enter_context(open_rows(path / ROWS, _ROWS)),
        )


def read_folder(path: Path) -> Rows:
    """Return the rows of a run, to compare with.

    Raises:
        InputError: the folder holds no run.
        BadFile: its rows cannot be read.
    """
    if not (path / ROWS).is_file():
        raise InputError(f"{path} holds no run of `posology eval`: {ROWS} is missing")
    return read_rows(path / ROWS, _ROWS)
