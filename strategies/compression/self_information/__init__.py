"""How much each phrase tells: the self-information of its words, by one language model or another."""

from __future__ import annotations

from strategies.compression.self_information.annotator import (
    SelfInformationAnnotator,
    make_annotator,
)

__all__ = ["SelfInformationAnnotator", "make_annotator"]
