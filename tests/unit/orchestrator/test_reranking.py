from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.retrieval import RERANKERS, make_reranker
from orchestrator.settings import Settings
from posology.errors import ConfigurationError, DeviceUnavailable, ModelUnavailable
from posology.index.store import Index
from posology.testing.models.medcpt import save_tiny_bert, save_tiny_medcpt
from posology.testing.models.reranker import save_tiny_reranker


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index.create(tmp_path / "index", "hash-8", 8)


def chosen(name: str | None) -> Settings:
    return Settings(POSOLOGY_RERANKER=name)


def test_nothing_re_ranks_unless_it_is_said(index: Index) -> None:
    assert make_reranker(chosen(None), index) is None


@pytest.mark.parametrize(
    ("kind", "save", "name"),
    [("nsp", save_tiny_bert, "nsp-bert:"), ("provence", save_tiny_reranker, "provence:")],
)
def test_a_reranker_of_a_folder(
    index: Index, tmp_path: Path, kind: str, save: Callable[[Path], Path], name: str
) -> None:
    made = make_reranker(chosen(f"{kind}:{save(tmp_path / 'model')}"), index)
    assert made is not None
    assert made.name.startswith(name)


def test_the_pruner_needs_token_codes(index: Index) -> None:
    with pytest.raises(ConfigurationError, match="POSOLOGY_TOKEN_CODES"):
        make_reranker(chosen("pruner"), index)


@pytest.mark.parametrize("name", ["bm25", "nsp", "pruner:x", ":x"])
def test_another_name_is_refused(index: Index, name: str) -> None:
    with pytest.raises(ConfigurationError, match="POSOLOGY_RERANKER"):
        make_reranker(chosen(name), index)


def test_medcpts_cross_encoder_runs_where_encoders_run(index: Index, tmp_path: Path) -> None:
    named = save_tiny_medcpt(tmp_path).reranker
    here = Settings(POSOLOGY_RERANKER=named, POSOLOGY_EMBEDDER_DEVICE="cpu")
    made = make_reranker(here, index)
    assert made is not None
    assert made.name.startswith("medcpt-cross:")
    away = Settings(POSOLOGY_RERANKER=named, POSOLOGY_EMBEDDER_DEVICE="cuda:99")
    with pytest.raises(DeviceUnavailable, match="cuda:99"):
        make_reranker(away, index)


@pytest.mark.parametrize("kind", sorted(set(RERANKERS) - {"pruner"}))
def test_a_model_that_is_not_here_is_refused(index: Index, kind: str) -> None:
    with pytest.raises(ModelUnavailable):
        make_reranker(chosen(f"{kind}:nobody/nothing"), index)
