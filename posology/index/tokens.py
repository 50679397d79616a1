"""Binary format of a passage's token codes: a head of counts, then the codes.

Codes are most of a passage's data, so they are never copied: decoding returns views of the table's bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from posology.types import TokenCodes

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from posology.seams import TokenCodec

#: type of the width, the number of counts, and each count; a sentence may have any number of tokens
_NUMBER = np.dtype("<u4")


def fitting(codec: TokenCodec | None, embedder: str) -> TokenCodec | None:
    """Return the codec if it was trained on this embedder's vectors, else ``None``.

    An index may have any embedder; only some embedders have a codec.
    """
    return codec if codec is not None and codec.embedder == embedder else None


def encode(tokens: TokenCodes) -> bytes:
    """Encode token codes: eight bytes, four per count, and the codes.

    Raises:
        ValueError: the counts do not match the codes.
    """
    if int(tokens.counts.sum()) != len(tokens.codes) or (tokens.counts < 0).any():
        raise ValueError(
            f"counts of {int(tokens.counts.sum())} tokens do not match {len(tokens.codes)} codes"
        )
    head = np.array([tokens.codes.shape[1], len(tokens.counts), *tokens.counts], dtype=_NUMBER)
    return head.tobytes() + np.ascontiguousarray(tokens.codes, dtype=np.uint8).tobytes()


def decode(column: pa.Array | pa.ChunkedArray) -> list[TokenCodes | None]:
    """Decode a column of ``large_binary`` values of :func:`encode`; null gives ``None``. The codes are read-only.

    Raises:
        ValueError: a value is cut off.
    """
    chunks = column.chunks if hasattr(column, "chunks") else [column]
    return [found for chunk in chunks for found in _decode(chunk)]


def _decode(chunk: pa.Array) -> Iterator[TokenCodes | None]:
    if not len(chunk):
        return
    # a scalar of Arrow's is a copy of its bytes
    _, offsets, buffer = chunk.buffers()
    data = np.frombuffer(b"" if buffer is None else buffer, np.uint8)
    data.flags.writeable = False
    ends = np.frombuffer(offsets, np.int64, count=len(chunk) + 1, offset=8 * chunk.offset)
    for i, valid in enumerate(chunk.is_valid().to_pylist()):
        yield _read(data[ends[i] : ends[i + 1]]) if valid else None


def _read(value: NDArray[np.uint8]) -> TokenCodes:
    try:
        width, counted = (int(n) for n in value[: 2 * _NUMBER.itemsize].view(_NUMBER))
        start = (2 + counted) * _NUMBER.itemsize
        counts = value[2 * _NUMBER.itemsize : start].view(_NUMBER).astype(np.int32)
        codes = value[start:].reshape(int(counts.sum()), width)
    except ValueError as error:
        raise ValueError("the token codes of a passage are cut off") from error
    if len(counts) != counted:
        raise ValueError("the token codes of a passage are cut off")
    return TokenCodes(codes=codes, counts=counts)
