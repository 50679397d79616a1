"""Names of models: ``provider:name``, split at the first colon."""

from __future__ import annotations

from dataclasses import dataclass

from posology.errors import UnknownModel

#: the providers that a model's name may start with; `posology.llm.providers.table` has a factory for each
PROVIDERS = ("anthropic", "offline", "openai")
#: the offline readers that ship
OFFLINE = ("extractive",)


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelName:
    """A model's name, taken apart."""

    #: one of :data:`PROVIDERS`
    provider: str
    #: as the provider knows it; may hold colons, as fine-tuned models' names do
    name: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}"


def parse(model: str) -> ModelName:
    """Take ``provider:name`` apart.

    Raises:
        UnknownModel: no such provider, no name, or no such offline reader.
    """
    provider, _, name = model.strip().partition(":")
    if provider not in PROVIDERS or not name:
        known = "openai:NAME, anthropic:NAME or offline:" + "|".join(OFFLINE)
        raise UnknownModel(f"no model {model!r}: name one as {known}", model=model)
    if provider == "offline" and name not in OFFLINE:
        raise UnknownModel(
            f"no offline model {name!r}: there is offline:{', offline:'.join(OFFLINE)}", model=model
        )
    return ModelName(provider=provider, name=name)
