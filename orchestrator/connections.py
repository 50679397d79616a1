"""The process's connections to models: one adapter and one limiter for each provider."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from orchestrator.prices import price_book
from orchestrator.settings import Settings
from posology.budget.bounds.calls import CallBound
from posology.llm.models import parse
from posology.llm.providers.table import PROVIDERS, Adapter, Provider, ProviderOptions
from posology.llm.retry import RetryPolicy
from posology.llm.stack import PATIENCE, build
from posology.seams import Complete, Journal, Meter, Recall


class Connections:
    """Connects to a provider when one of its models is first asked for, and keeps the connection.

    Args:
        settings: keys, addresses, limits.
        offline: makes the offline reader, which needs models that only the caller has.
        meter: of the tenant's minute, for calls that come without one; ``None``: it is not limited.

    Raises:
        BadPrices: the user's file of prices cannot be used.
    """

    def __init__(
        self, settings: Settings, *, offline: Callable[[], Complete], meter: Meter | None = None
    ) -> None:
        self._settings = settings
        self._meter = meter
        #: what calls cost
        self.prices = price_book(settings)
        #: how many tokens a call's input can have
        self.bound = CallBound(
            strict=self.prices.strict,
            native_schema=settings.native_schema,
            openai_files=Path(settings.tiktoken_files) if settings.tiktoken_files else None,
        )
        self._offline = offline
        self._adapters: dict[str, Complete] = {}
        self._remote: list[Adapter] = []
        self._limits: dict[str, anyio.CapacityLimiter] = {}

    def complete(
        self,
        model: str,
        journal: Journal,
        *,
        recall: Recall | None = None,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        patience: float = PATIENCE,
        crowd: int | None = None,
        meter: Meter | None = None,
        owner: str | None = None,
    ) -> Complete:
        """The whole stack for a model.

        Args:
            model: ``provider:name``.
            journal: takes the account of every attempt.
            recall: gives the replies that the same work was given before.
            sleep: waits between attempts, and for money.
            patience: seconds that an attempt waits while calls under way hold what is left of a limit.
            crowd: how many attempts may wait so; ``None``: any number.
            meter: of the tenant's minute.
            owner: whose calls these are, see :class:`~posology.llm.rate_limit.RateLimit`.

        Raises:
            UnknownModel: no such provider, or a name without a provider.
            MissingKey: the provider needs a key that is not set.
        """
        settings = self._settings
        provider = parse(model).provider
        if provider not in self._adapters:
            self._adapters[provider] = self._connect(PROVIDERS[provider])
            self._limits[provider] = anyio.CapacityLimiter(settings.concurrency)
        return build(
            self._adapters[provider],
            journal=journal,
            recall=recall,
            sleep=sleep,
            patience=patience,
            crowd=crowd,
            meter=meter or self._meter,
            owner=owner,
            prices=self.prices,
            bound=self.bound,
            retry=RetryPolicy(attempts=settings.attempts, deadline=settings.call_deadline),
            limit=self._limits[provider],
        )

    async def aclose(self) -> None:
        """Close every connection, also while this is being cancelled."""
        with anyio.CancelScope(shield=True):
            while self._remote:
                await self._remote.pop().aclose()
        self._adapters.clear()

    def _connect(self, provider: Provider) -> Complete:
        if provider.connect is None:
            return self._offline()
        settings = self._settings
        credentials = settings.credentials(provider.name)
        key = credentials.api_key
        adapter = provider.connect(
            ProviderOptions(
                api_key=key.get_secret_value() if key else None,
                base_url=credentials.base_url,
                timeout=settings.call_timeout,
                legacy_max_tokens=settings.openai_legacy_max_tokens,
                native_schema=settings.native_schema,
            )
        )
        self._remote.append(adapter)
        return adapter
