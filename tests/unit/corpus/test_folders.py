from __future__ import annotations

from pathlib import Path

import pytest

from posology.corpus.folders import PROGRAMS, expand, skipped


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    """A folder as a reference manager keeps it: each paper in a folder of its own."""
    folder = tmp_path / "papers"
    for name in ("b/paper.txt", "a/2020/paper.txt", "c.txt", "a/figure.png", "a/README.txt"):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("Aspirin was given daily.", encoding="utf-8")
    return folder


def test_folders_in_a_folder_are_read_in_order(papers: Path) -> None:
    found = [papers / "a/2020/paper.txt", papers / "b/paper.txt", papers / "c.txt"]
    assert list(expand([papers])) == found
    # a folder that is given, too, is read once
    assert list(expand([papers / "b", papers])) == [found[1], found[0], found[2]]
    assert list(expand([papers], subfolders=False)) == [papers / "c.txt"]


def test_files_that_are_not_read_are_named_at_any_depth(papers: Path) -> None:
    reasons = {one.path: one.reason for one in skipped([papers])}
    assert set(reasons) == {papers / "a/README.txt", papers / "a/figure.png"}
    assert "about the folder" in reasons[papers / "a/README.txt"]
    # a file that is given is read
    assert {one.path for one in skipped([papers, papers / "a/README.txt"])} == {
        papers / "a/figure.png"
    }


@pytest.mark.parametrize(
    ("content", "start", "instead"),
    [
        ('[{"id": "1", "type": "article-journal", "title": "Salt"}]', "CSL JSON", "RIS or BibTeX"),
        ('{"a": 1}', "JSON that is no study record", "one record per line"),
    ],
)
def test_json_that_is_not_read_is_named(
    tmp_path: Path, content: str, start: str, instead: str
) -> None:
    (tmp_path / "a.json").write_text(content, encoding="utf-8")
    (one,) = skipped([tmp_path])
    assert one.reason.startswith(start)
    assert instead in one.reason
    assert ".json" not in one.reason.replace(".jsonl", "")


@pytest.mark.parametrize("name", [*PROGRAMS, ".git", "index"])
def test_folders_of_programs_hidden_ones_and_indexes_are_named_not_searched(
    papers: Path, name: str
) -> None:
    (papers / name / "passages.lance").mkdir(parents=True)
    (papers / name / "notes.txt").write_text("No literature.", encoding="utf-8")
    assert papers / name / "notes.txt" not in list(expand([papers]))
    assert papers / name in {one.path for one in skipped([papers])}
    # unless they are given
    assert list(expand([papers / name])) == [papers / name / "notes.txt"]


def test_a_link_to_a_folder_is_not_followed(papers: Path) -> None:
    (papers / "b" / "up").symlink_to(papers / "a")
    assert len(list(expand([papers]))) == 3
    (link,) = [one for one in skipped([papers]) if one.path.name == "up"]
    assert link.reason.startswith("a link to a folder")
