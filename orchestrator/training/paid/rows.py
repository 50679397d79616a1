"""A file that grows by a row for each reply that was paid for, and is never written over.

A row that broke off, since its process was killed, is cut away when the file is opened again; a file of somebody
else's is left as it is.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from posology.errors import BadFile

#: how every row starts that this writes
_START = b'{"row":"'


class Row(BaseModel):
    """A line of JSON; ``row`` says of which kind."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Failed(Row):
    """A call that no reply came of. It is made again when the run goes on."""

    row: Literal["failure"] = "failure"
    #: content of the call
    call: str
    #: name of the error
    error: str
    message: str
    #: dollars that count against limits
    cost: Decimal


_Line = TypeVar("_Line", bound=Row)
_Held = TypeVar("_Held")


@dataclass(frozen=True, kw_only=True, slots=True)
class Format(Generic[_Line, _Held]):
    """What files of one kind hold."""

    #: reads a row; raises ``ValueError`` where it is none
    parse: Callable[[bytes], _Line]
    #: what there is before the first row
    empty: Callable[[], _Held]
    #: takes a row in; raises ``ValueError``, saying why, where it may not stand there
    add: Callable[[_Held, _Line], None]
    #: what is said of something else
    stranger: str


class RowFile(Generic[_Line, _Held]):
    """An open file. What :meth:`write` returned from is kept, whatever happens then."""

    def __init__(
        self, path: Path, file: BinaryIO, content: _Held, form: Format[_Line, _Held]
    ) -> None:
        self.path = path
        #: all that is in it
        self.content = content
        self._file = file
        self._form = form

    def write(self, *rows: _Line) -> None:
        """Append rows.

        Raises:
            BadFile: the file system does not take them.
        """
        try:
            self._file.write(b"".join(f"{row.model_dump_json()}\n".encode() for row in rows))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise BadFile(error.strerror or str(error), path=str(self.path)) from None
        for row in rows:
            self._form.add(self.content, row)


@contextmanager
def open_rows(path: Path, form: Format[_Line, _Held]) -> Iterator[RowFile[_Line, _Held]]:
    """Open a file to go on with, a new one where there is none, and keep others from writing it.

    Raises:
        BadFile: it cannot be read or written, holds something else, or another process writes it.
    """
    try:
        file = path.open("a+b")
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(path)) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadFile("another process writes it: wait for it", path=str(path)) from None
        file.seek(0)
        content = file.read()
        whole = content.rfind(b"\n") + 1
        held = parse_rows(content[:whole], path, form)
        broken = content[whole:]
        if not broken.startswith(_START[: len(broken)]):
            # somebody else's, which is not to be cut
            raise BadFile(form.stranger, path=str(path))
        file.truncate(whole)
        try:
            yield RowFile(path, file, held, form)
        finally:
            if not os.fstat(file.fileno()).st_size:
                # nothing was asked, and nothing is left lying about
                path.unlink(missing_ok=True)


def read_rows(path: Path, form: Format[_Line, _Held]) -> _Held:
    """Read a file, and leave it as it is; a row that broke off is passed over.

    Raises:
        BadFile: it cannot be read, or holds something else.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(path)) from None
    return parse_rows(content[: content.rfind(b"\n") + 1], path, form)


def parse_rows(content: bytes, path: Path, form: Format[_Line, _Held]) -> _Held:
    """What whole rows come to; empty lines are passed over.

    Args:
        content: of a file.
        path: of that file, for whoever is told of it.
        form: what it should hold.

    Raises:
        BadFile: naming the line that is something else.
    """
    held = form.empty()
    for number, raw in enumerate(content.splitlines(), 1):
        if not raw.strip():
            continue
        try:
            row = form.parse(raw)
        except ValueError:
            raise BadFile(form.stranger, path=str(path), line=number) from None
        try:
            form.add(held, row)
        except ValueError as error:
            raise BadFile(str(error), path=str(path), line=number) from None
    return held
