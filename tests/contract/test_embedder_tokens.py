"""What every embedder promises of the vectors of tokens, and of what a codec makes of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.index.embedders import load_sentence_transformer as load
from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder, heading
from posology.seams import Embedder
from posology.testing.models.codec import TruncatingCodec
from posology.testing.models.embedder import HashEmbedder
from posology.testing.models.encoder import WORDS
from posology.text.sentences import split
from posology.types import Encoded, Passage, Sentence, TokenVectors

# importing torch alone can take a minute on a busy machine
pytestmark = pytest.mark.timeout(600)

#: tokens that a window of the tiny model holds
CAPACITY = 30
LONG = Passage(
    id="long",
    title="Aspirin and stroke",
    text="Aspirin lowered the risk. " * 40 + "dose " * 60 + ". The dose was 5 mg in adults.",
)


class Places:
    """A codec that keeps where each token starts, to see that each comes once and in its place."""

    def __init__(self, embedder: str) -> None:
        self.name, self.embedder, self.width = "places", embedder, 4
        self.windows: list[int] = []

    def __call__(self, tokens: TokenVectors) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
        """The start as four bytes."""
        self.windows.append(len(tokens.ids))
        assert len(tokens.vectors) == len(tokens.ids) == len(tokens.ends) > 0
        np.testing.assert_allclose(np.linalg.norm(tokens.vectors, axis=1), 1, atol=1e-4)
        return tokens.starts.astype("<u4").view(np.uint8).reshape(-1, 4)


def _prompted(folder: Path, where: Path, pooling: str) -> Path:
    """The same model with other pooling, and prompts for questions and passages."""
    shutil.copytree(folder, where)
    for name, change in (
        ("1_Pooling/config.json", {"pooling_mode": pooling, "include_prompt": True}),
        ("config_sentence_transformers.json", {"prompts": {"query": "ask: ", "document": "of: "}}),
    ):
        path = where / name
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
    return where


@pytest.fixture(
    scope="module",
    params=["tiny", "prompted", "cls", pytest.param("minilm", marks=pytest.mark.slow), "hash"],
)
def embedder(
    request: pytest.FixtureRequest, tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Embedder:
    where = tmp_path_factory.mktemp("models") / request.param
    make: dict[str, Callable[[], Embedder]] = {
        "tiny": lambda: load(str(tiny_encoder)),
        "prompted": lambda: load(str(_prompted(tiny_encoder, where, "mean"))),
        "cls": lambda: load(str(_prompted(tiny_encoder, where, "cls"))),
        "minilm": load,
        "hash": lambda: HashEmbedder(dim=64),
    }
    return make[request.param]()


def _encode(
    embedder: Embedder, *passages: Passage, codec: TruncatingCodec | Places | None = None
) -> list[Encoded]:
    return embedder.embed_passages(list(passages), [split(p.text) for p in passages], codec)


def test_a_question_is_encoded_as_questions_are(embedder: Embedder) -> None:
    for text in ("Does aspirin lower the risk of stroke?", "", "\u200b", "the trial " * 300):
        encoded = embedder.encode_query(text)
        np.testing.assert_array_equal(encoded.vector, embedder.embed_queries([text])[0])
        tokens = encoded.tokens
        assert tokens is not None
        assert len(tokens.vectors) == len(tokens.ids) == len(tokens.starts) == len(tokens.ends)
        assert tokens.vectors.dtype == np.float32
        assert ((tokens.starts >= 0) & (tokens.ends <= len(text))).all()
        np.testing.assert_allclose(np.linalg.norm(tokens.vectors, axis=1), 1, atol=1e-4)


def test_a_questions_tokens_are_its_words(embedder: Embedder) -> None:
    text = "Aspirin dose 😀 in adults"
    tokens = embedder.encode_query(text).tokens
    assert tokens is not None
    whole = "".join(text[a:b] for a, b in zip(tokens.starts, tokens.ends, strict=True))
    assert whole.replace("😀", "") == "Aspirindoseinadults"


def test_a_question_in_one_window_has_the_vectors_of_the_token_encoder(tiny_encoder: Path) -> None:
    embedder = load(str(tiny_encoder))
    text = "the dose of aspirin in adults"
    (expected,), tokens = embedder.token_vectors([text]), embedder.encode_query(text).tokens
    assert tokens is not None
    np.testing.assert_allclose(tokens.vectors, expected.vectors, atol=1e-5)
    assert tokens.ids.tolist() == expected.ids.tolist()
    long = embedder.encode_query("the dose of aspirin in adults " * 20).tokens
    assert long is not None
    assert len(long.ids) == CAPACITY


def test_a_prompt_changes_vectors_and_has_no_tokens(tiny_encoder: Path, tmp_path: Path) -> None:
    plain = load(str(tiny_encoder))
    prompted = load(str(_prompted(tiny_encoder, tmp_path / "prompted", "mean")))
    one, other = (e.encode_query("aspirin dose").tokens for e in (plain, prompted))
    assert one is not None
    assert other is not None
    assert one.ids.tolist() == other.ids.tolist()
    assert one.starts.tolist() == other.starts.tolist()
    assert np.abs(one.vectors - other.vectors).max() > 0.01


def test_a_codec_changes_no_vector(embedder: Embedder) -> None:
    passages = [
        LONG,
        Passage(id="short", text="It helped. The dose was low."),
        Passage(id="no", text=""),
    ]
    without = _encode(embedder, *passages)
    with_codec = _encode(embedder, *passages, codec=TruncatingCodec(embedder.name))
    for one, other in zip(without, with_codec, strict=True):
        assert one.tokens is None
        np.testing.assert_array_equal(one.vector, other.vector)
        np.testing.assert_array_equal(one.sentence_vectors, other.sentence_vectors)


def test_codes_are_the_codecs_own(tiny_encoder: Path) -> None:
    embedder = load(str(tiny_encoder))
    codec = TruncatingCodec(embedder.name, width=32)
    passage = Passage(id="p", title="On aspirin", text="It lowered risk. Not in adults.")
    (encoded,) = _encode(embedder, passage, codec=codec)
    (tokens,) = embedder.token_vectors([heading(passage) + passage.text])
    assert encoded.tokens is not None
    assert encoded.tokens.codes.dtype == np.uint8
    assert encoded.tokens.counts.dtype == np.int32
    # within the rounding of a byte
    wrong = encoded.tokens.codes.astype(int) - codec(tokens).astype(int)
    assert np.abs(wrong).max() <= 1


def test_no_more_than_a_window_is_compressed_at_once(tiny_encoder: Path) -> None:
    embedder = load(str(tiny_encoder))
    codec = Places(embedder.name)
    (encoded,) = _encode(embedder, LONG, codec=codec)
    assert encoded.tokens is not None
    assert sum(codec.windows) == len(encoded.tokens.codes) > 5 * CAPACITY
    assert max(codec.windows) <= CAPACITY


def test_passages_without_words_have_no_codes(embedder: Embedder) -> None:
    codec = TruncatingCodec(embedder.name, width=5)
    empty, blank = _encode(
        embedder, Passage(id="a", text=""), Passage(id="b", text=" \n"), codec=codec
    )
    for encoded in (empty, blank):
        assert encoded.tokens is not None
        assert encoded.tokens.codes.shape == (0, 5)
        assert encoded.tokens.counts.tolist() == [0]


def test_the_text_of_a_passage_without_sentences_goes_with_its_heading(embedder: Embedder) -> None:
    codec = TruncatingCodec(embedder.name)
    (encoded,) = embedder.embed_passages([Passage(id="p", text="the dose")], [()], codec)
    assert encoded.tokens is not None
    assert encoded.tokens.counts.tolist() == [len(encoded.tokens.codes)] == [2]


def test_the_codec_of_another_embedder_is_refused(tiny_encoder: Path) -> None:
    embedder = load(str(tiny_encoder))
    with pytest.raises(ValueError, match="another"):
        _encode(embedder, LONG, codec=TruncatingCodec("another"))


SENTENCES = st.lists(
    st.lists(st.sampled_from([*WORDS, "x", "µg", "😀", "-"]), max_size=70).map(" ".join), max_size=6
)


@given(st.sampled_from(["", "On dose", "Risk?", "the " * 40]), SENTENCES, st.booleans())
def test_every_token_is_counted_once_and_in_its_sentence(
    embedder: Embedder, title: str, sentences: list[str], whole: bool
) -> None:
    """``whole``: as the splitter would; else with words between the sentences that are in none."""
    text, spans = "", []
    for sentence in sentences:
        spans.append(Sentence(start=len(text), end=len(text) + len(sentence)))
        text += sentence + (". " if whole else " and ")
    passage = Passage(id="p", title=title, text=text)
    codec = Places(embedder.name)
    (encoded,) = embedder.embed_passages([passage], [spans], codec)
    assert encoded.tokens is not None
    starts = encoded.tokens.codes.copy().view("<u4").ravel().astype(int)
    assert encoded.tokens.counts.sum() == len(starts)
    assert len(encoded.tokens.counts) == 1 + len(spans)
    head = f"{title} " if isinstance(embedder, HashEmbedder) else heading(passage)
    if isinstance(embedder, SentenceTransformerEmbedder):
        (expected,) = embedder.token_vectors([head + text])
        assert starts.tolist() == expected.starts.tolist()
    assert (np.diff(starts) > 0).all()
    edges = [0, *(len(head) + span.start for span in spans), len(head) + len(text) + 1]
    counts = np.histogram(starts, bins=edges)[0] if len(starts) else np.zeros(len(edges) - 1)
    repeated = len(set(edges)) < len(edges)
    if not repeated:
        assert encoded.tokens.counts.tolist() == counts.tolist()
    assert encoded.tokens.counts[0] == (starts < edges[1]).sum()
