"""Fakes that are real classes: providers, models, literature services."""

from tests.doubles.model import ScriptedModel
from tests.doubles.models.codec import TruncatingCodec
from tests.doubles.models.embedder import HashEmbedder
from tests.doubles.models.encoder import save_tiny_encoder
from tests.doubles.models.judge import ScriptedJudge
from tests.doubles.models.reranker import save_tiny_reranker
from tests.doubles.models.summarizer import save_tiny_summarizer
from tests.doubles.prices import FlatPrices, by_bytes
from tests.doubles.provider.batches.book import BatchBook, BatchFaults
from tests.doubles.provider.echo import echo
from tests.doubles.provider.faults import Faults
from tests.doubles.provider.load import LoadStub
from tests.doubles.provider.steps import (
    Broken,
    Cut,
    Hang,
    Malformed,
    NoSuchModel,
    Recorded,
    Reply,
    Status,
    Step,
    Vectors,
)
from tests.doubles.provider.stub import StubProvider
from tests.doubles.switch import forbid_remote_providers

__all__ = [
    "BatchBook",
    "BatchFaults",
    "Broken",
    "Cut",
    "Faults",
    "FlatPrices",
    "Hang",
    "HashEmbedder",
    "LoadStub",
    "Malformed",
    "NoSuchModel",
    "Recorded",
    "Reply",
    "ScriptedJudge",
    "ScriptedModel",
    "Status",
    "Step",
    "StubProvider",
    "TruncatingCodec",
    "Vectors",
    "by_bytes",
    "echo",
    "forbid_remote_providers",
    "save_tiny_encoder",
    "save_tiny_reranker",
    "save_tiny_summarizer",
]
