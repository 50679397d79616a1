"""Exported encoders: made once, faithful, found again without torch, and left aside where they are not."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from posology.errors import DeviceUnavailable, EmbedderUnavailable
from posology.index.embedders import load_sentence_transformer as load
from posology.index.embedders.card import Card
from posology.index.embedders.models import load_exported, load_folder
from posology.index.embedders.onnx.export import make
from posology.index.embedders.options import Options
from posology.text.sentences import split
from posology.types import Passage

# importing torch alone can take a minute on a busy machine
pytestmark = pytest.mark.timeout(600)

TEXTS = [
    "Aspirin lowered the risk of stroke. Not in adults!",
    "dose",
    "The dose of aspirin in adults was 75 mg; " * 6 + ".",
    "",
]
CARD = Card(
    name="n", dim=2, limit=9, pooling="mean", pools_prompt=True, prompts={"query": "q: "}, pad=0
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize(("precision", "least"), [("float32", 0.99999), ("int8", 0.98)])
def test_vectors_are_those_of_torch(
    tiny_encoder: Path, cache: Path, precision: str, least: float
) -> None:
    exact = load(str(tiny_encoder), Options(precision="float32"))
    options = Options(precision=precision, backend="onnx", cache=cache)  # type: ignore[arg-type]
    made = load(str(tiny_encoder), options)
    assert made.name == exact.name
    assert made.describes == f"onnx {precision} on cpu"
    cosines = (exact.embed_queries(TEXTS) * made.embed_queries(TEXTS)).sum(axis=1)
    assert cosines.min() > least
    passages = [Passage(id=str(i), title="Stroke", text=t) for i, t in enumerate(TEXTS)]
    for a, b in zip(
        exact.embed_passages(passages, [split(t) for t in TEXTS]),
        made.embed_passages(passages, [split(t) for t in TEXTS]),
        strict=True,
    ):
        assert float(a.vector @ b.vector) > least
        assert (a.sentence_vectors * b.sentence_vectors).sum(axis=1).min(initial=1.0) > least - 0.01


def test_integers_hang_neither_on_company_nor_on_padding(tiny_encoder: Path, cache: Path) -> None:
    made = load(str(tiny_encoder), Options(backend="onnx", cache=cache))
    outlier = "\N{PILE OF POO} % ^ # " * 8
    together = made.embed_queries([*TEXTS, outlier])
    for text, vector in zip(TEXTS, together, strict=False):
        np.testing.assert_allclose(made.embed_queries([text])[0], vector, atol=1e-3)


def test_what_is_in_the_cache_needs_no_torch(tiny_encoder: Path, cache: Path) -> None:
    vector = load(str(tiny_encoder), Options(backend="onnx", cache=cache)).embed_queries(["dose"])
    program = (
        "import sys, json; from pathlib import Path; from posology.index.embedders import load\n"
        "from posology.index.embedders.options import Options\n"
        f"made = load({str(tiny_encoder)!r}, options=Options(cache=Path({str(cache)!r})))\n"
        "print(json.dumps(made.embed_queries(['dose'])[0].tolist()))\n"
        "sys.exit('torch' in sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    np.testing.assert_array_equal(np.array(json.loads(run.stdout), dtype=np.float32), vector[0])


def test_nothing_is_reported_to_the_maker_of_the_runtime(
    tiny_encoder: Path, cache: Path, tmp_path: Path
) -> None:
    load(str(tiny_encoder), Options(backend="onnx", cache=cache))
    program = (
        "from pathlib import Path; from posology.index.embedders import load\n"
        "from posology.index.embedders.options import Options\n"
        f"made = load({str(tiny_encoder)!r}, options=Options(cache=Path({str(cache)!r})))\n"
        "assert made.describes.startswith('onnx')\n"
        "made.embed_queries(['dose'])"
    )
    # the runtime is silent in CI by itself, and keeps events to be sent below the home folder
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_auto_is_torch_without_a_cache(tiny_encoder: Path) -> None:
    assert load(str(tiny_encoder)).describes.startswith("torch")


def test_where_nothing_can_be_written_auto_is_torch_and_onnx_refuses(
    tiny_encoder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    nowhere = tmp_path / "file" / "cache"
    with caplog.at_level(logging.INFO):
        assert load(str(tiny_encoder), Options(cache=nowhere)).describes.startswith("torch")
    assert "runs on torch" in caplog.text
    with pytest.raises(EmbedderUnavailable, match="ONNX"):
        load(str(tiny_encoder), Options(backend="onnx", cache=nowhere))


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json", "card.json", "SHA256SUMS"])
@pytest.mark.parametrize(
    "damage", ["turned", *(pytest.param(how, marks=pytest.mark.slow) for how in ("cut", "gone"))]
)
def test_a_damaged_export_is_told_and_made_anew(
    tiny_encoder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, file: str, damage: str
) -> None:
    options = Options(backend="onnx", precision="float32", cache=tmp_path)
    vector = load(str(tiny_encoder), options).embed_queries(["dose"])
    (part,) = tmp_path.glob(f"*/{file}")
    whole = part.read_bytes()
    middle = len(whole) // 2
    if damage == "gone":
        part.unlink()
    elif damage == "cut":
        part.write_bytes(whole[:middle])
    else:
        # one bit, which neither ONNX Runtime nor a parser of JSON need stumble over
        part.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    for _ in range(2):
        np.testing.assert_array_equal(
            load(str(tiny_encoder), options).embed_queries(["dose"]), vector
        )
        told = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
        assert len(told) == 1
        assert str(part.parent) in told[0]
        assert "\n" not in told[0]
    assert part.is_file()
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_what_sha256sum_says_of_an_export(tiny_encoder: Path, cache: Path) -> None:
    load(str(tiny_encoder), Options(backend="onnx", precision="float32", cache=cache))
    for sums in cache.glob("*/SHA256SUMS"):
        lines = [line.split("  ") for line in sums.read_text().splitlines()]
        assert {name for _, name in lines} == {"model.onnx", "tokenizer.json", "card.json"}
        for digest, name in lines:
            content = (sums.parent / name).read_bytes()
            assert hashlib.sha256(content).hexdigest() == digest


def test_an_encoder_that_the_quantiser_does_not_understand_is_torchs(
    tiny_encoder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import transformers

    other = tmp_path / "squeezed"
    shutil.copytree(tiny_encoder, other)
    (weights,) = other.rglob("model.safetensors")
    vocabulary = json.loads((weights.parent / "config.json").read_text())["vocab_size"]
    # it has convolutions in the products' place
    config = transformers.SqueezeBertConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        embedding_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=32,
    )
    transformers.SqueezeBertModel(config).save_pretrained(weights.parent)
    for _ in range(2):
        made = load(str(other), Options(cache=tmp_path / "cache"))
        assert made.describes.startswith("torch")
        assert np.isfinite(made.embed_queries(["dose"])).all()
        told = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
        assert len(told) == 1
        assert "runs on torch" in told[0]
    (failure,) = (tmp_path / "cache").glob("*.failed.json")
    with pytest.raises(EmbedderUnavailable, match=f"as found before.*delete {failure}"):
        load(str(other), Options(backend="onnx", cache=tmp_path / "cache"))


def test_other_poolings_are_torchs(tiny_encoder: Path, cache: Path, tmp_path: Path) -> None:
    other = tmp_path / "max"
    shutil.copytree(tiny_encoder, other)
    (config,) = other.glob("1_Pooling/config.json")
    given = json.loads(config.read_text())
    for name in [n for n in given if n.startswith("pooling_mode")]:
        del given[name]
    config.write_text(json.dumps({**given, "pooling_mode": "max"}))
    assert load(str(other), Options(cache=cache)).describes.startswith("torch")
    with pytest.raises(EmbedderUnavailable, match="'max'"):
        load(str(other), Options(backend="onnx", cache=cache))


@pytest.mark.parametrize(
    "options",
    [
        Options(backend="onnx", precision="bfloat16"),
        Options(backend="torch", precision="int8"),
    ],
)
def test_arithmetic_that_a_backend_lacks(tiny_encoder: Path, options: Options) -> None:
    with pytest.raises(EmbedderUnavailable, match="supports"):
        load(str(tiny_encoder), options)


def test_memory_that_torch_lacks_is_no_verdict_on_the_model(tiny_encoder: Path) -> None:
    import torch

    def asks_for_too_much(*_: object) -> None:
        torch.empty(10**15)

    with pytest.raises(MemoryError, match="allocate memory"):
        exported(tiny_encoder, asks_for_too_much)


def test_memory_that_onnx_runtime_lacks_is_no_verdict_on_the_model(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "published"
    shutil.copytree(tiny_encoder, other)
    (other / "onnx").mkdir()
    ids = onnx.helper.make_tensor_value_info("input_ids", onnx.TensorProto.INT64, [None, None])
    out = onnx.helper.make_tensor_value_info("vectors", onnx.TensorProto.FLOAT, [None] * 3)
    times = onnx.numpy_helper.from_array(np.full(3, 10_000), "times")
    nodes = [
        onnx.helper.make_node("Shape", ["input_ids"], ["shape"]),
        onnx.helper.make_node("ReduceMax", ["shape"], ["width"], keepdims=1),
        onnx.helper.make_node("Mul", ["width", "times"], ["large"]),
        onnx.helper.make_node("ConstantOfShape", ["large"], ["vectors"]),
    ]
    graph = onnx.helper.make_graph(nodes, "large", [ids], [out], [times])
    opset = onnx.helper.make_opsetid("", 17)
    made = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8)
    onnx.save(made, other / "onnx" / "model.onnx")
    with pytest.raises(MemoryError, match="allocate memory"):
        exported(other)


def exported(folder: Path, hook: Callable[..., None] | None = None) -> bytes:
    """What is made of the model in a folder, with a hook before its forward passes."""
    from sentence_transformers import SentenceTransformer

    card = load_folder(folder, embedder="tiny", precision="float32").card
    model = SentenceTransformer(str(folder), device="cpu").eval()
    if hook is not None:
        model[0].get_submodule("auto_model").register_forward_pre_hook(hook)
    return make(model, folder, card, arithmetic="float32", bits=8)


@pytest.mark.parametrize(
    "options",
    [Options(), Options(backend="onnx"), Options(precision="int8"), Options(backend="torch")],
)
def test_a_device_that_is_not_there_is_not_replaced(tiny_encoder: Path, options: Options) -> None:
    with pytest.raises(DeviceUnavailable, match="cuda:99"):
        load(str(tiny_encoder), replace(options, device="cuda:99"))


def test_a_published_model_is_taken_and_a_wrong_one_is_not(
    tiny_encoder: Path, tmp_path: Path
) -> None:
    folder, caches = tmp_path / "model", tmp_path / "caches"
    shutil.copytree(tiny_encoder, folder)
    options = Options(backend="onnx", precision="float32", cache=caches)
    load_exported(folder, embedder="x", options=options)
    (own,) = caches.glob("*/model.onnx")
    exported = own.read_bytes()
    marked = onnx.load_from_string(exported)
    marked.doc_string = "published"
    published = folder / "onnx" / "model.onnx"
    published.parent.mkdir()
    for content, is_taken in ((marked.SerializeToString(), True), (b"no model", False)):
        shutil.rmtree(caches)
        published.write_bytes(content)
        load_exported(folder, embedder="x", options=options)
        (own,) = caches.glob("*/model.onnx")
        assert (own.read_bytes() == content) is is_taken


def test_a_card_survives() -> None:
    assert Card.parse(CARD.dump()) == CARD
    with pytest.raises(ValueError, match="card"):
        Card.parse('{"name": 1}')


def test_torch_and_cards_agree(tiny_encoder: Path) -> None:
    loaded = load_folder(tiny_encoder, embedder="x", precision="float32")
    assert (loaded.card.pooling, loaded.card.limit, loaded.card.dim) == ("mean", 32, 32)
