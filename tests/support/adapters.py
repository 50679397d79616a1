"""Adapters and attempts that are made of plain models."""

from __future__ import annotations

from typing import Any

from posology import errors
from posology.llm.calls import Attempting, CallState
from posology.seams import Complete, Send
from posology.types import Call, Completion


def sending(model: Complete) -> Send:
    """Return an adapter over a model that takes calls alone."""

    async def send(call: Call, *, attempt_id: str | None = None) -> Completion:
        return await model(call)

    return send


def attempting(model: Complete) -> Attempting:
    """Return attempts at calls to a model, with no account between."""

    async def attempt(call: Call, state: CallState) -> Completion:
        return await model(call)

    return attempt


def fails(
    kind: type[errors.ProviderError] = errors.ProviderOverloaded, **details: Any
) -> errors.ProviderError:
    """Return an error of a provider."""
    return kind("no", provider="openai", model="openai:m", **details)
