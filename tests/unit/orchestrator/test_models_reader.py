"""Which method the offline reader gets: by the settings, and by the weights that are installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.models import Models
from orchestrator.settings import Settings
from orchestrator.settings.values import ReaderOptions
from posology.reading import crossencoder


@pytest.mark.parametrize(
    ("installed", "method", "crossed"),
    [(True, "cross-encoder", True), (True, "late", False), (False, "cross-encoder", False)],
)
def test_the_cross_encoder_reads_where_its_weights_are(
    installed: bool, method: str, crossed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if installed:
        (tmp_path / crossencoder.FILE).touch()
    monkeypatch.setattr(crossencoder, "MODELS", tmp_path)
    settings = Settings.model_validate({"POSOLOGY_READER": method, "POSOLOGY_READER_TOKENS": 7})
    assert settings.reading == ReaderOptions(method=settings.reader, tokens=7, seconds=60)
    # nothing is loaded before the first call
    reader = Models(None).offline(settings.reading)
    assert reader.crossed is crossed  # type: ignore[attr-defined]
