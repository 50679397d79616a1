"""Fakes that are real classes: for Posology's own tests and for those of its users."""

from posology.testing.echo import echo
from posology.testing.embedder import HashEmbedder
from posology.testing.encoder import save_tiny_encoder
from posology.testing.faults import Faults
from posology.testing.load import LoadStub
from posology.testing.model import ScriptedModel
from posology.testing.prices import FlatPrices, by_bytes
from posology.testing.provider import StubProvider
from posology.testing.steps import Cut, Hang, Malformed, NoSuchModel, Recorded, Reply, Status, Step
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
    "by_bytes",
    "echo",
    "forbid_remote_providers",
    "save_tiny_encoder",
]
