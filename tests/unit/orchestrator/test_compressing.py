"""Compressors by name: made once, refused with the list of those that there are."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchestrator.compressors import (
    Compressors,
    check,
    make_compressor,
    make_compressors,
    make_memory,
)
from orchestrator.settings import DEFAULT_COMPRESSOR, Settings
from posology.errors import ConfigurationError, InvalidQuery
from posology.seams import Rewriter
from posology.types import Compressed
from strategies.compression import COMPRESSORS
from strategies.compression.late.pruner import Pruner
from strategies.compression.parts import Parts
from strategies.compression.self_information.annotator import NgramScorer
from tests.support.compression import WRITTEN, compressible


def configured(**fields: object) -> Settings:
    return Settings().model_copy(update=fields)


def test_the_configured_one_is_made_where_nobody_names_one() -> None:
    made = make_compressors(configured(compressor="leancontext_top"))
    assert made(None).name == "leancontext_top"
    assert made("leancontext").name == "leancontext"
    assert made.default == "leancontext_top"


def test_each_is_made_once_whoever_asks() -> None:
    made = Compressors("leancontext")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: made("selective_context"), range(32)))
    assert len({id(one) for one in found}) == 1
    assert made(None) is made("leancontext")


def test_cascades_share_what_is_loaded_for_their_parts() -> None:
    loaded = []

    def scorer() -> NgramScorer:
        loaded.append(1)
        # as long as a model takes, so that whoever else asks comes meanwhile
        time.sleep(0.05)
        learned = NgramScorer()
        learned.learn(WRITTEN)
        return learned

    made = Compressors("leancontext", Parts(scorer=scorer))
    names = [
        "selective_context_word",
        *(f"top:0.{share}+selective_context_word" for share in range(1, 8)),
    ]
    retrieval = compressible(WRITTEN)

    def compress(name: str) -> Compressed:
        one = made(name)
        assert not isinstance(one, Rewriter)
        return one(retrieval, None)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(compress, names))
    assert [one.compressor for one in found] == names
    assert len(loaded) == 1


@pytest.mark.parametrize("name", ["magic", "top+magic", "top+", "bottom+leancontext", ""])
def test_a_name_that_nobody_has_is_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(InvalidQuery) as raised:
        check(name)
    assert raised.value.field == "compressor"
    for known in COMPRESSORS:
        assert known in raised.value.message
    with pytest.raises(ConfigurationError, match="POSOLOGY_COMPRESSOR to one of leancontext"):
        Compressors(name)


def test_names_are_checked_without_loading_anything() -> None:
    for name in (*COMPRESSORS, *(f"top:0.3+{name}" for name in COMPRESSORS), None):
        check(name)


def test_a_version_says_the_model_and_loads_nothing() -> None:
    made = Compressors("leancontext", Parts(models={"provence": "/no/such/folder"}))
    assert made.version("provence") == "provence /no/such/folder"
    assert made.version("top:0.2+provence") == "top:0.2+provence /no/such/folder"
    assert made.version(None) == "leancontext"


@pytest.mark.parametrize("name", ["pruner", "pruner+leancontext", "top+pruner"])
def test_a_version_says_what_the_pruner_has_learned(name: str) -> None:
    assert Compressors("leancontext").version(name) == f"{name} {Pruner().version}"


def test_what_it_is_made_from_is_missing() -> None:
    with pytest.raises(ConfigurationError, match="POSOLOGY_COMPRESSOR_MODEL"):
        make_compressors(configured())("selective_context_word")


def test_what_is_kept_for_good_is_where_it_is_configured(tmp_path: Path) -> None:
    place, home = tmp_path / "new" / "kept.sqlite", tmp_path / "home"
    for settings in (configured(memory=str(place)), configured(home=str(home))):
        make_memory(settings).put({b"key": b"value"})
        assert make_memory(settings).get([b"key", b"other"]) == {b"key": b"value"}
    assert place.exists()
    assert any(one.name.startswith("memory") for one in home.iterdir())
    with pytest.raises(ConfigurationError, match="POSOLOGY_MEMORY"):
        make_memory(configured(memory=str(place / "below" / "a file")))


def test_shares_are_not_learned_from_what_asks_a_model() -> None:
    assert make_compressor(configured()).name == DEFAULT_COMPRESSOR
    assert isinstance(Compressors("leancontext")("query_summary"), Rewriter)
    for name in ("query_summary", "top+semantic_rewrite"):
        with pytest.raises(ConfigurationError, match=name.replace("+", r"\+")):
            make_compressor(configured(compressor=name))
