"""The process's connections to models: one adapter for each provider, and one limiter for each of its service tiers."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import anyio

from orchestrator.configuration.measured import factors
from orchestrator.configuration.measured import read as read_measured
from orchestrator.logs.texts import Remembering
from orchestrator.prices import price_book
from orchestrator.settings import Settings
from posology.budget.bounds.calls import CallBound
from posology.errors import UnknownModel
from posology.llm.calls import Caller
from posology.llm.models.families import retirement_warning, tier_of
from posology.llm.models.names import parse
from posology.llm.providers.places import START, Allowance, Places
from posology.llm.providers.table import (
    PROVIDERS,
    Adapter,
    Provider,
    ProviderOptions,
    Slotted,
    Stating,
    Telling,
)
from posology.llm.retry import RetryPolicy
from posology.llm.stack import build
from posology.seams import Complete, Journal, Meter, Send
from posology.seams.batches import BatchEndpoint
from posology.types import Call, Tier

if TYPE_CHECKING:
    from posology.llm.providers.local.adapter import LocalAdapter
    from posology.llm.providers.local.servers import Server
    from posology.llm.providers.table import TokenCounter

logger = logging.getLogger(__name__)


def computes_here(model: str | None) -> bool:
    """Return whether a model computes in this process, and no provider answers for it."""
    row = PROVIDERS.get((model or "").strip().partition(":")[0])
    return row is not None and not row.remote


class Connections:
    """Connects to a provider on the first use of one of its models, and keeps the connection.

    Args:
        settings: keys, addresses, limits.
        offline: builds the offline reader, which needs the caller's models.
        meter: rate limits of calls whose caller has none; ``None``: they are not limited.

    Raises:
        BadPrices: the user's file of prices cannot be used.
    """

    def __init__(
        self, settings: Settings, *, offline: Callable[[], Send], meter: Meter | None = None
    ) -> None:
        self._settings = settings
        self._meter = meter
        #: prices of calls
        self.prices = price_book(settings)
        #: bound of a call's input tokens
        self.bound = CallBound(
            strict=self.prices.strict,
            native_schema=settings.native_schema,
            openai_files=Path(settings.tiktoken_files) if settings.tiktoken_files else None,
            measured=factors(read_measured(settings)),
        )
        self._offline = offline
        self._adapters: dict[str, Send] = {}
        self._remote: list[Adapter] = []
        self._endpoints: dict[str, BatchEndpoint] = {}
        self._places: dict[tuple[str, Tier], Places] = {}
        self._used: set[str] = set()

    def complete(
        self,
        model: str,
        journal: Journal,
        caller: Caller = Caller(),  # noqa: B008 - a frozen value
    ) -> Complete:
        """Build the call stack of a model.

        Args:
            model: ``provider:name``.
            journal: takes the account of every attempt.
            caller: caller of the model.

        Raises:
            UnknownModel: the provider is unknown, or the name has no provider.
            MissingKey: the provider's key is not set.
        """
        settings = self._settings
        provider = parse(model).provider
        self._warn(model)
        if provider not in self._adapters:
            self._adapters[provider] = self._connect(PROVIDERS[provider])
        adapter = self._adapters[provider]
        if caller.told is not None and isinstance(adapter, Telling):
            adapter = adapter.telling(caller.told)
        return build(
            Remembering(adapter) if settings.trace_texts else adapter,
            journal=journal,
            caller=caller if caller.meter is not None else replace(caller, meter=self._meter),
            prices=self.prices,
            bound=self.bound,
            retry=RetryPolicy(
                attempts=settings.attempts,
                deadline=settings.call_deadline,
                min_tokens_per_second=settings.floor(provider),
            ),
            limit=self._limit(provider, tier_of(caller.lane)),
        )

    def counter(self, model: str) -> Callable[[Call], Awaitable[int]] | None:
        """Return what counts a call's input tokens free of charge; ``None``: the provider does not.

        Raises:
            UnknownModel: the provider is unknown, or the name has no provider.
            MissingKey: the provider's key is not set.
        """
        provider = parse(model).provider
        if not PROVIDERS[provider].counts:
            return None
        if provider not in self._adapters:
            self._adapters[provider] = self._connect(PROVIDERS[provider])
        return cast("TokenCounter", self._adapters[provider]).count

    async def server(self, model: str) -> Server | None:
        """Return what the server of a model says of itself; ``None``: it runs on no server of one's own.

        Raises:
            ModelNotFound: the server does not serve the model.
            ProviderUnreachable: nothing answers at its address.
            MalformedReply: another service answers there.
        """
        name = parse(model)
        row = PROVIDERS[name.provider]
        if not row.local or row.url_variable is None:
            return None
        if name.provider not in self._adapters:
            self._adapters[name.provider] = self._connect(row)
        server = await cast("LocalAdapter", self._adapters[name.provider]).server()
        server.model(name.name)
        return server

    def batches(self, model: str) -> BatchEndpoint:
        """Return the batch endpoint of a model's provider.

        Raises:
            UnknownModel: the provider is unknown, or has no batch endpoint.
            MissingKey: the provider's key is not set.
        """
        provider = PROVIDERS[parse(model).provider]
        if provider.batches is None:
            raise UnknownModel(
                f"{provider.title} has no batch endpoint: choose another tier, or another model",
                model=model,
            )
        if provider.name not in self._endpoints:
            self._warn(model)
            self._endpoints[provider.name] = provider.batches(self._options(provider))
        return self._endpoints[provider.name]

    async def aclose(self) -> None:
        """Close every connection, also while this is being cancelled."""
        with anyio.CancelScope(shield=True):
            while self._endpoints:
                await self._endpoints.popitem()[1].aclose()
            while self._remote:
                await self._remote.pop().aclose()
        self._adapters.clear()

    def _limit(self, provider: str, tier: Tier) -> Places:
        """Return the places of a tier: calls that may take minutes do not keep those of others."""
        key = provider, tier
        if key not in self._places:
            adapter = self._adapters[provider]
            self._places[key] = Places(
                self._settings.concurrency,
                start=PROVIDERS[provider].at_once or START,
                slots=adapter.slots if isinstance(adapter, Slotted) else None,
            )
        return self._places[key]

    def _told(self, provider: str, allowance: Allowance) -> None:
        """Take what a provider's limits still allow, in every tier."""
        for (name, _), places in self._places.items():
            if name == provider:
                places.told(allowance)

    def _warn(self, model: str) -> None:
        """Log once that a model will be switched off."""
        if model not in self._used:
            self._used.add(model)
            warning = retirement_warning(model, datetime.now(tz=UTC).date())
            if warning:
                logger.warning("model retires model=%s: %s", model, warning)

    def _connect(self, provider: Provider) -> Send:
        if provider.connect is None:
            return self._offline()
        adapter = provider.connect(self._options(provider))
        if isinstance(adapter, Stating):
            adapter.heard = partial(self._told, provider.name)
        self._remote.append(adapter)
        return adapter

    def _options(self, provider: Provider) -> ProviderOptions:
        settings = self._settings
        credentials = settings.credentials(provider.name)
        key = credentials.api_key
        return ProviderOptions(
            api_key=key.get_secret_value() if key else None,
            base_url=credentials.base_url,
            timeout=settings.call_timeout,
            min_tokens_per_second=settings.floor(provider.name),
            stream=settings.stream,
            legacy_max_tokens=settings.openai_legacy_max_tokens,
            native_schema=settings.native_schema,
            window=settings.local_window,
            home=Path(settings.home),
            idle=settings.local_idle * 60,
            more=credentials.more,
        )
