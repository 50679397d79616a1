from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from posology.query import make_query
from posology.testing import save_tiny_reranker
from posology.types import Passage, Retrieval
from strategies.compression.provence.checkpoint import load, save
from tests.support.tasks import retrieval_of

KINDS = ("deberta-v2", "bert", "xlm-roberta")
LONG = (
    "Aspirin lowered the risk of stroke in adults. The dose was 75 mg. Nobody was lost. "
    "Bleeding was not seen in the group. Adults were followed for a year."
)
SHORT = "The risk was not lowered. It was 5 mg."


def retrieve(
    *texts: str, titles: Sequence[str] = (), question: str = "Is aspirin safe?"
) -> Retrieval:
    titles = [*titles, *("" for _ in texts)]
    return retrieval_of(
        make_query(question),
        [Passage(id=f"t:{i}", text=t, title=titles[i]) for i, t in enumerate(texts)],
    )


@pytest.fixture(scope="session", params=KINDS)
def reranker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A re-ranker that has not learned to prune."""
    return save_tiny_reranker(tmp_path_factory.mktemp("reranker"), kind=request.param)


@pytest.fixture(scope="session")
def pruner(reranker: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a token head of random weights that tell tokens apart."""
    import torch

    folder = tmp_path_factory.mktemp("pruner")
    checkpoint = load(str(reranker))
    torch.manual_seed(1)
    with torch.no_grad():
        checkpoint.model.token_head.weight.normal_(0, 0.5)
    save(checkpoint.model, checkpoint.tokenizer, folder, {"made": "by a test"})
    return folder
