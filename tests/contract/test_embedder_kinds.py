"""What embedders of every kind promise; what those with token vectors promise besides has suites of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from anyio.from_thread import start_blocking_portal

from posology.index.embedders import load
from posology.index.embedders.options import Options
from posology.index.embedders.paid.embedder import Bought, OpenAIEmbedder
from posology.llm.accounting import Account
from posology.llm.providers.openai import OpenAIAdapter
from posology.llm.stack import build
from posology.seams import Embedder, Unnormalised
from posology.testing import FlatPrices, HashEmbedder, StubProvider, Vectors, by_bytes
from posology.testing.models.encoder import save_tiny_encoder
from posology.testing.models.medcpt import save_tiny_medcpt
from posology.text.sentences import split
from posology.types import Encoded, Passage

# importing torch alone can take a minute on a busy machine
pytestmark = pytest.mark.timeout(600)


@contextmanager
def _bought(_: Path) -> Iterator[Embedder]:
    with StubProvider(lambda _: Vectors()) as stub, start_blocking_portal() as portal:
        paid = load("openai:text-embedding-3-small@48")
        assert isinstance(paid, OpenAIEmbedder)
        adapter = OpenAIAdapter(api_key="any", base_url=stub.openai_url)
        complete = build(adapter, journal=Account(), prices=FlatPrices(), bound=by_bytes)

        async def encode(texts: Sequence[str]) -> np.ndarray:
            return await paid.encode(texts, complete, tenant="any")

        yield Bought(paid, lambda texts: portal.call(encode, texts))
        portal.call(adapter.aclose)


def _tiny(folder: Path) -> AbstractContextManager[Embedder]:
    return nullcontext(load(str(save_tiny_encoder(folder))))


def _exported(folder: Path) -> AbstractContextManager[Embedder]:
    place = str(save_tiny_encoder(folder / "model"))
    return nullcontext(load(place, options=Options(backend="onnx", cache=folder / "exports")))


def _medcpt(folder: Path) -> AbstractContextManager[Embedder]:
    return nullcontext(load(save_tiny_medcpt(folder).embedder, precision="float32"))


HARNESSES: Mapping[str, Callable[[Path], AbstractContextManager[Embedder]]] = MappingProxyType(
    {
        "hash": lambda _: nullcontext(HashEmbedder(dim=48)),
        "medcpt": _medcpt,
        "openai": _bought,
        "tiny": _tiny,
        "tiny-onnx": _exported,
        "minilm": lambda _: nullcontext(load("minilm")),
    }
)
#: how far apart two vectors of one text may be: in half precision or integers, what is beside it changes some digits
FAR = {"tiny": 0.03, "tiny-onnx": 0.03, "minilm": 0.03}
SLOW = {"minilm": pytest.mark.slow}


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=SLOW.get(name, ())) for name in sorted(HARNESSES)],
)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def embedder(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedder]:
    with HARNESSES[kind](tmp_path_factory.mktemp(kind)) as made:
        yield made


@pytest.fixture(scope="module")
def far(kind: str) -> float:
    return FAR.get(kind, 2e-5)


PASSAGES = [
    Passage(id="a", title="Aspirin", text="Aspirin lowered the risk of stroke. The dose was 5 mg."),
    Passage(id="b", text="No risk in adults."),
    Passage(id="c", title="A title alone", text=""),
    Passage(id="d", text="Aspirin lowered the risk of stroke in adults. " * 60),
    Passage(id="e", text=" \n"),
]


def _embed(embedder: Embedder, passages: Sequence[Passage] = PASSAGES) -> list[Encoded]:
    return embedder.embed_passages(passages, [split(p.text) for p in passages])


def test_vectors_have_the_stated_shapes_types_and_lengths(embedder: Embedder) -> None:
    for passage, found in zip(PASSAGES, _embed(embedder), strict=True):
        assert found.vector.shape == (embedder.dim,)
        assert found.sentence_vectors.shape == (len(split(passage.text)), embedder.dim)
        assert found.vector.dtype == found.sentence_vectors.dtype == np.float32
        assert np.isfinite(found.vector).all()
        np.testing.assert_allclose(np.linalg.norm(found.sentence_vectors, axis=1), 1, atol=1e-4)
        if not isinstance(embedder, Unnormalised):
            assert np.linalg.norm(found.vector) == pytest.approx(1, abs=1e-4)
        assert found.tokens is None


def test_questions_are_encoded_alike_one_by_one_and_together(
    embedder: Embedder, far: float
) -> None:
    texts = ["Does aspirin lower the risk?", "dose", "the trial " * 500, "投与量 5 mg。", "\x00 😀"]
    together = embedder.embed_queries(texts)
    assert together.shape == (len(texts), embedder.dim)
    assert together.dtype == np.float32
    assert np.isfinite(together).all()
    if not isinstance(embedder, Unnormalised):
        np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-4)
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_allclose(embedder.encode_query(text).vector, vector, atol=far)


def test_nothing_in_nothing_out(embedder: Embedder) -> None:
    assert embedder.embed_queries([]).shape == (0, embedder.dim)
    assert embedder.embed_passages([], []) == []


def test_neither_order_nor_company_changes_a_vector(embedder: Embedder, far: float) -> None:
    together, backwards = _embed(embedder), _embed(embedder, PASSAGES[::-1])[::-1]
    alone = [_embed(embedder, [passage])[0] for passage in PASSAGES]
    for one, *others in zip(together, backwards, alone, strict=True):
        for other in others:
            np.testing.assert_allclose(one.vector, other.vector, atol=far)
            np.testing.assert_allclose(one.sentence_vectors, other.sentence_vectors, atol=far)


def test_calls_from_many_threads_agree(embedder: Embedder, far: float) -> None:
    expected = _embed(embedder)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: _embed(embedder), range(4)):
            for one, other in zip(expected, found, strict=True):
                np.testing.assert_allclose(one.vector, other.vector, atol=far)
