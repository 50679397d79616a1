"""MedCPT's encoders and cross-encoder, against the snippets of their model cards run as they stand."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from posology.errors import DeviceUnavailable, EmbedderUnavailable, ModelUnavailable
from posology.index.embedders import load
from posology.index.embedders.medcpt import MedCPTEmbedder
from posology.index.embedders.options import Options
from posology.index.embedders.pairs import load_checkpoint
from posology.index.rerankers import medcpt as cross
from posology.testing.models.codec import TruncatingCodec
from posology.testing.models.medcpt import TinyMedCPT, save_tiny_medcpt
from posology.text.sentences import split
from posology.types import Passage
from tests.support.compression import compressible

# importing torch alone can take a minute on a busy machine
pytestmark = pytest.mark.timeout(600)

QUERIES = ["Does aspirin lower the risk of stroke?", "", "dose", "stroke in adults " * 60]
ARTICLES = [
    ("Aspirin in adults", "Aspirin lowered the risk of stroke. The dose was 5 mg."),
    ("", "The risk of stroke in adults, not of the dose."),
    ("A title alone", ""),
    ("Aspirin " * 60, "lowered the risk of stroke in adults. " * 40),
    ("Long text", "The dose of aspirin in mg lowered nothing in adults. " * 60),
]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyMedCPT:
    return save_tiny_medcpt(tmp_path_factory.mktemp("medcpt"))


@pytest.fixture(scope="module")
def embedder(tiny: TinyMedCPT) -> MedCPTEmbedder:
    made = load(tiny.embedder, precision="float32")
    assert isinstance(made, MedCPTEmbedder)
    return made


def passages() -> list[Passage]:
    return [
        Passage(id=f"t:{i}", title=title, text=text) for i, (title, text) in enumerate(ARTICLES)
    ]


def test_a_question_is_read_as_the_model_card_of_the_query_encoder_reads_it(
    tiny: TinyMedCPT, embedder: MedCPTEmbedder
) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(tiny.query)
    tokenizer = AutoTokenizer.from_pretrained(tiny.query)
    with torch.no_grad():
        encoded = tokenizer(
            QUERIES, truncation=True, padding=True, return_tensors="pt", max_length=64
        )
        embeds = model(**encoded).last_hidden_state[:, 0, :]
    np.testing.assert_allclose(embedder.embed_queries(QUERIES), embeds.numpy(), atol=1e-5)
    np.testing.assert_allclose(embedder.encode_query(QUERIES[0]).vector, embeds[0], atol=1e-5)


def test_an_article_is_read_as_the_model_card_of_the_article_encoder_reads_it(
    tiny: TinyMedCPT, embedder: MedCPTEmbedder
) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(tiny.article)
    tokenizer = AutoTokenizer.from_pretrained(tiny.article)
    with torch.no_grad():
        encoded = tokenizer(
            [list(article) for article in ARTICLES],
            truncation=True,
            padding=True,
            return_tensors="pt",
            max_length=512,
        )
        assert encoded["input_ids"].shape[1] == 512, "one of them is to be cut"
        embeds = model(**encoded).last_hidden_state[:, 0, :]
    given = passages()
    found = embedder.embed_passages(given, [split(p.text) for p in given])
    np.testing.assert_allclose([e.vector for e in found], embeds.numpy(), atol=1e-5)
    # the lengths are part of MedCPT's score
    assert not np.allclose(np.linalg.norm(embeds.numpy(), axis=1), 1, atol=0.1)


def test_a_pair_is_scored_as_the_model_card_of_the_cross_encoder_scores_it(
    tiny: TinyMedCPT,
) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = AutoModelForSequenceClassification.from_pretrained(tiny.cross)
    tokenizer = AutoTokenizer.from_pretrained(tiny.cross)
    texts = ["Aspirin lowered the risk of stroke.", "the dose", "", "not the dose " * 200]
    found = compressible(texts, dim=8)
    question = found.query.text
    articles = [
        f"{one.passage.title}. {one.passage.text}" if one.passage.title else one.passage.text
        for one in found.passages
    ]
    with torch.no_grad():
        encoded = tokenizer(
            [[question, article] for article in articles],
            truncation=True,
            padding=True,
            return_tensors="pt",
            max_length=512,
        )
        logits = model(**encoded).logits.squeeze(dim=1)
    scores = cross.load(str(tiny.cross), Options(precision="float32"))(found)
    np.testing.assert_allclose(scores, logits.numpy(), atol=1e-5)


def test_a_sentence_is_read_as_an_article_of_its_own_under_the_title(
    embedder: MedCPTEmbedder,
) -> None:
    title, text = ARTICLES[0]
    spans = split(text)
    (found,) = embedder.embed_passages([Passage(id="t", title=title, text=text)], [spans])
    own = [Passage(id=str(i), title=title, text=span.of(text)) for i, span in enumerate(spans)]
    alone = np.array([e.vector for e in embedder.embed_passages(own, [()] * len(own))])
    np.testing.assert_allclose(
        found.sentence_vectors, alone / np.linalg.norm(alone, axis=1, keepdims=True), atol=1e-5
    )


def test_calls_from_many_threads_agree(embedder: MedCPTEmbedder) -> None:
    expected = embedder.embed_queries(QUERIES)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: embedder.embed_queries(QUERIES), range(8)):
            np.testing.assert_allclose(found, expected, atol=1e-5)


def test_half_precision_hardly_moves_a_score(tiny: TinyMedCPT, embedder: MedCPTEmbedder) -> None:
    half = load(tiny.embedder, precision="bfloat16")
    given = passages()
    none: list[tuple[()]] = [()] * len(given)
    scores = [
        one.embed_queries(QUERIES) @ np.array([e.vector for e in one.embed_passages(given, none)]).T
        for one in (embedder, half)
    ]
    lengths = np.linalg.norm(embedder.embed_queries(QUERIES), axis=1)[:, None] * np.array(
        [np.linalg.norm(e.vector) for e in embedder.embed_passages(given, none)]
    )
    # bfloat16 has 8 bits: relative to the largest score that vectors of these lengths could have
    assert (np.abs(scores[0] - scores[1]) / lengths).max() < 0.03


def test_loading_half_precision_leaves_the_default_dtype_to_other_threads(
    tiny: TinyMedCPT, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults: list[torch.dtype] = []
    monkeypatch.setattr(torch, "set_default_dtype", defaults.append)
    made = load_checkpoint(
        str(tiny.query),
        architecture="AutoModel",
        options=Options(precision="bfloat16"),
        what="encoder",
    )
    assert {p.dtype for p in made.model.parameters()} == {torch.bfloat16}
    assert set(defaults) <= {torch.float32}


def test_the_name_is_that_of_both_weights(tiny: TinyMedCPT, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(tiny.article, moved)
    assert load(f"medcpt:{tiny.query},{moved}").name == load(tiny.embedder).name
    other = save_tiny_medcpt(tmp_path / "other", seed=7)
    names = {
        load(f"medcpt:{query},{article}").name
        for query in (tiny.query, other.query)
        for article in (tiny.article, other.article)
    }
    assert len(names) == 4


@pytest.mark.parametrize("named", ["one", "a,b,c", "a,", ","])
def test_two_encoders_are_asked_for(named: str) -> None:
    with pytest.raises(EmbedderUnavailable, match="medcpt:QUERY,ARTICLE") as raised:
        load(f"medcpt:{named}")
    assert raised.value.embedder == f"medcpt:{named}"


def test_what_is_not_on_this_machine_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # no hub name's files are in a cache that is empty
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(EmbedderUnavailable, match="MedCPT-Query-Encoder"):
        load("medcpt")


def test_what_is_no_pair_and_what_is_no_cross_encoder_is_refused(
    tiny: TinyMedCPT, tmp_path: Path
) -> None:
    wide = save_tiny_medcpt(tmp_path, dim=48)
    with pytest.raises(EmbedderUnavailable, match="equal dimensions"):
        load(f"medcpt:{tiny.query},{wide.article}")
    with pytest.raises(ModelUnavailable, match="classifier"):
        cross.load(str(tiny.query))
    (tmp_path / "article" / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(EmbedderUnavailable, match="cannot be loaded"):
        load(f"medcpt:{wide.query},{wide.article}")


def test_a_cross_encoder_has_one_logit(tiny: TinyMedCPT, tmp_path: Path) -> None:
    from transformers import BertForSequenceClassification, BertTokenizer

    place = tmp_path / "three"
    BertForSequenceClassification.from_pretrained(
        tiny.cross, num_labels=3, ignore_mismatched_sizes=True
    ).save_pretrained(place)
    BertTokenizer.from_pretrained(tiny.cross).save_pretrained(place)
    with pytest.raises(ModelUnavailable, match="3 logits"):
        cross.load(str(place))


@pytest.mark.parametrize("device", ["cuda:99", "meta", "abacus"])
def test_a_device_that_is_not_there_is_not_replaced(tiny: TinyMedCPT, device: str) -> None:
    elsewhere = Options(device=device)
    for loading in (
        lambda: load(tiny.embedder, options=elsewhere),
        lambda: cross.load(str(tiny.cross), elsewhere),
    ):
        with pytest.raises(DeviceUnavailable, match=f"no device '{device}'") as raised:
            loading()
        assert raised.value.device == device


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_checkpoints_are_where_and_what_they_are_to_be(tiny: TinyMedCPT, precision: str) -> None:
    import torch

    for device, kind in (("cpu", "cpu"), ("auto", "cuda" if torch.cuda.is_available() else "cpu")):
        options = Options(device=device, precision=precision)  # type: ignore[arg-type]
        for folder, architecture in (
            (tiny.article, "AutoModel"),
            (tiny.cross, "AutoModelForSequenceClassification"),
        ):
            made = load_checkpoint(
                str(folder), architecture=architecture, options=options, what="encoder"
            )
            weights = next(made.model.parameters())
            assert (made.device, weights.device.type) == (kind, kind)
            assert str(weights.dtype) == f"torch.{precision}"


@pytest.mark.parametrize("options", [Options(backend="onnx"), Options(precision="int8")])
def test_what_onnx_alone_has_the_encoders_refuse(tiny: TinyMedCPT, options: Options) -> None:
    with pytest.raises(EmbedderUnavailable, match="torch"):
        load(tiny.embedder, options=options)


def test_token_vectors_there_are_none(embedder: MedCPTEmbedder) -> None:
    assert embedder.encode_query("dose").tokens is None
    with pytest.raises(ValueError, match="token vectors"):
        embedder.embed_passages([], [], TruncatingCodec(embedder.name))
