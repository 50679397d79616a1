"""Names of models: ``provider:name``, split at the first colon."""

from __future__ import annotations

from dataclasses import dataclass

from posology.errors import UnknownModel
from posology.llm.providers.table import PROVIDERS

#: of simulated models, which answer from the gold of an evaluation and of nothing else
SIMULATED = "simulated"


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelName:
    """A model's name, taken apart."""

    #: a key of :data:`~posology.llm.providers.table.PROVIDERS`
    provider: str
    #: as the provider knows it; may hold colons, as fine-tuned models' names do
    name: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}"


def parse(model: str) -> ModelName:
    """Take ``provider:name`` apart.

    Raises:
        UnknownModel: the provider is unknown, the name is missing, or the provider has no such model.
    """
    provider, _, name = model.strip().partition(":")
    if provider == SIMULATED:
        raise UnknownModel(
            f"{model} is a simulation that needs known answers: only `posology eval` asks it. Use {model_forms()}",
            model=model,
        )
    row = PROVIDERS.get(provider)
    if row is None or not name:
        raise UnknownModel(f"unknown model {model!r}: use {model_forms()}", model=model)
    if row.models and name not in row.models:
        raise UnknownModel(
            f"unknown model {model!r}: {provider} has {', '.join(row.forms)}", model=model
        )
    return ModelName(provider=provider, name=name)


def model_forms() -> str:
    """Return how a model may be named, for messages and help: ``openai:NAME, anthropic:NAME or …``."""
    *others, last = (form for row in PROVIDERS.values() for form in row.forms)
    return f"{', '.join(others)} or {last}"
