from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from posology.errors import ConfigurationError, ModelUnavailable
from posology.reading.crossencoder import CrossEncoder
from posology.testing import save_tiny_reranker
from strategies.compression.parts import Parts
from strategies.compression.provence import Provence, ProvenceReranker, judge, make, make_reranker
from strategies.compression.provence.checkpoint import Checkpoint, load
from strategies.compression.provence.judge import CheckpointJudge
from tests.unit.strategies.provence.conftest import LONG, SHORT, retrieve

RETRIEVAL = retrieve(LONG, SHORT, titles=("A trial",))
#: what a checkpoint's own code does when somebody runs it
TRAP = "from pathlib import Path\n(Path(__file__).parent / 'sprung').write_text('')\nraise SystemExit(9)\n"


def scores(checkpoint: Checkpoint) -> list[float]:
    return [
        one.score for one in CheckpointJudge(checkpoint)("Is aspirin safe?", RETRIEVAL.passages)
    ]


def tokens(checkpoint: Checkpoint) -> np.ndarray:
    judged = CheckpointJudge(checkpoint)("Is aspirin safe?", RETRIEVAL.passages)
    return np.concatenate([one.kept for one in judged])


def test_a_reranker_keeps_its_scores_and_gets_a_fresh_head(reranker: Path) -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    checkpoint = load(str(reranker))
    assert (checkpoint.ranks, checkpoint.prunes) == (True, False)
    theirs = AutoModelForSequenceClassification.from_pretrained(reranker)
    tokenizer = AutoTokenizer.from_pretrained(reranker)
    pair = tokenizer("Is aspirin safe?", SHORT, return_tensors="pt", return_token_type_ids=True)
    if not checkpoint.segments:
        del pair["token_type_ids"]
    with torch.inference_mode():
        expected = float(theirs(**pair).logits[0, 0])
    assert scores(checkpoint)[1] == pytest.approx(expected, abs=1e-5)
    with pytest.raises(ConfigurationError, match="posology compressor train"):
        Provence(CheckpointJudge(checkpoint))


def test_fresh_heads_are_those_of_their_seed(reranker: Path) -> None:
    heads = [load(str(reranker), seed=seed).model.token_head.weight for seed in (0, 0, 1)]
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])


def test_what_is_saved_loads_as_it_was(reranker: Path, pruner: Path) -> None:
    before, after = load(str(reranker)), load(str(pruner))
    assert (after.ranks, after.prunes) == (True, True)
    assert scores(after) == pytest.approx(scores(before), abs=1e-6)
    assert np.abs(tokens(after) - tokens(before)).max() > 0.01
    assert after.limit == before.limit == 64
    assert after.name != before.name
    files = {path.name for path in pruner.iterdir()}
    assert {"model.safetensors", "config.json", "tokenizer.json", "posology.json"} <= files
    assert not any(name.endswith((".bin", ".py")) for name in files)


def test_what_is_saved_is_a_reranker_to_transformers_too(pruner: Path) -> None:
    from transformers import AutoModelForSequenceClassification

    theirs = AutoModelForSequenceClassification.from_pretrained(pruner)
    ours = load(str(pruner)).model.reranker.state_dict()
    assert all(torch.equal(value, ours[name]) for name, value in theirs.state_dict().items())


@pytest.fixture
def published(pruner: Path, tmp_path: Path) -> Path:
    """The layout of naver/provence-reranker-debertav3-v1, with code that must not run."""
    config = json.loads((pruner / "config.json").read_text())
    if config["model_type"] != "deberta-v2":
        pytest.skip("published as DeBERTa")
    folder = tmp_path / "published"
    shutil.copytree(pruner, folder)
    (folder / "posology.json").unlink()
    config |= {
        "_name_or_path": "naver/provence-reranker-debertav3-v1",
        "architectures": ["Provence"],
        "model_type": "Provence",
        "auto_map": {
            "AutoConfig": "modeling_provence.ProvenceConfig",
            "AutoModel": "modeling_provence.Provence",
        },
        "id2label": {"0": "LABEL_0"},
        "label2id": {"LABEL_0": 0},
        "torch_dtype": "float32",
        "transformers_version": "4.45.1",
    }
    for name in ("legacy", "dtype"):
        config.pop(name, None)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "modeling_provence.py").write_text(TRAP)
    said = json.loads((folder / "tokenizer_config.json").read_text())
    said |= {
        "tokenizer_class": "DebertaV2Tokenizer",
        "split_by_punct": False,
        "sp_model_kwargs": {},
    }
    said["auto_map"] = {"AutoTokenizer": ["modeling_provence.Tokenizer", None]}
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    return folder


