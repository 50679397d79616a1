from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.training.summaries.finetuning import STATE, Epoch, Finetuning, Recipe
from orchestrator.training.summaries.pairs import Pair, read_pairs, split_of, write_pairs
from posology.errors import BadFile, InputError, ModelUnavailable
from strategies.compression.summarization.card import read_card
from strategies.compression.summarization.model import load, read

RECIPE = Recipe(learning_rate=5e-3, epochs=3, batch=2, tokens=48)
TEXT = "aspirin lowered the risk of stroke in adults {n} the dose was {n} mg a day"


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    path = tmp_path / "d.jsonl"
    write_pairs(
        [
            Pair(
                id=f"t:{n}",
                split=split_of(n, 10),
                text=TEXT.format(n=n),
                summary="aspirin lowered the risk",
                share=0.3,
                rounds=1,
                model="openai:test",
            )
            for n in range(10)
        ],
        path,
    )
    return path


class Stopped(Exception):
    """Somebody pressed Ctrl-C."""


def test_a_model_learns_and_is_kept_in_the_form_of_the_hub(
    tiny: Path, dataset: Path, tmp_path: Path
) -> None:
    told: list[Epoch] = []
    out = tmp_path / "out"
    pairs = read_pairs(dataset)
    card = Finetuning(pairs, init=str(tiny), out=out, recipe=RECIPE, report=told.append)()
    assert [one.number for one in told] == [1, 2, 3]
    assert told[-1].validation < told[0].validation, "two steps and more make it better"
    assert {path.name for path in out.iterdir()} == {
        "config.json", "generation_config.json", "model.safetensors", "posology.json", "tokenizer.json",
        "tokenizer_config.json",
    }  # fmt: skip
    assert read_card(out) == card
    assert (card.share, card.tokens, card.base, card.dataset) == (0.3, 48, str(tiny), pairs.digest)
    assert card.losses == tuple(one.validation for one in told)
    assert card.best == 1 + card.losses.index(min(card.losses))
    assert card.test_loss is not None
    assert card.left is not None
    assert card.seconds is not None
    assert load(str(out)).name != load(str(tiny)).name


def test_one_that_was_interrupted_goes_on_as_if_it_had_not_been(
    tiny: Path, dataset: Path, tmp_path: Path
) -> None:
    pairs = read_pairs(dataset)
    whole = Finetuning(pairs, init=str(tiny), out=tmp_path / "whole", recipe=RECIPE)()

    def stop(_: Epoch) -> None:
        raise Stopped

    out = tmp_path / "parts"
    with pytest.raises(Stopped):
        Finetuning(pairs, init=str(tiny), out=out, recipe=RECIPE, report=stop)()
    assert (out / STATE).exists()
    assert load(str(out))(["the dose"]), "what is there so far can be used"
    told: list[Epoch] = []
    parts = Finetuning(pairs, init=str(tiny), out=out, recipe=RECIPE, report=told.append)()
    assert [one.number for one in told] == [2, 3]
    assert parts.losses == whole.losses
    same = read(str(tmp_path / "whole")).model.state_dict()
    for name, weights in read(str(out)).model.state_dict().items():
        assert weights.equal(same[name]), name


def test_another_training_does_not_go_on_there(tiny: Path, dataset: Path, tmp_path: Path) -> None:
    pairs = read_pairs(dataset)

    def stop(_: Epoch) -> None:
        raise Stopped

    out = tmp_path / "out"
    with pytest.raises(Stopped):
        Finetuning(pairs, init=str(tiny), out=out, recipe=RECIPE, report=stop)()
    with pytest.raises(InputError, match="other data or settings"):
        Finetuning(pairs, init=str(tiny), out=out, recipe=replace(RECIPE, seed=1))()
    (out / STATE).unlink()
    with pytest.raises(InputError, match="not empty"):
        Finetuning(pairs, init=str(tiny), out=out, recipe=RECIPE)
    with pytest.raises(ModelUnavailable):
        Finetuning(pairs, init="nobody/has-this", out=tmp_path / "new", recipe=RECIPE)
    assert not (tmp_path / "new").exists()


def test_the_parts_are_as_in_the_paper() -> None:
    found = [split_of(place, 500) for place in range(500)]
    assert [found.count(part) for part in ("train", "validation", "test")] == [400, 50, 50]


def test_a_data_set_that_is_none_is_refused(tmp_path: Path, dataset: Path) -> None:
    with pytest.raises(BadFile):
        read_pairs(tmp_path / "none.jsonl")
    rows = dataset.read_text(encoding="utf-8").splitlines()
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text("\n".join([*rows, rows[0].replace('"share":0.3', '"share":0.5')]))
    with pytest.raises(InputError, match="2"):
        read_pairs(mixed)
    mixed.write_text("\n".join([*rows, '{"id": "x"}']))
    with pytest.raises(BadFile) as caught:
        read_pairs(mixed)
    assert caught.value.line == len(rows) + 1
    mixed.write_text("\n".join(rows[:8]))
    with pytest.raises(InputError, match="validation"):
        read_pairs(mixed)
