"""What a user sees of an ingest: its phases, records, rate and time left."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress

from orchestrator.ingest.ingest import Shown, run_ingest
from orchestrator.ingest.writer import Target
from orchestrator.settings import load_settings
from posology.index.build.report import IngestProgress


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_without_a_terminal_a_line_every_20_seconds_says_rate_and_time_left() -> None:
    clock, lines = Clock(), list[str]()
    with Progress(disable=True) as bar:
        shown = Shown(bar, lines.append, clock)
        shown.phase("encoding")
        shown.start(400)
        for _ in range(100):
            clock.now += 0.5
            shown.row()
        clock.now += 1.0
        shown.committed(
            IngestProgress(
                path="a", line=1, written=150, unchanged=40, replaced=4, bad=6, seconds=51.0
            )
        )
        clock.now += 20.0
        shown.row()
    assert lines == [
        "encoding …",
        "encoding: 40 of 400 records, 2.0 a second, 3 min 00 s left",
        "encoding: 80 of 400 records, 2.0 a second, 2 min 40 s left",
        "encoding: 201 of 400 records, 2.8 a second, 1 min 10 s left",
    ]


def test_all_phases_of_an_ingest_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSOLOGY_CACHE", "off")
    path = tmp_path / "a.jsonl"
    path.write_text(
        "".join(json.dumps({"id": f"n:{i}", "text": f"Aspirin, {i} mg."}) + "\n" for i in range(3))
    )
    out = io.StringIO()
    settings = load_settings().model_copy(update={"embedder_backend": "torch"})
    report = run_ingest(
        [path], settings, Target(place=str(tmp_path / "index")), console=Console(file=out)
    )
    assert report.written == 3
    names = [line.removesuffix(" …") for line in out.getvalue().splitlines()]
    assert names == [
        "loading the encoder",
        "counting records",
        "learning the words of the literature",
        "encoding",
        "updating the search indices",
    ]