def test_a_published_checkpoint_loads_and_its_code_is_never_run(
    published: Path, pruner: Path
) -> None:
    names = set(load_file(published / "model.safetensors"))
    heads = {n for n in names if not n.startswith("deberta.")}
    assert heads == {
        f"{layer}.{part}"
        for layer in ("pooler.dense", "classifier", "token_classifier")
        for part in ("weight", "bias")
    }
    checkpoint = load(str(published))
    assert (checkpoint.ranks, checkpoint.prunes) == (True, True)
    assert checkpoint.name.startswith("deberta-v2:")
    # it is asked in the words that it was trained with
    judged = CheckpointJudge(checkpoint)("Is aspirin (5 mg) safe?", RETRIEVAL.passages)
    expected = CheckpointJudge(load(str(pruner)))("is aspirin 5 mg safe", RETRIEVAL.passages)
    for one, other in zip(judged, expected, strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-6)
        assert one.kept == pytest.approx(other.kept, abs=1e-6)
    assert not (published / "sprung").exists()


def test_shards_load_as_one_file_does(pruner: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sharded"
    shutil.copytree(pruner, folder)
    whole = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    shards: dict[str, dict[str, torch.Tensor]] = {"a.safetensors": {}, "b.safetensors": {}}
    for n, (name, tensor) in enumerate(whole.items()):
        shards["ab"[n % 2] + ".safetensors"][name] = tensor
    for name, tensors in shards.items():
        save_file(tensors, folder / name)
    index = {"weight_map": {name: "ab"[n % 2] + ".safetensors" for n, name in enumerate(whole)}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert scores(load(str(folder))) == pytest.approx(scores(load(str(pruner))), abs=1e-6)


def test_tensors_in_a_pickle_load(pruner: Path, tmp_path: Path) -> None:
    folder = tmp_path / "old"
    shutil.copytree(pruner, folder)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    assert scores(load(str(folder))) == pytest.approx(scores(load(str(pruner))), abs=1e-6)


class Bomb:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (self.path, "w")


def test_a_pickle_that_would_do_something_is_refused(pruner: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bad"
    shutil.copytree(pruner, folder)
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"a": Bomb(str(tmp_path / "sprung"))}))
    with pytest.raises(ModelUnavailable, match="weights"):
        load(str(folder))
    assert not (tmp_path / "sprung").exists()


def _without(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / name).unlink()

    return damage


def _settings(**changed: Any) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changed))

    return damage


def _cut(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def _head(folder: Path) -> None:
    path = folder / "model.safetensors"
    save_file(load_file(path) | {"token_classifier.weight": torch.zeros(3, 32)}, path)


def _layer(folder: Path) -> None:
    path = folder / "model.safetensors"
    found = load_file(path)
    gone = next(name for name in found if ".layer.1." in name)
    del found[gone]
    save_file(found, path)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_without("config.json"), "config.json"),
        (_without("model.safetensors"), "neither model.safetensors nor"),
        (_without("tokenizer.json"), "tokenizer"),
        (_settings(model_type=None), "model_type"),
        (_settings(model_type="Nobody"), "Nobody"),
        (_settings(model_type="gpt2"), "damaged"),
        (_settings(id2label={"0": "a", "1": "b"}), "got 2"),
        (_settings(hidden_size=16), "16 dimensions"),
        (_cut, "weights"),
        (_head, "32 dimensions"),
        (_layer, "damaged"),
    ],
)
def test_a_damaged_folder_is_an_error_that_says_so(
    pruner: Path, tmp_path: Path, damage: Callable[[Path], None], said: str
) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(pruner, folder)
    damage(folder)
    with pytest.raises(ModelUnavailable, match=said) as raised:
        load(str(folder))
    assert raised.value.model == str(folder)
    assert raised.value.exit_code == 4


def test_a_model_that_is_nowhere_is_an_error_that_says_how_to_get_it() -> None:
    with pytest.raises(ModelUnavailable, match="hf download nobody/nothing"):
        load("nobody/nothing")
    with pytest.raises(ModelUnavailable):
        load("../no/such/folder")


def test_a_shard_outside_the_folder_is_not_read(pruner: Path, tmp_path: Path) -> None:
    folder = tmp_path / "escaping"
    shutil.copytree(pruner, folder)
    (folder / "model.safetensors").rename(tmp_path / "model.safetensors")
    index = {"weight_map": {"a": "../model.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ModelUnavailable, match="shard"):
        load(str(folder))


def test_an_encoder_alone_has_two_fresh_heads(tmp_path: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    ranking = save_tiny_reranker(tmp_path / "ranking")
    AutoModel.from_pretrained(ranking).save_pretrained(tmp_path / "bare")
    AutoTokenizer.from_pretrained(ranking).save_pretrained(tmp_path / "bare")
    checkpoint = load(str(tmp_path / "bare"))
    assert (checkpoint.ranks, checkpoint.prunes) == (False, False)
    with pytest.raises(ConfigurationError, match="ranking head"):
        ProvenceReranker(CheckpointJudge(checkpoint))


def test_the_makers_share_one_model(pruner: Path) -> None:
    made = make(Parts(models={"provence": str(pruner)}))
    assert made.name == "provence"
    assert judge(str(pruner)) is judge(str(pruner))


def test_without_a_checkpoint_the_packaged_cross_encoder_judges() -> None:
    assert make(Parts()).name == "provence"
    assert make_reranker(Parts()).name == f"provence:{CrossEncoder.packaged().name}"
