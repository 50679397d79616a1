"""Training of the judge of support on a few made-up lessons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Whitespace
from transformers import BertConfig, MPNetConfig, MPNetModel

from posology.errors import InputError
from posology.reading import pair_model
from posology.reading.judge import Judge
from training.judge import training
from training.judge.cases import UNKNOWN, UNSUPPORTED, Lesson
from training.judge.packaging import packaged
from training.judge.teacher import Teacher, packed, with_said
from training.judge.training import (
    JudgeModel,
    Recipe,
    loss,
    make,
    measures,
    read,
    stages,
    train,
)
from training.judge.unlabelled import likest
from training.kept import Kept
from training.reader.model import batch

WORDS = np.random.default_rng(0).normal(scale=0.05, size=(30_522, 384)).astype(np.float32)


def tiny() -> JudgeModel:
    config = BertConfig(
        vocab_size=8, hidden_size=384, num_hidden_layers=1, num_attention_heads=4, intermediate_size=32,
    )  # fmt: skip
    return make(0, config)


def lesson(n: int, stance: int = 0, origin: str = "claims") -> Lesson:
    return Lesson(
        origin=origin,
        part="train",
        claim=("Salt helped.", "Salt did harm.", "Sand helped.", "Nothing helped.")[stance],
        text=f"Salt helped {n} of 90.",
        stance=stance,
    )


LESSONS = [lesson(n, n % 3) for n in range(24)] + [lesson(n, 3, "factcg") for n in range(8)]


def trained(folder: Path, recipe: Recipe, learned: Sequence[Lesson] = LESSONS) -> JudgeModel:
    folder.mkdir(exist_ok=True)
    model = tiny()
    train(model, learned, lambda some: batch([read(one) for one in some], WORDS), recipe, folder)
    return model


def test_the_general_sets_are_learned_first_and_once() -> None:
    made = stages(LESSONS, Recipe(passes=3))
    assert list(made) == ["general", "written"]
    general, once = made["general"]
    assert {one.origin for one in general} == {"factcg"}
    assert len(once) == 1
    written, steps = made["written"]
    assert {one.origin for one in written} == {"claims"}
    assert len(steps) == 3
    assert steps[0] != steps[1]
    assert sorted(steps[0]) == sorted(steps[1]) == list(range(24))


def test_what_is_not_supported_is_learned_as_either_of_the_others() -> None:
    sure = torch.tensor([[-9.0, 9.0, 0.0], [-9.0, 0.0, 9.0]])
    lessons = [lesson(n, UNSUPPORTED, "factcg") for n in range(2)]
    assert float(loss(sure, lessons)) < 1e-3
    assert float(loss(-sure, lessons)) > 5


def test_training_tells_the_stances_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the file that would be shipped."""
    monkeypatch.setattr(pair_model, "words", lambda: WORDS)
    model = trained(tmp_path, Recipe(passes=60, save_every=1_000))
    asked = [one for one in LESSONS if one.stance != UNSUPPORTED]
    judge = Judge(packaged(model, LESSONS, asked, WORDS, bits=7))
    found = measures(asked, judge.probabilities([read(one) for one in asked]))
    assert found["balanced"] > 0.9
    assert found["n"] == 24
    (said,) = judge.judge([("Salt helped.", "Salt helped 3 of 90.")])
    assert said.argmax() == 0
    assert said.sum() == pytest.approx(1)
    assert judge.judge([]).shape == (0, 3)


def test_an_interrupted_training_ends_as_one_that_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = Recipe(passes=5, save_every=2)
    whole = trained(tmp_path / "whole", recipe)
    calls = 0

    def interrupted(logits: torch.Tensor, learned: Sequence[Lesson]) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return loss(logits, learned)

    with monkeypatch.context() as patch:
        patch.setattr(training, "loss", interrupted)
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path / "cut", recipe)
    resumed = trained(tmp_path / "cut", recipe).state_dict()
    assert all(torch.equal(one, resumed[name]) for name, one in whole.state_dict().items())
    with pytest.raises(InputError, match="another training"):
        trained(tmp_path / "cut", recipe, LESSONS[1:])


def test_what_a_teacher_says_is_learned_alone_or_beside_what_people_say() -> None:
    told = (0.1, 0.7, 0.2)
    agreed = torch.tensor([told]).log()
    unjudged = replace(lesson(0), stance=UNKNOWN, taught=told)
    assert float(loss(agreed, [unjudged])) == pytest.approx(-sum(p * math.log(p) for p in told))
    assert float(loss(agreed, [unjudged])) < float(loss(agreed.flip(1), [unjudged]))
    both, alone = replace(lesson(0, 0), taught=told), lesson(0, 0)
    mean = (float(loss(agreed, [unjudged])) + float(loss(agreed, [alone]))) / 2
    assert float(loss(agreed, [both])) == pytest.approx(mean)


@pytest.fixture
def teacher(tmp_path: Path) -> Teacher:
    """A teacher with few random weights, in the form of all-mpnet-base-v2."""
    folder = tmp_path / "mpnet"
    names = [
        "<s>",
        "<pad>",
        "</s>",
        "<unk>",
        "salt",
        "helped",
        "did",
        "harm",
        "sand",
        "nothing",
        "of",
        ".",
    ]
    made = Tokenizer(WordLevel({name: k for k, name in enumerate(names)}, unk_token="<unk>"))
    made.normalizer, made.pre_tokenizer = Lowercase(), Whitespace()
    MPNetModel(
        MPNetConfig(
            vocab_size=len(names), hidden_size=32, num_hidden_layers=5, num_attention_heads=2, intermediate_size=32,
        )
    ).save_pretrained(folder)  # fmt: skip
    made.save(str(folder / "tokenizer.json"))
    return Teacher(folder)


def test_a_teacher_learns_and_what_it_says_is_kept(teacher: Teacher, tmp_path: Path) -> None:
    learned = [one for one in LESSONS if one.stance != UNSUPPORTED]
    recipe = Recipe(passes=60, rate=5e-3, head_rate=5e-3, save_every=1_000)
    train(teacher.model, learned, teacher.inputs, recipe, tmp_path)
    store = Kept(tmp_path / "judged.sqlite")
    said = teacher.judge(learned, store)
    assert said.argmax(axis=1).tolist() == [one.stance for one in learned]
    teacher.model.forward = None  # type: ignore[assignment,method-assign]  # nothing is made twice
    assert (teacher.judge(learned, store) == said).all()
    content = packed(learned, said)
    taught = np.array([one.taught for one in with_said(learned, content)])
    assert taught == pytest.approx(said, abs=0.01)
    with pytest.raises(InputError, match="other lessons"):
        with_said(learned[1:], content)


def test_a_teacher_learns_plain_inference_and_what_people_wrote() -> None:
    found = [
        lesson(n, 0, origin) for n, origin in enumerate(("snli", "factcg", "covidfact", "scifact"))
    ]
    assert [one.origin for one in Teacher.taught(found)] == ["snli", "scifact"]


def test_the_likest_sentences_share_most_words_with_a_claim() -> None:
    sentences = ["Sand was cheap.", "Salt helped most.", "Salt was cheap.", "Nothing helped."]
    assert likest("Salt helped.", sentences, range(4), 2) == [1, 2]
    assert likest("Salt helped.", sentences, (0, 3), 1) == [3]
    assert likest("Salt helped.", sentences, (), 1) == []
