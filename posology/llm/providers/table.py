"""The table of providers: one row says all that the rest of the system has to know of a provider.

Importing it loads no SDK: a row's factory imports its adapter when the first connection is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from posology.seams import Send

if TYPE_CHECKING:
    from posology.llm.providers.anthropic import AnthropicAdapter
    from posology.llm.providers.openai import OpenAIAdapter
    from posology.seams.batches import BatchEndpoint

#: tokens of the instructions that a provider adds for a structured reply, where it publishes no figure;
#: Anthropic's system prompt for tools takes at most 346 with current models
SCHEMA_TOKENS = 400


class Adapter(Send, Protocol):
    """A :class:`~posology.seams.Send` that holds connections."""

    async def aclose(self) -> None:
        """Close them."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ProviderOptions:
    """How to connect to a provider."""

    #: API key; never rendered
    api_key: str | None = field(default=None, repr=False)
    #: ``None``: the provider's own address
    base_url: str | None = None
    #: seconds for one request as a whole; with a floor, to its first token
    timeout: float = 60.0
    #: fewest tokens a second that a reply is written at, see :func:`~posology.llm.pace.generation`
    min_tokens_per_second: float | None = None
    #: see :class:`posology.llm.providers.openai.OpenAIAdapter`
    legacy_max_tokens: bool = False
    #: whether the schema of a structured reply is sent
    native_schema: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Provider:
    """One row of :data:`PROVIDERS`."""

    #: the part of a model's name before the colon
    name: str
    #: full name, for reference pages: "API key of …"
    title: str
    #: makes an adapter; ``None``: the provider runs in this process, and the composition root makes it
    connect: Callable[[ProviderOptions], Adapter] | None
    #: connects to its batch endpoint; ``None``: it has none
    batches: Callable[[ProviderOptions], BatchEndpoint] | None = None
    #: environment variable of the API key; ``None``: it needs none
    key_variable: str | None = None
    #: environment variable of the base URL; ``None``: the address is fixed
    url_variable: str | None = None
    #: names of its models, where it has no others; empty: any name
    models: tuple[str, ...] = ()
    #: whether its calls cost nothing, at any usage
    free: bool = False
    #: tokens of the instructions that the provider adds for a structured reply, the schema itself apart
    schema_tokens: int = SCHEMA_TOKENS

    @property
    def remote(self) -> bool:
        """Whether calls leave this process."""
        return self.connect is not None

    @property
    def forms(self) -> tuple[str, ...]:
        """The names of models as they are typed: ``provider:NAME``, or each model by its name."""
        return tuple(f"{self.name}:{model}" for model in self.models or ("NAME",))


def _anthropic(options: ProviderOptions) -> AnthropicAdapter:
    from posology.llm.providers.anthropic import AnthropicAdapter

    return AnthropicAdapter(
        api_key=options.api_key,
        base_url=options.base_url,
        timeout=options.timeout,
        min_tokens_per_second=options.min_tokens_per_second,
        native_schema=options.native_schema,
    )


def _openai(options: ProviderOptions) -> OpenAIAdapter:
    from posology.llm.providers.openai import OpenAIAdapter

    return OpenAIAdapter(
        api_key=options.api_key,
        base_url=options.base_url,
        timeout=options.timeout,
        min_tokens_per_second=options.min_tokens_per_second,
        legacy_max_tokens=options.legacy_max_tokens,
        native_schema=options.native_schema,
    )


def _anthropic_batches(options: ProviderOptions) -> BatchEndpoint:
    from posology.llm.providers.anthropic_batches import AnthropicBatches

    return AnthropicBatches(_anthropic(options))


def _openai_batches(options: ProviderOptions) -> BatchEndpoint:
    from posology.llm.providers.openai_batches import OpenAIBatches

    return OpenAIBatches(_openai(options))


_ROWS = (
    Provider(
        name="openai",
        title="OpenAI, or of a server with OpenAI's API",
        connect=_openai,
        batches=_openai_batches,
        key_variable="OPENAI_API_KEY",
        url_variable="OPENAI_BASE_URL",
        # a heading
        schema_tokens=64,
    ),
    Provider(
        name="anthropic",
        title="Anthropic",
        connect=_anthropic,
        batches=_anthropic_batches,
        key_variable="ANTHROPIC_API_KEY",
        url_variable="ANTHROPIC_BASE_URL",
    ),
    # needs an encoder, which only the composition root has
    Provider(
        name="offline",
        title="Extractive reader in this process",
        connect=None,
        models=("extractive",),
        free=True,
        schema_tokens=0,
    ),
)
#: the providers by their names; a new provider is a row above
PROVIDERS: dict[str, Provider] = {row.name: row for row in _ROWS}


def variables() -> dict[str, str]:
    """Return the environment variables of all providers, each with its description."""
    found = {}
    for row in PROVIDERS.values():
        if row.key_variable is not None:
            found[row.key_variable] = (
                f"API key of {row.title}. Default: none; {row.name} models are then unavailable."
            )
        if row.url_variable is not None:
            found[row.url_variable] = f"Address of {row.title}. Default: the provider's own."
    return found
