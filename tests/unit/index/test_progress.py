"""Marks of how far files are: many of them, and what they leave."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from posology.index import maintenance
from posology.index.build import progress
from posology.index.build.progress import Mark, Progress
from posology.index.store import Index


def test_however_many_marks_are_written_their_table_stays_small(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "TIDY_EVERY", 5)
    monkeypatch.setattr(maintenance, "KEEP", timedelta(milliseconds=1))
    file = tmp_path / "a.jsonl"
    file.write_text("a")
    start = Mark.start(file, "")
    marks = Progress(index.connection)
    for line in range(1, 24):
        marks.write(replace(start, line=line))
    table = index.connection.open_table("ingested")
    assert table.count_rows() == 1
    assert len(table.list_versions()) < 10
    assert Progress(index.connection).resume(start) == replace(start, line=23)
