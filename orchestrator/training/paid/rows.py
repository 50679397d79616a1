"""JSON Lines file of a paid run: append-only, one row for each reply, resumable.

A row that was cut off because its process was killed is removed when the file is opened again. A file of another
kind is left unchanged.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from posology.errors import BadFile

#: first bytes of every row that this module writes
_START = b'{"row":"'


class Row(BaseModel):
    """A line of JSON; ``row`` names its kind."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Start(Row):
    """First row of a run: how the rows after it are made. Each kind of run adds its own settings."""

    row: Literal["begin"] = "begin"
    #: version of the file format; other versions are rejected
    format: Literal[1] = 1
    #: UTC, ISO 8601
    started: str
    #: ``provider:name``
    model: str


class Failed(Row):
    """A call without a usable reply. It is made again when the run resumes."""

    row: Literal["failure"] = "failure"
    #: digest of the call's content
    call: str
    #: name of the error class
    error: str
    message: str
    #: dollars counted against limits
    cost: Decimal


@dataclass(kw_only=True, slots=True)
class Paid:
    """Content that the files of all runs share: failures and cost."""

    #: failed calls without a later reply, by call digest
    failures: dict[str, Failed] = field(default_factory=dict)
    #: dollars spent by all rows
    spent: Decimal = Decimal(0)

    def add_failure(self, row: Failed) -> None:
        """Add a failed call and its cost."""
        self.failures[row.call] = row
        self.spent += row.cost

    def add_reply(self, call: str | None, cost: Decimal) -> None:
        """Add the cost of a reply; the call's earlier failure is dropped."""
        self.spent += cost
        if call is not None:
            self.failures.pop(call, None)


_Content = TypeVar("_Content")
_Content_co = TypeVar("_Content_co", covariant=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Format(Generic[_Content]):
    """How files of one kind are read."""

    #: parses one row; raises ``ValueError`` if the bytes are not a row
    parse: Callable[[bytes], Row]
    #: makes the content of an empty file
    empty: Callable[[], _Content]
    #: adds a row to the content; raises ``ValueError`` with the reason if the row is out of place
    add: Callable[[_Content, Row], None]
    #: error message for files of another kind
    mismatch: str


class Rows(Protocol[_Content_co]):
    """Rows of a paid run, in a file or elsewhere."""

    @property
    def content(self) -> _Content_co:
        """All rows so far."""
        ...

    @property
    def path(self) -> Path | None:
        """The file, beside which batches have their journal; ``None``: the rows are elsewhere."""
        ...

    async def keep(self, *rows: Row) -> None:
        """Append rows: they outlive the machine when this returns, also to a caller that is cancelled meanwhile.

        Raises:
            Exception: they cannot be written any more.
        """
        ...


class RowFile(Generic[_Content]):
    """An open, locked file. Rows are on disk when :meth:`write` returns, unless it says otherwise."""

    def __init__(
        self, path: Path, file: BinaryIO, content: _Content, form: Format[_Content]
    ) -> None:
        self.path = path
        #: all rows so far
        self.content = content
        self._file = file
        self._form = form

    def write(self, *rows: Row, sync: bool = True) -> None:
        """Append rows and sync them to disk.

        Args:
            rows: the rows.
            sync: whether they outlive the machine; else only this process, for rows that cost nothing to make again.

        Raises:
            BadFile: the file cannot be written; its cause is the error of the system.
        """
        try:
            self._file.write(b"".join(f"{row.model_dump_json()}\n".encode() for row in rows))
            self._file.flush()
            if sync:
                os.fsync(self._file.fileno())
        except OSError as error:
            raise BadFile(error.strerror or str(error), path=str(self.path)) from error
        for row in rows:
            self._form.add(self.content, row)

    async def keep(self, *rows: Row) -> None:
        """See :class:`Rows`; nothing else runs meanwhile.

        Raises:
            BadFile: as for :meth:`write`.
        """
        self.write(*rows)


def make_folder(path: Path) -> None:
    """Create the folder of a run if it does not exist.

    Raises:
        BadFile: it cannot be created.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(path)) from None


@contextmanager
def open_rows(path: Path, form: Format[_Content]) -> Iterator[RowFile[_Content]]:
    """Open a file to append rows, and lock it; create it if it does not exist.

    A file that is still empty at the end is removed.

    Raises:
        BadFile: the file cannot be read or written, is of another kind, or is locked by another process.
    """
    try:
        file = path.open("a+b")
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(path)) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            reason = "another process is writing to this file. Wait until it has finished."
            raise BadFile(reason, path=str(path)) from None
        file.seek(0)
        raw = file.read()
        whole = raw.rfind(b"\n") + 1
        content = parse_rows(raw[:whole], path, form)
        broken = raw[whole:]
        if not broken.startswith(_START[: len(broken)]):
            # not a row of this module, so it must not be truncated
            raise BadFile(form.mismatch, path=str(path))
        file.truncate(whole)
        try:
            yield RowFile(path, file, content, form)
        finally:
            if not os.fstat(file.fileno()).st_size:
                path.unlink(missing_ok=True)


def read_rows(path: Path, form: Format[_Content]) -> _Content:
    """Read a file without changing it. A row that was cut off is skipped.

    Raises:
        BadFile: the file cannot be read or is of another kind.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(path)) from None
    return parse_rows(raw[: raw.rfind(b"\n") + 1], path, form)


def parse_rows(raw: bytes, path: Path, form: Format[_Content]) -> _Content:
    """Parse complete rows; empty lines are skipped.

    Args:
        raw: bytes of the file.
        path: of the file, for error messages.
        form: expected format.

    Raises:
        BadFile: a line does not match the format; the error has its number.
    """
    content = form.empty()
    for number, line in enumerate(raw.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = form.parse(line)
        except ValueError:
            raise BadFile(form.mismatch, path=str(path), line=number) from None
        try:
            form.add(content, row)
        except ValueError as error:
            raise BadFile(str(error), path=str(path), line=number) from None
    return content
