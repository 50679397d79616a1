"""Policies and strategies as models of OpenAI's form."""

from __future__ import annotations

import time
from collections.abc import Mapping

from orchestrator.api.problems import RequestProblem
from policies.specs import POLICIES
from posology.published.chat import ChatModel, ChatModels
from strategies import STRATEGIES

#: the model that leaves the choice to the service's own policy, and the prefix of all others
OWN = "posology"
_STARTED = int(time.time())


def models() -> ChatModels:
    """Return all models: the service's own policy, every other policy without settings, and every strategy."""
    names = (OWN, *(f"{OWN}/{name}" for name in (*POLICIES, *STRATEGIES)))
    return ChatModels(data=tuple(map(_model, names)))


def find(name: str) -> ChatModel:
    """Parse the name of a model, such as ``policy:setting=value``.

    Raises:
        RequestProblem: 404.
    """
    choice_of(name)
    return _model(name)


def choice_of(name: str) -> Mapping[str, str]:
    """Return the fields of a job that a model's name stands for.

    Raises:
        RequestProblem: 404.
    """
    if name == OWN:
        return {}
    prefix, _, chosen = name.partition("/")
    if prefix == OWN and chosen in STRATEGIES:
        return {"strategy": chosen}
    if prefix == OWN and chosen.partition(":")[0] in POLICIES:
        return {"policy": chosen}
    raise RequestProblem(
        404,
        "UnknownChatModel",
        "There is no such model",
        f"there is no model {name[:100]!r}: GET /v1/models lists all; the language model is chosen by posology.model",
        field="model",
    )


def _model(name: str) -> ChatModel:
    return ChatModel(id=name, created=_STARTED)
