"""Binary format of a passage's phrases: ten bytes each, decoded without a loop.

The column of any number of passages is decoded as one array, which takes little time; each passage gets a view of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from posology.types import Phrases

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

#: limits of a phrase that can be stored: code points, and words
MAX_LENGTH, MAX_WORDS = 65_535, 255

_RECORD = np.dtype(
    [
        ("start", "<u4"),
        ("length", "<u2"),
        ("words", "u1"),
        ("flags", "u1"),
        # bits of information are about 1 to 60: float16 keeps them to three digits
        ("information", "<f2"),
    ]
)
_PROTECTED, _NEW_CLAUSE = 1, 2
_LARGEST = float(np.finfo(np.float16).max)


def encode(phrases: Phrases) -> bytes:
    """Encode phrases as ten bytes each; the clauses are renumbered from 0 without gaps.

    Raises:
        ValueError: a phrase is longer than :data:`MAX_LENGTH` or :data:`MAX_WORDS`.
    """
    lengths = phrases.ends - phrases.starts
    if (lengths > MAX_LENGTH).any() or (phrases.words > MAX_WORDS).any():
        raise ValueError(f"a phrase must have <= {MAX_LENGTH} characters and <= {MAX_WORDS} words")
    records = np.empty(len(phrases.starts), dtype=_RECORD)
    records["start"] = phrases.starts
    records["length"] = lengths
    records["words"] = phrases.words
    records["information"] = np.clip(phrases.information, -_LARGEST, _LARGEST)
    new = np.diff(phrases.clauses, prepend=-1) != 0
    new[:1] = True
    records["flags"] = phrases.protected * _PROTECTED + new * _NEW_CLAUSE
    return records.tobytes()


def decode(column: pa.Array) -> list[Phrases | None]:
    """Decode a column of binary values of :func:`encode`; null gives ``None``.

    Raises:
        ValueError: a value is not a whole number of phrases.
    """
    values = column.to_pylist()
    sizes = [0 if value is None else len(value) for value in values]
    if any(size % _RECORD.itemsize for size in sizes):
        raise ValueError(
            "the phrases of a passage are cut off: a value must have a multiple of 10 bytes"
        )
    records = np.frombuffer(b"".join(v for v in values if v is not None), dtype=_RECORD)
    starts = records["start"].astype(np.int32)
    ends = starts + records["length"]
    words = records["words"].astype(np.int32)
    information = records["information"].astype(np.float32)
    protected = (records["flags"] & _PROTECTED).astype(np.bool_)
    clauses: NDArray[np.int32] = np.cumsum(records["flags"] // _NEW_CLAUSE % 2, dtype=np.int32)
    decoded: list[Phrases | None] = []
    at = 0
    for value, size in zip(values, sizes, strict=True):
        if value is None:
            decoded.append(None)
            continue
        part = slice(at, at + size // _RECORD.itemsize)
        at = part.stop
        decoded.append(
            Phrases(
                starts=starts[part],
                ends=ends[part],
                words=words[part],
                information=information[part],
                clauses=clauses[part] - clauses[part][:1],
                protected=protected[part],
            )
        )
    return decoded
