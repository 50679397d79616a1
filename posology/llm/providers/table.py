"""The table of providers: one row says all that the rest of the system has to know of a provider.

Importing it loads no SDK: a row's factory imports its adapter when the first connection is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from posology.llm.providers.local.kinds import GGUF, KINDS, Kind
from posology.seams import Send

if TYPE_CHECKING:
    from posology.llm.calls import Told
    from posology.llm.providers.anthropic import AnthropicAdapter
    from posology.llm.providers.local.adapter import LocalAdapter
    from posology.llm.providers.local.gguf import GgufAdapter
    from posology.llm.providers.openai import OpenAIAdapter
    from posology.llm.providers.places import Allowance
    from posology.seams.batches import BatchEndpoint
    from posology.types import Call

#: tokens of the instructions that a provider adds for a structured reply, where it publishes no figure;
#: Anthropic's system prompt for tools takes at most 346 with current models
SCHEMA_TOKENS = 400


class TokenCounter(Protocol):
    """An adapter whose provider counts the tokens of a call free of charge."""

    async def count(self, call: Call) -> int:
        """Return the input tokens of a call.

        Raises:
            ProviderError: in its kinds.
        """
        ...


class Adapter(Send, Protocol):
    """A :class:`~posology.seams.Send` that holds connections."""

    async def aclose(self) -> None:
        """Close them."""
        ...


@runtime_checkable
class Stating(Protocol):
    """An adapter whose provider states its limits."""

    #: takes what they still allow, with each reply; ``None``: it is ignored
    heard: Callable[[Allowance], None] | None


@runtime_checkable
class Slotted(Protocol):
    """An adapter of a server that serves a fixed number of calls at once, and queues the others."""

    async def slots(self) -> int | None:
        """Return the number; ``None``: the server does not say."""
        ...


@runtime_checkable
class Telling(Protocol):
    """An adapter that streams replies."""

    def telling(self, told: Told) -> Send:
        """Return what sends calls as this does, and tells how far their replies are."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ProviderOptions:
    """How to connect to a provider."""

    #: API key; never rendered
    api_key: str | None = field(default=None, repr=False)
    #: ``None``: the provider's own address
    base_url: str | None = None
    #: seconds of silence; of a request that is not streamed, as a whole
    timeout: float = 60.0
    #: fewest tokens a second that a reply is written at, see :func:`~posology.llm.pace.generation`
    min_tokens_per_second: float | None = None
    #: see :class:`posology.llm.providers.openai.OpenAIAdapter`
    legacy_max_tokens: bool = False
    #: whether the schema of a structured reply is sent
    native_schema: bool = True
    #: tokens of input and output together of a model that is loaded for us; ``None``: see
    #: :data:`~posology.llm.providers.local.kinds.WINDOW`
    window: int | None = None
    #: data folder, for files of servers that are started for us
    home: Path = Path(".posology")
    #: seconds without a call after which such a server ends
    idle: float = 600.0
    #: whether replies in words are streamed
    stream: bool = True
    #: values of the row's other variables, as far as they are set
    more: Mapping[str, str] = field(default_factory=dict)


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
    #: whether there are credentials of another kind, without which no key is missed
    key_optional: bool = False
    #: other environment variables, each with its description
    more: Mapping[str, str] = field(default_factory=dict)
    #: its id in the packaged table of prices; empty: its name
    priced_as: str = ""
    #: how many times the price of the packaged table is reserved and charged
    factor: Decimal = Decimal(1)
    #: whether its adapters are a :class:`TokenCounter`
    counts: bool = False
    #: names of its models, where it has no others; empty: any name
    models: tuple[str, ...] = ()
    #: what a model's name is, for help
    named: str = "NAME"
    #: whether its calls cost nothing, at any usage
    free: bool = False
    #: default address of a server of one's own; ``None``: it is another's service
    address: str | None = None
    #: calls at once until it says how many it serves; ``None``: as with any other provider
    at_once: int | None = None
    #: tokens of the instructions that the provider adds for a structured reply, the schema itself apart
    schema_tokens: int = SCHEMA_TOKENS

    @property
    def remote(self) -> bool:
        """Whether calls leave this process."""
        return self.connect is not None

    @property
    def local(self) -> bool:
        """Whether its models are open weights on a machine of one's own."""
        return self.address is not None

    @property
    def forms(self) -> tuple[str, ...]:
        """The names of models as they are typed: ``provider:NAME``, or each model by its name."""
        return tuple(f"{self.name}:{model}" for model in self.models or (self.named,))


def _requests(options: ProviderOptions) -> dict[str, Any]:
    """Return the options that all adapters take."""
    return {
        "timeout": options.timeout,
        "min_tokens_per_second": options.min_tokens_per_second,
        "native_schema": options.native_schema,
        "stream": options.stream,
    }


def _anthropic(options: ProviderOptions) -> AnthropicAdapter:
    from posology.llm.providers.anthropic import AnthropicAdapter

    return AnthropicAdapter(
        api_key=options.api_key,
        base_url=options.base_url,
        **_requests(options),
    )


