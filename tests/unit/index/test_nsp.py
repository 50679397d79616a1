from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.errors import ModelUnavailable
from posology.index.rerankers.nsp import NextSentence, load
from posology.query import make_query
from posology.testing.models.medcpt import save_tiny_bert
from posology.types import Passage
from tests.support.examples import examples
from tests.support.tasks import retrieval_of

QUESTION = "Does aspirin lower the risk of stroke?"
TEXTS = ("Aspirin lowered the risk of stroke in adults.", "the dose", "", "not " * 200)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="module")
def nsp(folder: Path) -> NextSentence:
    return load(str(folder))


def passages(*texts: str, title: str = "") -> list[Passage]:
    return [Passage(id=f"t:{i}", text=text, title=title) for i, text in enumerate(texts)]


def test_a_score_is_the_probability_that_the_model_gives_the_pair(
    nsp: NextSentence, folder: Path
) -> None:
    import torch
    from transformers import AutoTokenizer, BertForNextSentencePrediction

    model = BertForNextSentencePrediction.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    scores = nsp.probabilities(QUESTION, passages(*TEXTS, title="On stroke"))
    for text, score in zip(TEXTS, scores, strict=True):
        pair = tokenizer(
            QUESTION, f"On stroke. {text}", truncation="only_second", return_tensors="pt"
        )
        with torch.inference_mode():
            logits = model(**pair).logits[0]
        assert score == pytest.approx(float(torch.softmax(logits, dim=-1)[0]), abs=1e-5)


@examples(15)
@given(
    question=st.text(max_size=90),
    texts=st.lists(st.text(max_size=80) | st.just("risk " * 90), max_size=7),
)
def test_scores_are_those_of_each_passage_alone(
    nsp: NextSentence, question: str, texts: list[str]
) -> None:
    together = nsp.probabilities(question, passages(*texts))
    assert together.shape == (len(texts),)
    assert ((together >= 0) & (together <= 1)).all()
    for passage, score in zip(passages(*texts), together, strict=True):
        assert nsp.probabilities(question, [passage])[0] == pytest.approx(float(score), abs=1e-5)


def test_a_long_question_leaves_room_for_the_passage(nsp: NextSentence) -> None:
    scores = nsp.probabilities("of the risk " * 50, passages("aspirin", "dose mg"))
    assert scores[0] != scores[1]


def test_it_scores_a_retrieval(nsp: NextSentence) -> None:
    found = passages("aspirin lowered risk", "dose")
    scores = nsp(retrieval_of(make_query(QUESTION), found))
    assert scores.dtype == np.float32
    assert scores.tolist() == nsp.probabilities(QUESTION, found).tolist()


def test_its_name_tells_weights_apart(nsp: NextSentence, tmp_path: Path) -> None:
    other = load(str(save_tiny_bert(tmp_path / "other", seed=1)))
    assert nsp.name.startswith("nsp-bert:")
    assert other.name != nsp.name


def test_a_model_without_the_head_is_refused(tmp_path: Path) -> None:
    bare = save_tiny_bert(tmp_path / "bare", heads=False)
    with pytest.raises(ModelUnavailable, match="next-sentence head") as caught:
        load(str(bare))
    assert caught.value.model == str(bare)


@pytest.mark.parametrize("name", ["nobody/nothing", "not a name at all"])
def test_a_model_that_is_not_here_is_refused(name: str) -> None:
    with pytest.raises(ModelUnavailable, match="hf download"):
        load(name)


def test_a_damaged_folder_is_refused(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "config.json").write_text((folder / "config.json").read_text(encoding="utf-8"))
    (tmp_path / "model.safetensors").write_bytes(b"no tensors")
    with pytest.raises(ModelUnavailable, match="cannot be loaded"):
        load(str(tmp_path))
