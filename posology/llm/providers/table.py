"""The providers that there are, and how an adapter of each is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from posology.seams import Complete


class Adapter(Complete, Protocol):
    """A :class:`~posology.seams.Complete` that holds connections."""

    async def aclose(self) -> None:
        """Close them."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ProviderOptions:
    """How to reach a provider; the offline reader needs none of it."""

    #: never shown
    api_key: str | None = field(default=None, repr=False)
    #: ``None``: the provider's own
    base_url: str | None = None
    #: seconds for one request as a whole
    timeout: float = 60.0
    #: see :class:`posology.llm.providers.openai.OpenAIAdapter`
    legacy_max_tokens: bool = False
    #: whether the schema of a structured reply is sent
    native_schema: bool = True


def _anthropic(options: ProviderOptions) -> Adapter:
    from posology.llm.providers.anthropic import AnthropicAdapter

    return AnthropicAdapter(
        api_key=options.api_key,
        base_url=options.base_url,
        timeout=options.timeout,
        native_schema=options.native_schema,
    )


def _openai(options: ProviderOptions) -> Adapter:
    from posology.llm.providers.openai import OpenAIAdapter

    return OpenAIAdapter(
        api_key=options.api_key,
        base_url=options.base_url,
        timeout=options.timeout,
        legacy_max_tokens=options.legacy_max_tokens,
        native_schema=options.native_schema,
    )


#: the offline reader is not here: it needs an encoder, which only the composition root has
FACTORIES: dict[str, Callable[[ProviderOptions], Adapter]] = {
    "anthropic": _anthropic,
    "openai": _openai,
}
