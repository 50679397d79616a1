"""Lines of text files, plain or gzipped: decoded, counted, and of bounded length."""

from __future__ import annotations

import codecs
import gzip
import importlib
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from posology.corpus.items import sentence
from posology.errors import ReaderUnavailable

if TYPE_CHECKING:
    from lxml.etree import XMLParser

#: characters of a line; a longer one is skipped without being held
MAX_LINE = 1_000_000
#: errors of a text stream that cannot be read further
FAULTS = (OSError, EOFError, zlib.error, UnicodeError)

_GZIP = b"\x1f\x8b"
#: UTF-32's little-endian mark begins with that of UTF-16
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
#: a byte that is not UTF-8, as ``surrogateescape`` decodes it
_UNDECODED = re.compile("[\udc80-\udcff]")
_ENDS = ("\n", "\r")
#: characters before a wrong byte that are shown, so that it can be found
_BEFORE = 20


class TooLong(Exception):
    """A line, or the lines of one record, that are longer than allowed. Reading can continue."""


class Lines:
    """The lines of a text, with their ends; a byte that is not UTF-8 becomes a lone surrogate."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        #: lines read so far, which is the number of the last one
        self.number = 0
        #: characters that are still allowed; a caller sets it where a record begins
        self.room = MAX_LINE

    def __iter__(self) -> Lines:
        """Return itself."""
        return self

    def __next__(self) -> str:
        """Return the next line.

        Raises:
            TooLong: it is longer than :data:`MAX_LINE`, or than :attr:`room`; it is skipped.
        """
        line = self._stream.readline(MAX_LINE)
        if not line:
            raise StopIteration
        self.number += 1
        whole = len(line) < MAX_LINE or line.endswith(_ENDS)
        while not whole:
            rest = self._stream.readline(MAX_LINE)
            whole = not rest or rest.endswith(_ENDS)
            self.room = -1
        self.room -= len(line)
        if self.room < 0:
            raise TooLong(f"longer than {MAX_LINE:,} characters")
        return line

    def read(self, limit: int) -> str:
        """Return the rest of the text, up to so many characters."""
        return self._stream.read(limit)


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedIOBase]:
    """Open a file's bytes, unpacked if it is gzipped (detected by content)."""
    with path.open("rb") as raw:
        packed = raw.read(2) == _GZIP
        raw.seek(0)
        with gzip.open(raw, "rb") if packed else raw as stream:
            yield stream


def xml_parser(encoding: str | None = None) -> XMLParser:
    """Return a parser of XML from anywhere: without comments and instructions, it expands no entity and fetches nothing.

    Args:
        encoding: of the bytes, whatever they say; ``None``: as they say.
    """
    from lxml import etree

    return etree.XMLParser(
        encoding=encoding,
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )


@contextmanager
def text_lines(path: Path) -> Iterator[Lines]:
    """Open a text in UTF-8, or in UTF-16 or UTF-32 with a byte order mark.

    Raises:
        OSError: the file cannot be opened. Reading raises any of :data:`FAULTS`.
    """
    with opened(path) as stream:
        start = stream.peek(4)[:4]  # type: ignore[attr-defined]  # both kinds of stream are buffered
        encoding = next((name for mark, name in _MARKS if start.startswith(mark)), "utf-8")
        with io.TextIOWrapper(
            cast("io.BufferedReader", stream),
            encoding=encoding,
            errors="surrogateescape",
            newline="",
        ) as text:
            yield Lines(text)


def beginning(path: Path, size: int) -> bytes:
    """Return a file's first bytes, unpacked, without a byte order mark of UTF-8, as far as they can be read."""
    start = bytearray()
    try:
        with opened(path) as stream:
            # at once, it would lose what comes before a break
            while len(start) < size and (part := stream.read1(size - len(start))):
                start += part
    except FAULTS:
        pass  # the reader reports it
    return bytes(start).removeprefix(codecs.BOM_UTF8)


def beginning_text(path: Path, size: int) -> str:
    """Return the text that a file's first bytes hold, in UTF-8 or with a byte order mark, with line feeds alone."""
    start = beginning(path, size)
    encoding = next((name for mark, name in _MARKS if start.startswith(mark)), "utf-8")
    return re.sub(r"\r\n?", "\n", start.decode(encoding, errors="replace"))


def whole_text(path: Path, limit: int) -> str | None:
    """Return a text in full; ``None``: it has more than ``limit`` characters.

    Raises:
        OSError: the file cannot be opened; or another of :data:`FAULTS`.
    """
    with text_lines(path) as lines:
        text = lines.read(limit + 1)
    return None if len(text) > limit else text


def require(module: str, *, package: str, extra: str, files: str) -> None:
    """Check that a package of an extra is installed.

    Raises:
        ReaderUnavailable: it is not.
    """
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise ReaderUnavailable(
            f"{files} need {package}: pip install 'posology[{extra}]'", package=package
        ) from error


def undecoded(text: str) -> str | None:
    """Return which byte of a text is not UTF-8, and what stands before it; ``None``: all of it is."""
    found = _UNDECODED.search(text)
    if found is None:
        return None
    before = " ".join(text[max(0, found.start() - _BEFORE) : found.start()].split())
    where = f' after "{before}"' if before else ""
    return f"not UTF-8 (byte 0x{ord(found[0]) - 0xDC00:02X}{where}): save the file as UTF-8"


def message(error: BaseException) -> str:
    """Return the reason why a text cannot be read further."""
    if isinstance(error, UnicodeDecodeError):
        byte = f" (byte 0x{error.object[error.start]:02X})" if error.object else ""
        return f"not {error.encoding}{byte}: save the file as UTF-8"
    reason = error.strerror if isinstance(error, OSError) else None
    return sentence(reason or str(error))
