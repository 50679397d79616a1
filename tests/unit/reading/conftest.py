"""A cross-encoder of one narrow layer with random weights."""

from __future__ import annotations

import pytest
from transformers import BertConfig

from posology.reading.crossencoder import CrossEncoder
from training.reader.model import ReaderModel, export, make


def tiny(seed: int = 0) -> ReaderModel:
    config = BertConfig(
        vocab_size=8,
        hidden_size=384,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return make(seed, config)


@pytest.fixture(scope="session")
def encoder() -> CrossEncoder:
    return CrossEncoder(export(tiny()), threads=1)
