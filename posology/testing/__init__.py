"""Fakes that are real classes: for Posology's own tests and for those of its users."""

from posology.testing.model import ScriptedModel
from posology.testing.models.codec import TruncatingCodec
from posology.testing.models.embedder import HashEmbedder
from posology.testing.models.encoder import save_tiny_encoder
from posology.testing.models.judge import ScriptedJudge
from posology.testing.models.reranker import save_tiny_reranker
from posology.testing.models.summarizer import save_tiny_summarizer
from posology.testing.prices import FlatPrices, by_bytes
from posology.testing.provider.batches.book import BatchBook, BatchFaults
from posology.testing.provider.echo import echo
from posology.testing.provider.faults import Faults
from posology.testing.provider.load import LoadStub
from posology.testing.provider.steps import (
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
from posology.testing.provider.stub import StubProvider
from posology.testing.switch import forbid_remote_providers

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
