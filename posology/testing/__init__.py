"""Fakes that are real classes: for Posology's own tests and for those of its users."""

from posology.testing.codec import TruncatingCodec
from posology.testing.echo import echo
from posology.testing.embedder import HashEmbedder
from posology.testing.encoder import save_tiny_encoder
from posology.testing.faults import Faults
from posology.testing.load import LoadStub
from posology.testing.model import ScriptedModel
from posology.testing.prices import FlatPrices, by_bytes
from posology.testing.provider import StubProvider
from posology.testing.reranker import save_tiny_reranker
from posology.testing.steps import (
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
from posology.testing.summarizer import save_tiny_summarizer
from posology.testing.switch import forbid_remote_providers

__all__ = [
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
