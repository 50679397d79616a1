"""Provence: a cross-encoder that prunes passages and re-ranks them in one pass."""

from __future__ import annotations

from strategies.compression.provence.compressor import (
    NAME,
    THRESHOLD,
    Provence,
    ProvenceReranker,
    judge,
    make,
    make_reranker,
)

__all__ = ["NAME", "THRESHOLD", "Provence", "ProvenceReranker", "judge", "make", "make_reranker"]
