"""Training of the cross-encoder on a few made-up lessons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from posology.errors import InputError
from posology.text.sentences import split
from tests.unit.reading.conftest import tiny
from training.reader import training
from training.reader.abstracts import strangers, unheaded
from training.reader.cases import Lesson
from training.reader.model import Example, ReaderModel, example, loss
from training.reader.training import Recipe, taught, train

WORDS = np.random.default_rng(0).normal(scale=0.05, size=(30_522, 384)).astype(np.float32)


def lesson(n: int, *, gold: int | None = 1) -> Lesson:
    text = f"Group {n} was large. The dose was {n} mg. It did no harm."
    span = text.index(f"{n} mg")
    return Lesson(
        origin="squad",
        part="train",
        document=str(n),
        asked=f"Which dose had group {n}?",
        text=text,
        sentences=tuple(split(text)),
        heading="A trial. ",
        gold=frozenset() if gold is None else frozenset({gold}),
        span=None if gold is None else (span, span + len(f"{n} mg")),
    )


def examples() -> list[Example]:
    found = [lesson(n) for n in range(12)] + [lesson(n, gold=None) for n in range(12, 18)]
    return [example(one) for one in found]


def trained(folder: Path, given: Sequence[Example], recipe: Recipe) -> ReaderModel:
    model = tiny()
    train(model, given, WORDS, recipe, folder)
    return model


def test_a_lesson_has_labels_and_ends() -> None:
    made = example(lesson(7))
    assert set(made.labels.tolist()) == {-1, 0, 1}
    assert made.ends is not None
    first, last = (end - made.pair.first for end in made.ends)
    assert made.lesson.text[made.pair.starts[first] : made.pair.ends[last]] == "7 mg"
    assert (
        example(replace(lesson(7), open=frozenset({0}))).labels[made.pair.sentence == 0] == -1
    ).all()


def test_training_lowers_the_loss_and_keeps_the_lower_layers(tmp_path: Path) -> None:
    given = examples()
    untrained = tiny()
    before = {name: one.clone() for name, one in untrained.state_dict().items()}
    model = trained(tmp_path, given, Recipe(near_steps=0, epochs=25, save_every=1_000))
    with torch.inference_mode():
        assert float(loss(model, given, WORDS)) < 0.5 * float(loss(untrained, given, WORDS))
    after = model.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert any("encoder.layer.2" in name for name in changed)
    assert not any("embeddings" in name or "layer.0" in name for name in changed)


def test_an_interrupted_training_ends_as_one_that_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, recipe = examples(), Recipe(near_steps=3, epochs=6, save_every=2)
    monkeypatch.setattr(training, "STEP_TOKENS", 256)
    (tmp_path / "whole").mkdir()
    whole = trained(tmp_path / "whole", given, recipe)
    calls = 0

    def interrupted(model: ReaderModel, some: Sequence[Example], words: object) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls == 6:
            raise KeyboardInterrupt
        return loss(model, some, WORDS)

    cut = tmp_path / "cut"
    cut.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(training, "loss", interrupted)
        with pytest.raises(KeyboardInterrupt):
            trained(cut, given, recipe)
    resumed = trained(cut, given, recipe)
    for name, one in whole.state_dict().items():
        assert torch.equal(one, resumed.state_dict()[name]), name
    with pytest.raises(InputError, match="other lessons"):
        trained(cut, given[1:], recipe)


def test_only_training_documents_are_taught() -> None:
    found = [lesson(1), replace(lesson(2), part="test"), replace(lesson(3), part="dev")]
    assert {one.document for one in taught(found)} == {"1"}
    assert len(taught([replace(lesson(1), origin="written")])) == 3


def test_far_texts_are_of_other_sets_and_come_in_the_second_cycle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [replace(lesson(n), origin=("a", "b")[n % 2]) for n in range(200)]
    found = strangers(known)
    assert 0 < len(found) < 60
    assert all(one.far and not one.gold and one.span is None for one in found)
    by_question = {one.asked: one.origin for one in known}
    assert all(by_question[one.asked] != one.origin for one in found)
    seen: list[Sequence[Example]] = []

    def noted(model: ReaderModel, some: Sequence[Example], words: object) -> torch.Tensor:
        seen.append(some)
        return loss(model, some, WORDS)

    monkeypatch.setattr(training, "loss", noted)
    monkeypatch.setattr(training, "STEP_TOKENS", 256)
    given = [example(one) for one in (*known[:20], *found[:5])]
    trained(tmp_path, given, Recipe(near_steps=2))
    assert not any(one.lesson.far for some in seen[:2] for one in some)
    assert sum(one.lesson.far for some in seen[2:] for one in some) == 5


def test_headings_are_removed_and_remembered() -> None:
    found = unheaded("BACKGROUND: A is old. METHODS: We saw B. RESULTS: C rose. CONCLUSIONS: D.")
    assert found is not None
    text, sentences, labels = found
    assert text == "A is old. We saw B. C rose. D."
    assert [s.of(text) for s in sentences] == ["A is old.", "We saw B.", "C rose.", "D."]
    assert labels == ["BACKGROUND", "METHODS", "RESULTS", "CONCLUSIONS"]
    assert unheaded("RESULTS: C rose.") is None
