from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.question import qtables
from posology.errors import BadArtefact, BadFile
from tests.unit.policies.tables import table


def test_a_table_is_written_and_read(tmp_path: Path) -> None:
    of, path = table(), tmp_path / "table.json"
    qtables.save(of, path)
    assert qtables.load(path).digest == of.digest
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_table_takes_the_place_of_another_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    qtables.save(table(), path)
    qtables.save(table(alpha=0.9), path)
    assert qtables.load(path).alpha == 0.9
    assert list(tmp_path.iterdir()) == [path]


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "table.json").mkdir()
    with pytest.raises(BadFile) as caught:
        qtables.save(table(), tmp_path / "table.json")
    assert caught.value.path == str(tmp_path / "table.json")
    assert [found.name for found in tmp_path.iterdir()] == ["table.json"]


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="No such file"):
        qtables.save(table(), tmp_path / "none" / "table.json")


def test_where_no_table_is_it_is_said_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(BadArtefact, match=r"No such file.*posology policy train"):
        qtables.load(tmp_path / "table.json")


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"{}"])
def test_what_is_no_table_is_said(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "table.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadArtefact, match=str(path)):
        qtables.load(path)