def _openai(options: ProviderOptions) -> OpenAIAdapter:
    from posology.llm.providers.openai import OpenAIAdapter

    return OpenAIAdapter(
        api_key=options.api_key,
        base_url=options.base_url,
        legacy_max_tokens=options.legacy_max_tokens,
        **_requests(options),
    )


def _azure(options: ProviderOptions) -> Adapter:
    from posology.llm.providers.clouds.azure import (
        DEPLOYMENTS,
        VERSION,
        AzureAdapter,
        parse_deployments,
    )

    return AzureAdapter(
        api_key=options.api_key,
        base_url=options.base_url,
        version=options.more.get(VERSION),
        deployments=parse_deployments(options.more.get(DEPLOYMENTS)),
        legacy_max_tokens=options.legacy_max_tokens,
        **_requests(options),
    )


def _bedrock(options: ProviderOptions) -> Adapter:
    from posology.llm.providers.clouds.bedrock import REGION, BedrockAdapter

    return BedrockAdapter(
        api_key=options.api_key,
        region=options.more.get(REGION),
        base_url=options.base_url,
        **_requests(options),
    )


def _vertex(options: ProviderOptions) -> Adapter:
    from posology.llm.providers.clouds.vertex import PROJECT, REGION, VertexAdapter

    return VertexAdapter(
        region=options.more.get(REGION),
        project=options.more.get(PROJECT),
        base_url=options.base_url,
        **_requests(options),
    )


def _local(options: ProviderOptions, *, kind: Kind) -> LocalAdapter:
    from posology.llm.providers.local.adapter import LocalAdapter
    from posology.llm.providers.local.ollama import OllamaAdapter

    given = {"api_key": options.api_key, "base_url": options.base_url, **_requests(options)}
    if kind.name == "ollama":
        return OllamaAdapter(kind, window=options.window, **given)
    return LocalAdapter(kind, **given)


def _gguf(options: ProviderOptions) -> GgufAdapter:
    from posology.llm.providers.local.gguf import GgufAdapter

    return GgufAdapter(
        home=options.home, idle=options.idle, window=options.window, **_requests(options)
    )


def _own(kind: Kind) -> Provider:
    """Return the row of a kind of local servers."""
    return Provider(
        name=kind.name,
        title=kind.title,
        connect=partial(_local, kind=kind),
        key_variable=kind.key_variable,
        key_optional=True,
        url_variable=kind.url_variable,
        counts=kind.counts,
        free=True,
        address=kind.address,
        at_once=kind.at_once,
        schema_tokens=0,
    )


def _anthropic_batches(options: ProviderOptions) -> BatchEndpoint:
    from posology.llm.providers.batches.anthropic import AnthropicBatches

    return AnthropicBatches(_anthropic(options))


def _openai_batches(options: ProviderOptions) -> BatchEndpoint:
    from posology.llm.providers.batches.openai import OpenAIBatches

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
        counts=True,
    ),
    Provider(
        name="azure",
        title="Azure OpenAI",
        connect=_azure,
        key_variable="AZURE_OPENAI_API_KEY",
        url_variable="AZURE_OPENAI_ENDPOINT",
        more={
            "OPENAI_API_VERSION": "Version of Azure OpenAI's API, as a date. Default: none; `azure` models need it.",
            "AZURE_OPENAI_DEPLOYMENTS": "Names of Azure deployments that differ from their model's: "
            "`MODEL=DEPLOYMENT,…`. Default: none.",
        },
        schema_tokens=64,
        # data zones cost 10 to 20 % more than the list prices of global deployments, and a request does not say which it is
        factor=Decimal("1.2"),
    ),
    Provider(
        name="bedrock",
        title="Amazon Bedrock",
        connect=_bedrock,
        key_variable="AWS_BEARER_TOKEN_BEDROCK",
        url_variable="ANTHROPIC_BEDROCK_BASE_URL",
        key_optional=True,
        more={"AWS_REGION": "Region of Bedrock and of the object storage. Default: none."},
        priced_as="aws",
    ),
    Provider(
        name="vertex",
        title="Vertex AI",
        connect=_vertex,
        url_variable="ANTHROPIC_VERTEX_BASE_URL",
        more={
            "CLOUD_ML_REGION": "Region of Vertex AI: `global`, `us`, `eu` or a region. Default: none; `vertex` models need it.",
            "ANTHROPIC_VERTEX_PROJECT_ID": "Id of the Google Cloud project that pays for `vertex` models. Default: none.",
        },
        priced_as="google",
        counts=True,
        # all locations but the global one cost a tenth more, and the name of a model does not say where it runs
        factor=Decimal("1.1"),
    ),
    *map(_own, KINDS.values()),
    Provider(
        name=GGUF.name,
        title=GGUF.title,
        connect=_gguf,
        named="PATH",
        free=True,
        address=GGUF.address,
        at_once=GGUF.at_once,
        schema_tokens=0,
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
            without = "none is sent" if row.local else f"{row.name} models are then unavailable"
            found[row.key_variable] = f"API key of {row.title}. Default: none; {without}."
        if row.url_variable is not None:
            default = row.address or "the provider's own"
            found[row.url_variable] = f"Address of {row.title}. Default: {default}."
        found |= row.more
    return found
