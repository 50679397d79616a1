from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from posology.index.embedders import load
from posology.index.embedders.sentence_transformer import heading
from posology.query import make_query
from posology.text.sentences import split
from posology.types import Passage, Retrieval, TokenCodes
from strategies.compression.late.codec import LateCodec
from tests.support.tasks import retrieval_of

PASSAGES = (
    Passage(
        id="a",
        title="Zinc for the common cold",
        text="Colds are frequent in children. In the zinc group the cold lasted 4.5 days, "
        "against 6.1 days with placebo. The trial was done in two schools of Leeds.",
    ),
    Passage(
        id="b",
        title="Harbour seals of the North Sea",
        text="Seals were counted from the air. Their number grew by a tenth in each year.",
    ),
)
QUESTION = "How many days did colds last with zinc?"


@pytest.fixture(scope="session")
def real() -> Retrieval:
    """Two passages, and a question that one of them answers, by the default embedder."""
    embedder, codec = load(None), LateCodec.packaged()
    encoded = embedder.embed_passages(PASSAGES, [split(p.text) for p in PASSAGES])
    tokens = embedder.token_vectors([heading(p) + p.text for p in PASSAGES])
    asked = retrieval_of(make_query(QUESTION), PASSAGES)
    found = []
    for one, vectors, t in zip(asked.passages, encoded, tokens, strict=True):
        starts = [len(heading(one.passage)) + s.start for s in one.sentences]
        bounds = np.searchsorted(t.starts, starts)
        counts = np.diff(np.concatenate([[0], bounds, [len(t.ids)]])).astype(np.int32)
        found.append(
            replace(
                one,
                vector=vectors.vector,
                sentence_vectors=np.round(vectors.sentence_vectors * 127).astype(np.int8),
                tokens=TokenCodes(codes=codec(t), counts=counts),
            )
        )
    return replace(
        asked,
        passages=tuple(found),
        query_vector=embedder.embed_queries([QUESTION])[0],
        query_tokens=embedder.token_vectors([QUESTION])[0],
        codec=codec.name,
    )
