from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.training.pruner.examples import (
    Example,
    chunk,
    cleaned,
    held_aside,
    label_call,
    lines,
)
from orchestrator.training.pruner.trainer import Lesson, Recipe, Trainer
from posology.text.sentences import split
from posology.types import Stage
from strategies.compression.provence.checkpoint import Checkpoint, load, save
from strategies.compression.provence.heads import KEEP
from tests.support.compression import contexts
from tests.unit.strategies.provence.conftest import retrieve

EXAMPLES = [
    Example(
        question="Is aspirin safe?",
        title="Aspirin",
        sentences=("The risk of stroke.", "Not in adults.", "The dose was 5 mg."),
        relevant=(1,),
    ),
    Example(question="What was the dose?", title="", sentences=("It was 5 mg.",), relevant=(0,)),
    Example(question="Is it safe?", title="A", sentences=("No.", "Stroke in adults."), relevant=()),
]
FAST = Recipe(rate=1e-3, batch=2)


def teach(checkpoint: Checkpoint, recipe: Recipe, steps: int) -> tuple[Trainer, list[float]]:
    trainer = Trainer(checkpoint, recipe)
    lessons = [trainer.lesson(one) for one in EXAMPLES]
    teacher = trainer.scores(lessons)
    return trainer, [
        trainer.step(lessons, teacher, number=n).total(recipe.weight) for n in range(steps)
    ]


def test_tokens_of_sentences_are_taught_and_nothing_else(reranker: Path) -> None:
    trainer = Trainer(load(str(reranker)), Recipe())
    lesson = trainer.lesson(EXAMPLES[0])
    tokens = trainer.checkpoint.tokenizer.convert_ids_to_tokens(lesson.window.ids)
    of = {n: [t for t, y in zip(tokens, lesson.labels, strict=True) if y == n] for n in (0, 1)}
    assert of[1] == ["not", "in", "adults", "."]
    assert of[0][:5] == ["the", "risk", "of", "stroke", "."]
    assert of[0][-2:] == ["mg", "."]
    assert (lesson.labels[: lesson.window.first] == -100).all()
    # the heading stands in front of the first sentence
    assert tokens[lesson.window.first] == "aspirin"
    assert lesson.labels[lesson.window.first] == -100
    assert not (trainer.lesson(EXAMPLES[2]).labels == 1).any()


def test_two_steps_change_both_heads_and_lower_the_loss(reranker: Path, tmp_path: Path) -> None:
    checkpoint = load(str(reranker))
    before = {name: p.detach().clone() for name, p in checkpoint.model.named_parameters()}
    trainer, losses = teach(checkpoint, FAST, 2)
    changed = {
        name for name, p in checkpoint.model.named_parameters() if not torch.equal(p, before[name])
    }
    for part in ("token_head.weight", "token_head.bias", "classifier", ".layer.0.", ".layer.1."):
        assert any(part in name for name in changed), part
    lessons = [trainer.lesson(one) for one in EXAMPLES]
    teacher = np.zeros(3, np.float32)
    first, last = (
        t.look(lessons, teacher).pruning for t in (Trainer(load(str(reranker)), FAST), trainer)
    )
    assert last < first
    save(checkpoint.model, checkpoint.tokenizer, tmp_path / "saved", {})
    again = load(str(tmp_path / "saved"))
    assert again.prunes
    assert again.ranks
    assert Trainer(again, FAST).scores(lessons) == pytest.approx(trainer.scores(lessons), abs=1e-6)
    assert Trainer(again, FAST).look(lessons, teacher).pruning == pytest.approx(last, abs=1e-5)
    assert len(losses) == 2


def test_a_pruner_learns_what_it_is_taught_and_keeps_its_ranking(reranker: Path) -> None:
    checkpoint = load(str(reranker))
    trainer = Trainer(checkpoint, replace(FAST, rate=3e-3, weight=0.05))
    lessons = [trainer.lesson(one) for one in EXAMPLES]
    teacher = trainer.scores(lessons)
    for number in range(100):
        trainer.step(lessons, teacher, number=number)
    inputs = trainer._reading.tensors([one.window for one in lessons])
    _, kept = checkpoint.model.tokens_kept(inputs)
    for row, lesson in enumerate(lessons):
        labels = torch.from_numpy(lesson.labels)
        taught = kept[row, : len(labels)][labels >= 0] > 0.5
        assert (taught == (labels[labels >= 0] == KEEP)).float().mean() > 0.9
    assert trainer.look(lessons, teacher).ranking < 0.5


@pytest.mark.parametrize("loss", ["sum", "mean"])
def test_equation_1_weighs_labels_against_the_teacher(
    reranker: Path, loss: Literal["sum", "mean"]
) -> None:
    trainer = Trainer(load(str(reranker)), Recipe(loss=loss))
    lessons = [trainer.lesson(one) for one in EXAMPLES]
    teacher = trainer.scores(lessons)
    look = trainer.look(lessons, teacher + np.float32(2))
    assert look.ranking == pytest.approx(4, abs=1e-4)
    assert look.total(0.05) == pytest.approx(look.pruning + 0.2, abs=1e-5)
    inputs = trainer._reading.tensors([one.window for one in lessons])
    logits = trainer.checkpoint.model(inputs).logits.detach().double().numpy()
    chance = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    said = [
        np.log(chance[row, at, y])
        for row, lesson in enumerate(lessons)
        for at, y in enumerate(lesson.labels)
        if y >= 0
    ]
    # the sum over a pair's tokens, of which the mean over pairs is taken
    wanted = -np.sum(said) / len(lessons) if loss == "sum" else -np.mean(said)
    assert look.pruning == pytest.approx(wanted, rel=1e-5)
    # untaught, the teacher changes nothing
    unweighted = [teach(load(str(reranker)), replace(FAST, weight=0.0), 1)[0] for _ in range(2)]
    assert unweighted[0].scores(lessons) == pytest.approx(unweighted[1].scores(lessons), abs=1e-6)


