from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from posology.errors import ScorerUnavailable
from posology.testing.models.language_model import save_tiny_language_model
from posology.text.sentences import split
from strategies.compression.self_information import make_annotator
from strategies.compression.self_information.causal import CausalScorer, load
from strategies.compression.wording.phrases import segment

SHORT = "Aspirin does not help."
LONG = "The risk of stroke was not lowered by aspirin in adults. " * 4 + "µg  of 日本 it took."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_language_model(tmp_path_factory.mktemp("tiny-gpt"))


@pytest.fixture(scope="module")
def scorer(folder: Path) -> CausalScorer:
    return load(str(folder))


def bits(scorer: CausalScorer, *texts: str) -> list[np.ndarray]:
    return scorer.bits(texts, [segment(text, split(text)) for text in texts])


@pytest.mark.slow
def test_a_word_tells_what_its_tokens_tell_after_all_before_them(
    folder: Path, scorer: CausalScorer
) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(SHORT, add_special_tokens=False)["input_ids"]
    with torch.inference_mode():
        logits = model(torch.tensor([[0, *ids]])).logits[0].log_softmax(-1)
    told = [-float(logits[i, token]) / math.log(2) for i, token in enumerate(ids)]
    (found,) = bits(scorer, SHORT)
    assert len(found) == 4
    assert found.sum() == pytest.approx(sum(told), rel=1e-4)
    first = len(tokenizer("Aspirin", add_special_tokens=False)["input_ids"])
    assert found[0] == pytest.approx(sum(told[:first]), rel=1e-4)


def test_long_texts_are_read_in_windows_and_no_token_is_lost(scorer: CausalScorer) -> None:
    (found,) = bits(scorer, LONG)
    assert len(found) == len(LONG.split())
    assert (found > 0).all()
    # whatever is more than a window away changes nothing
    (other,) = bits(scorer, LONG.replace("The", "But", 1))
    assert other[0] != pytest.approx(found[0])
    assert other[-5:] == pytest.approx(found[-5:])


def test_texts_do_not_change_each_other(scorer: CausalScorer) -> None:
    together = bits(scorer, LONG, SHORT, "", "It.", LONG)
    for text, found in zip((LONG, SHORT, "", "It.", LONG), together, strict=True):
        (alone,) = bits(scorer, text)
        assert found == pytest.approx(alone, rel=1e-3)
    assert bits(scorer) == []


def test_nothing_is_learned(scorer: CausalScorer) -> None:
    scorer.learn(iter(()))
    assert scorer.dump() is None
    with pytest.raises(ValueError, match="does not learn"):
        scorer.restore(b"x")


def test_its_name_says_which_weights(folder: Path, scorer: CausalScorer) -> None:
    assert scorer.name.startswith("gpt2:")
    assert scorer.name.endswith(":32")
    assert make_annotator(str(folder)).name == f"self-information-3:{scorer.name}"


@pytest.mark.parametrize("model", ["nobody/has-this", "no name", "/"])
def test_a_model_that_is_not_there_is_named(model: str) -> None:
    with pytest.raises(ScorerUnavailable) as caught:
        load(model)
    assert caught.value.model == model


def test_an_encoder_is_no_causal_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ScorerUnavailable, match="does not load as a causal language model"):
        load(str(tmp_path))
