from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from posology.errors import BadFile, InputError
from posology.index.build.vectors import GivenVectors


def save(path: Path, array: np.ndarray) -> Path:
    np.save(path, array)
    return path


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_rows_are_unit_vectors_of_float32(tmp_path: Path, dtype: type) -> None:
    random = np.random.default_rng(0).normal(size=(10, 32))
    unit = random / np.linalg.norm(random, axis=1, keepdims=True)
    given = GivenVectors(save(tmp_path / "v.npy", unit.astype(dtype)), dim=32)
    assert len(given) == 10
    assert given.vector(3).dtype == np.float32
    assert np.linalg.norm(given.vector(3)) == pytest.approx(1, abs=1e-6)
    assert given.vector(3) == pytest.approx(unit[3], abs=1e-3)


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.eye(4, dtype=np.float64), "float16 or float32"),
        (np.eye(5, dtype=np.float32), r"shape \(rows, 4\)"),
        (np.ones(4, dtype=np.float32), r"shape \(rows, 4\)"),
        (np.ones((3, 4), dtype=np.float32), "row 0"),
        (np.array([[1, 0, 0, 0], [np.nan] * 4], dtype=np.float32), "row 1"),
    ],
)
def test_other_arrays_are_refused(
    tmp_path: Path,
    array: np.ndarray,
    reason: str,
) -> None:
    with pytest.raises(BadFile, match=reason):
        GivenVectors(save(tmp_path / "v.npy", array), dim=4)


@pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY\x01\x00"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "v.npy"
    path.write_bytes(content)
    with pytest.raises(BadFile, match=r"\.npy"):
        GivenVectors(path, dim=4)
    with pytest.raises(BadFile, match=r"\.npy"):
        GivenVectors(tmp_path / "none.npy", dim=4)


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    path = tmp_path / "v.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(BadFile, match=r"\.npy"):
        GivenVectors(path, dim=4)


def test_a_wrong_number_of_rows_is_said_with_both_numbers(tmp_path: Path) -> None:
    given = GivenVectors(save(tmp_path / "v.npy", np.eye(4, dtype=np.float32)), dim=4)
    given.expect(4, path=Path("a.jsonl"))
    with pytest.raises(InputError, match=r"a\.jsonl has 5 records and .* has 4 vectors"):
        given.expect(5, path=Path("a.jsonl"))


def test_vectors_whose_lengths_count_are_left_as_they_are(tmp_path: Path) -> None:
    rows = np.array([[3, 0, 0, 0], [0, 0.5, 0, 0]], dtype=np.float16)
    given = GivenVectors(save(tmp_path / "v.npy", rows), dim=4, unit=False)
    np.testing.assert_array_equal(given.vector(0), [3, 0, 0, 0])
    assert given.vector(1).dtype == np.float32
    for row in ([0, 0, 0, 0], [np.inf, 0, 0, 0], [np.nan, 0, 0, 0]):
        broken = np.array([rows[0], row], dtype=np.float32)
        with pytest.raises(BadFile, match="row 1"):
            GivenVectors(save(tmp_path / "w.npy", broken), dim=4, unit=False)
