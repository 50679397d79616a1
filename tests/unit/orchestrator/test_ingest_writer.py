"""Opening an index for writing."""

from __future__ import annotations

from pathlib import Path

from orchestrator.ingest.writer import Target, open_writer
from orchestrator.settings import Settings
from posology.testing.models.embedder import HashEmbedder


def test_an_encoder_that_is_loaded_is_not_loaded_again(tmp_path: Path) -> None:
    settings = Settings.model_validate({"POSOLOGY_EMBEDDER": str(tmp_path / "none")})
    encoder = HashEmbedder()
    with open_writer(settings, Target(place=tmp_path / "index", encoder=encoder)) as writer:
        assert writer.source.embedder is encoder
        assert writer.index.meta.embedder == encoder.name
