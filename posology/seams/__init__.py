"""The seams: where a new provider, strategy, policy or embedder plugs in.

A seam of one method is a callable protocol. Each has one contract suite under ``tests/contract``
that runs over every implementation.
"""

from __future__ import annotations

from posology.seams.answering import (
    Complete,
    Compressor,
    Guess,
    Memory,
    Policy,
    Recall,
    Rewriter,
    Send,
    Strategy,
)
from posology.seams.literature import (
    Annotator,
    Embedder,
    PaidEmbedder,
    Reranker,
    TokenCodec,
    TokenEncoder,
    Unnormalised,
)
from posology.seams.money import Bound, Journal, Meter, Prices, TokenCounter
from posology.seams.reading import PassageReader, SupportJudge

__all__ = [
    "Annotator",
    "Bound",
    "Complete",
    "Compressor",
    "Embedder",
    "Guess",
    "Journal",
    "Memory",
    "Meter",
    "PaidEmbedder",
    "PassageReader",
    "Policy",
    "Prices",
    "Recall",
    "Reranker",
    "Rewriter",
    "Send",
    "Strategy",
    "SupportJudge",
    "TokenCodec",
    "TokenCounter",
    "TokenEncoder",
    "Unnormalised",
]
