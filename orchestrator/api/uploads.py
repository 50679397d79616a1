"""Uploads of batches: stored until they are complete, then read line by line."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from tempfile import SpooledTemporaryFile

import anyio
from anyio import to_thread
from fastapi import Request

from orchestrator.api.bodies import check_type, chunks, too_large
from orchestrator.api.context import Limits
from orchestrator.api.problems import RequestProblem
from orchestrator.jobs.rows import MAX_ROW

#: not text/plain, which any web page may send to any address without being asked
TYPES = ("application/x-ndjson", "application/jsonl")
#: bytes of an upload kept in memory; the rest goes to a file
_IN_MEMORY = 1024 * 1024
#: bytes unpacked at once
_PIECE = 256 * 1024
#: zlib's window bits for a gzip header
_GZIP = 16 + zlib.MAX_WBITS


class Upload:
    """The lines of a complete upload."""

    def __init__(self, file: SpooledTemporaryFile[bytes]) -> None:
        self._file = file

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the lines; of a line that is too long, enough bytes to detect it."""
        self._file.seek(0)
        lines = self._lines()
        while piece := await to_thread.run_sync(_some, lines):
            for line in piece:
                yield line

    def _lines(self) -> Iterator[bytes]:
        while line := self._file.readline(MAX_ROW + 1):
            rest = line
            while not rest.endswith(b"\n") and rest:
                rest = self._file.readline(_PIECE)
            yield line


def _some(lines: Iterator[bytes]) -> list[bytes]:
    found: list[bytes] = []
    size = 0
    for line in lines:
        found.append(line)
        size += len(line)
        if size > _PIECE:
            break
    return found


@asynccontextmanager
async def received(request: Request, limits: Limits) -> AsyncIterator[Upload]:
    """Receive an upload; one that is interrupted or too large leaves nothing behind.

    Raises:
        RequestProblem: too many bytes or rows, a slow or broken body, or an unsupported media type or encoding.
    """
    check_type(request, TYPES)
    pieces = chunks(request, limit=limits.batch_bytes)
    match request.headers.get("content-encoding", "identity").strip().lower():
        case "identity":
            pass
        case "gzip" | "x-gzip":
            pieces = _unpacked(pieces)
        case _:
            raise RequestProblem(
                415,
                "UnsupportedEncoding",
                "The content encoding is not supported",
                "send the body without encoding, or with gzip",
                headers={"Accept-Encoding": "gzip"},
                accepted=["gzip", "identity"],
            )
    with SpooledTemporaryFile[bytes](max_size=_IN_MEMORY) as file:
        try:
            with anyio.fail_after(limits.upload):
                await _store(pieces, file, limits)
        except TimeoutError:
            raise RequestProblem(
                408,
                "UploadTooSlow",
                "The upload took too long",
                f"the batch must arrive within {limits.upload:g} s: split it",
                headers={"Connection": "close"},
                limit=limits.upload,
            ) from None
        yield Upload(file)


async def _store(
    pieces: AsyncIterator[bytes], file: SpooledTemporaryFile[bytes], limits: Limits
) -> None:
    size = rows = 0
    async for piece in pieces:
        size += len(piece)
        if size > limits.batch_bytes:
            raise too_large(limits.batch_bytes)
        rows += piece.count(b"\n")
        if rows > limits.batch_rows:
            raise RequestProblem(
                413,
                "TooManyRows",
                "The batch has too many rows",
                f"the batch has more than {limits.batch_rows} rows: split it",
                headers={"Connection": "close"},
                limit=limits.batch_rows,
            )
        await to_thread.run_sync(file.write, piece)


async def _unpacked(packed: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Decompress gzip in pieces of bounded size; a small upload may decompress to any size."""
    unpack = zlib.decompressobj(_GZIP)
    begun = False
    async for chunk in packed:
        left, more = chunk, bool(chunk)
        while more:
            if unpack.eof:
                # gzip files may be concatenated
                unpack = zlib.decompressobj(_GZIP)
            begun = True
            try:
                piece = unpack.decompress(left, _PIECE)
            except zlib.error:
                raise _broken() from None
            left = unpack.unused_data if unpack.eof else unpack.unconsumed_tail
            # all input may be consumed while output is still pending
            more = bool(left) or (len(piece) == _PIECE and not unpack.eof)
            yield piece
    if begun and not unpack.eof:
        raise _broken()


def _broken() -> RequestProblem:
    return RequestProblem(
        400,
        "MalformedBody",
        "The body cannot be read",
        "the body is not a complete gzip file, although Content-Encoding says gzip",
    )
