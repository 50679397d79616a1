"""What every re-ranker promises: one score a passage, in whatever order they come."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.retrieval import RERANKERS
from posology.index.embedders.options import Options
from posology.index.rerankers import medcpt, nsp
from posology.seams import Reranker
from posology.testing import save_tiny_reranker
from posology.testing.models.medcpt import save_tiny_bert, save_tiny_medcpt
from posology.types import Retrieval
from strategies.compression import provence
from strategies.compression.late.codec import LateCodec
from strategies.compression.late.pruner import LateReranker
from strategies.compression.parts import Parts
from tests.support.compression import compressible, contexts
from tests.support.compression_tokens import coded
from tests.support.examples import examples

DIM = len(LateCodec.packaged().rotation)


def _provence(folder: Path) -> Reranker:
    model = save_tiny_reranker(folder)
    return provence.make_reranker(Parts(models={provence.NAME: str(model)}))


#: by the names of ``RERANKERS``: one without an entry here fails the suite
HARNESSES: Mapping[str, Callable[[Path], Reranker]] = MappingProxyType(
    {
        "medcpt": lambda folder: medcpt.load(
            str(save_tiny_medcpt(folder).cross), Options(precision="float32")
        ),
        "nsp": lambda folder: nsp.load(str(save_tiny_bert(folder))),
        "provence": _provence,
        "pruner": lambda _: LateReranker(),
    }
)


@pytest.fixture(scope="module", params=sorted(RERANKERS))
def reranker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Reranker:
    return HARNESSES[request.param](tmp_path_factory.mktemp(request.param))


def retrieval(*texts: str) -> Retrieval:
    return coded(compressible(texts, dim=DIM))


some = examples(15)


@some
@given(texts=contexts, data=st.data())
def test_a_passage_has_its_score_in_whatever_order_they_come(
    reranker: Reranker, texts: list[str], data: st.DataObject
) -> None:
    found = retrieval(*texts)
    scores = reranker(found)
    assert scores.shape == (len(texts),)
    assert scores.dtype == np.float32
    assert np.isfinite(scores).all()
    places = data.draw(st.permutations(range(len(texts))))
    moved = replace(found, passages=tuple(found.passages[i] for i in places))
    assert reranker(moved) == pytest.approx(scores[list(places)], abs=1e-4)


def test_of_nothing_there_is_no_score(reranker: Reranker) -> None:
    found = retrieval("Aspirin lowered the risk.")
    assert reranker(replace(found, passages=())).shape == (0,)


def test_what_a_passage_says_counts(reranker: Reranker) -> None:
    first, second = reranker(retrieval("Aspirin lowered the risk of stroke.", "the dose"))
    assert first != second


def test_it_may_be_used_by_several_threads_at_once(reranker: Reranker) -> None:
    found = retrieval("Aspirin lowered the risk of stroke.", "The dose was 5 mg.")
    alone = reranker(found)
    with ThreadPoolExecutor(4) as pool:
        for scores in pool.map(lambda _: reranker(found), range(12)):
            assert scores == pytest.approx(alone, abs=1e-5)


def test_each_has_a_name_that_tells_its_model(tmp_path: Path) -> None:
    names = [make(tmp_path / name).name for name, make in HARNESSES.items()]
    assert len({*names}) == len(names)
    other = save_tiny_bert(tmp_path / "other", seed=1)
    assert nsp.load(str(other)).name not in names
