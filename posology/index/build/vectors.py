"""Passage vectors computed elsewhere, in a ``.npy`` file beside the corpus file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from posology.errors import BadFile, InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: how far from 1 a row's length may be; float16 keeps unit vectors within 0.001
_TOLERANCE = 0.01
_CHUNK = 65_536


class GivenVectors:
    """Memory-mapped array, shape ``(rows, dim)``, float16 or float32, rows of unit length or as a model returns them.

    Row i belongs to the i-th non-blank line of the corpus file, counted from 0; a bad record has a row too.
    """

    def __init__(self, path: Path, *, dim: int, unit: bool = True) -> None:
        """Check the whole array.

        Args:
            path: the file.
            dim: length of a row.
            unit: whether rows must be of unit length; otherwise they must be finite and not all 0.

        Raises:
            BadFile: the file holds no such array.
        """
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise BadFile(f"not a readable .npy file: {error}", path=str(path)) from error
        if not isinstance(array, np.ndarray) or array.dtype not in (np.float16, np.float32):
            raise BadFile("vectors must be one array of float16 or float32", path=str(path))
        if array.ndim != 2 or array.shape[1] != dim:
            raise BadFile(
                f"vectors must have shape (rows, {dim}) (got {array.shape})",
                path=str(path),
            )
        for start in range(0, len(array), _CHUNK):
            lengths = np.linalg.norm(array[start : start + _CHUNK].astype(np.float32), axis=1)
            right = (
                np.abs(lengths - 1) <= _TOLERANCE if unit else np.isfinite(lengths) & (lengths > 0)
            )
            wrong = np.flatnonzero(~right)
            if wrong.size:
                flaw = (
                    "must be of unit length: normalise the vectors"
                    if unit
                    else "must be finite and not all 0"
                )
                raise BadFile(f"row {start + int(wrong[0])} {flaw}", path=str(path))
        self._unit = unit
        self._array = array
        stat = path.stat()
        #: identity of the file and its content
        self.identity = f"{path.resolve()}:{stat.st_size}:{stat.st_mtime_ns}"
        self._path = path

    def __len__(self) -> int:
        return len(self._array)

    def expect(self, rows: int, *, path: Path) -> None:
        """Check the number of vectors against the number of records of a corpus file.

        Raises:
            InputError: the numbers differ.
        """
        if rows != len(self):
            raise InputError(
                f"{path} has {rows} records and {self._path} has {len(self)} vectors: "
                "row i must be the vector of record i",
                records=rows,
                vectors=len(self),
            )

    def raw(self, row: int) -> bytes:
        """Return the vector's bytes in the file, to detect a change."""
        return bytes(self._array[row].tobytes())

    def vector(self, row: int) -> NDArray[np.float32]:
        """Return the vector of a record, normalised after the rounding of float16 if it must be of unit length."""
        vector = self._array[row].astype(np.float32)
        if not self._unit:
            return np.asarray(vector, dtype=np.float32)
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)
