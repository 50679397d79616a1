"""Self-information of phrases: the mean bits of their words, by an n-gram or a causal language model."""

from __future__ import annotations

from strategies.compression.self_information.annotator import (
    SelfInformationAnnotator,
    make_annotator,
)

__all__ = ["SelfInformationAnnotator", "make_annotator"]
