"""Training of the judge of support on a few made-up lessons."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig

from posology.errors import InputError
from posology.reading import pair_model
from posology.reading.judge import Judge
from training.judge import training
from training.judge.cases import UNSUPPORTED, Lesson
from training.judge.packaging import packaged
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
    train(model, learned, WORDS, recipe, folder)
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
    assert float(loss(sure, [UNSUPPORTED, UNSUPPORTED])) < 1e-3
    assert float(loss(-sure, [UNSUPPORTED, UNSUPPORTED])) > 5


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

    def interrupted(logits: torch.Tensor, stances: Sequence[int]) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return loss(logits, stances)

    with monkeypatch.context() as patch:
        patch.setattr(training, "loss", interrupted)
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path / "cut", recipe)
    resumed = trained(tmp_path / "cut", recipe).state_dict()
    assert all(torch.equal(one, resumed[name]) for name, one in whole.state_dict().items())
    with pytest.raises(InputError, match="another training"):
        trained(tmp_path / "cut", recipe, LESSONS[1:])