def test_a_batch_in_several_passes_teaches_the_same(reranker: Path) -> None:
    trained = []
    for tokens in (8_192, 1):
        checkpoint = load(str(reranker))
        for module in checkpoint.model.modules():
            if isinstance(module, torch.nn.Dropout) or hasattr(module, "drop_prob"):
                # what is dropped depends on what is read together
                module.p = 0.0  # type: ignore[assignment]
        trainer = Trainer(checkpoint, FAST, tokens_a_pass=tokens)
        lessons = [trainer.lesson(one) for one in EXAMPLES]
        teacher = trainer.scores(lessons) + np.float32(1)
        losses = trainer._losses(lessons, teacher, learn=True)
        gradients = {
            n: p.grad for n, p in checkpoint.model.named_parameters() if p.grad is not None
        }
        trained.append((losses, gradients))
    (one, together), (two, apart) = trained
    assert one.pruning == pytest.approx(two.pruning, rel=1e-5)
    assert one.ranking == pytest.approx(two.ranking, abs=1e-5)
    assert together.keys() == apart.keys()
    for name, gradient in together.items():
        assert torch.allclose(gradient, apart[name], atol=1e-3, rtol=1e-4), name


def test_steps_repeat_exactly(reranker: Path) -> None:
    first, second = (teach(load(str(reranker)), FAST, 2)[1] for _ in range(2))
    assert first == second
    assert teach(load(str(reranker)), replace(FAST, seed=1), 2)[1] != first


def test_an_epoch_takes_each_example_once_in_an_order_of_its_own(reranker: Path) -> None:
    trainer = Trainer(load(str(reranker)), Recipe(batch=4))
    orders = [trainer.order(10, epoch) for epoch in (0, 1, 0)]
    assert [len(batch) for batch in orders[0]] == [4, 4, 2]
    assert all(sorted(i for batch in one for i in batch) == list(range(10)) for one in orders)
    assert orders[0] == orders[2] != orders[1]


def test_a_recipe_that_cannot_be_is_refused() -> None:
    for wrong in ({"epochs": 0}, {"batch": 0}, {"rate": 0.0}, {"weight": -1.0}):
        with pytest.raises(ValueError, match=r"got"):
            Recipe(**wrong)


@given(texts=contexts, seed=st.integers(0, 5))
def test_chunks_are_consecutive_sentences(texts: list[str], seed: int) -> None:
    (one,) = retrieve(" ".join(texts)).passages
    excerpt = chunk(one, question="Q?", seed=seed)
    assert excerpt is not None
    assert excerpt == chunk(one, question="Q?", seed=seed)
    first = one.sentences.index(excerpt.sentences[0])
    assert excerpt.sentences == one.sentences[first : first + len(excerpt.sentences)]
    assert 1 <= len(excerpt.sentences) <= min(10, len(split(one.passage.text)))


def test_longer_chunks_are_likelier() -> None:
    (one,) = retrieve(" ".join(f"Aspirin was given to group {n}." for n in range(30))).passages
    sizes = [
        len(excerpt.sentences)
        for seed in range(2_000)
        if (excerpt := chunk(one, question="Q?", seed=seed)) is not None
    ]
    counts = np.bincount(sizes, minlength=11)[1:] / len(sizes)
    assert counts == pytest.approx(np.arange(1, 11) / 55, abs=0.03)
    (empty,) = retrieve("").passages
    assert chunk(empty, question="Q?", seed=0) is None


def test_a_call_shows_the_sentences_of_a_chunk() -> None:
    retrieval = retrieve("Aspirin was\ngiven. Nobody was lost.", titles=("T",))
    excerpt = chunk(retrieval.passages[0], question="Q?", seed=0)
    assert excerpt is not None
    call = label_call(retrieval.query, excerpt, model="openai:x")
    assert (call.stage, call.schema, call.strategy) == (Stage.LABEL, None, "provence")
    for number, sentence in enumerate(lines(excerpt), 1):
        assert "\n" not in sentence
        assert f"[{number}] {sentence}\n" in call.messages[1].content


def test_questions_are_kept_aside_whole() -> None:
    many = [replace(EXAMPLES[0], question=f"Q{n % 10}?", title=f"T{n}") for n in range(40)]
    learned, aside = held_aside(many, 0.3, 0)
    assert len(aside) == 12
    assert not {one.question for one in learned} & {one.question for one in aside}
    assert held_aside(many, 0.0, 0) == (many, [])


def test_what_is_no_example_is_refused() -> None:
    tidy = cleaned(replace(EXAMPLES[0], sentences=(" a\nb ", "c"), relevant=(1, 0, 1)))
    assert (tidy.sentences, tidy.relevant, tidy.text) == (("a b", "c"), (0, 1), "a b c")
    assert [s.of(tidy.text) for s in tidy.spans] == ["a b", "c"]
    for wrong in (
        {"sentences": ()},
        {"sentences": (" ",)},
        {"relevant": (3,)},
        {"relevant": (-1,)},
    ):
        with pytest.raises(ValueError, match=r"sentences|relevant"):
            cleaned(replace(EXAMPLES[0], **wrong))


def test_lessons_are_of_one_window(reranker: Path) -> None:
    trainer = Trainer(load(str(reranker)), Recipe())
    long = replace(EXAMPLES[0], sentences=("The risk of stroke in adults.",) * 20, relevant=(0, 19))
    lesson = trainer.lesson(long)
    assert isinstance(lesson, Lesson)
    assert len(lesson.window.ids) <= trainer.checkpoint.limit
    assert (lesson.labels == 1).sum() == 7
