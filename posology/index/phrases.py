"""How the phrases of a passage lie in the table: ten bytes a phrase, read back without a loop.

A table's column is decoded as one array, whatever the number of its passages, so that a question
hardly waits for it; the passages then get views of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from posology.types import Phrases

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

#: longest phrase that can be kept: code points, and words
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
    """Phrases as ten bytes each; the clauses are numbered anew, from 0 and without gaps.

    Raises:
        ValueError: a phrase is longer than :data:`MAX_LENGTH` or :data:`MAX_WORDS`.
    """
    lengths = phrases.ends - phrases.starts
    if (lengths > MAX_LENGTH).any() or (phrases.words > MAX_WORDS).any():
        raise ValueError(f"a phrase has at most {MAX_LENGTH} characters and {MAX_WORDS} words")
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
    """What :func:`encode` made, of a column of binary values; null gives ``None``.

    Raises:
        ValueError: a value is no whole number of phrases.
    """
    values = column.to_pylist()
    sizes = [0 if value is None else len(value) for value in values]
    if any(size % _RECORD.itemsize for size in sizes):
        raise ValueError("the phrases of a passage are cut off")
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
