"""Costs of calls, before and after: a packaged price table, and the user's own prices over it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType

from posology.budget.prices import file as price_file
from posology.budget.prices import table
from posology.budget.prices.file import PriceFile
from posology.budget.prices.rates import Rates, Writes
from posology.budget.prices.table import Listed
from posology.errors import BadPrices, UnpricedModel
from posology.llm.models.families import capabilities
from posology.llm.providers.table import PROVIDERS
from posology.types import Served, Tier, Usage

#: tiers that a call may be billed at, by the one that it is sent in
_SERVED: Mapping[Tier, tuple[Served, ...]] = MappingProxyType(
    {"standard": ("standard",), "flex": ("flex", "standard"), "batch": ("batch",)}
)
#: maximum models in the cache; names come from requests
_KEPT = 1_024


def _now() -> datetime:
    return datetime.now(tz=UTC)


class PriceBook:
    """Prices of models, named ``provider:name`` in any case.

    The user's file takes precedence over the table. A model without a price in either is unknown,
    and so is one that the table lists at 0: only a declaration makes a model free. Service tiers have prices of
    their own, and a tier without one is unknown, too. What is reserved needs one of the
    ids that the table knows: a model that it matches by the beginning of its name has a cost once it is known, and no
    bound before. So has one whose searches are billed beside its tokens. The table is that
    of the installed package, ``genai-prices``, which is never updated over the network.

    Args:
        own: the user's file.
        clock: the time in UTC; prices may start at a date or hold for some hours of the day.
    """

    def __init__(
        self, own: PriceFile | None = None, *, clock: Callable[[], datetime] = _now
    ) -> None:
        self._own = own or PriceFile(digest="")
        self._clock = clock
        free = {row.name for row in PROVIDERS.values() if row.free}
        self._free = free | self._own.free_providers
        self._factors = {
            **{row.name: row.factor for row in PROVIDERS.values()},
            **self._own.factors,
        }
        self._find = functools.lru_cache(maxsize=_KEPT)(table.find)
        #: version of the prices, e.g. ``genai-prices 0.2.3 + overrides 1a2b3c4d``
        self.version = table.table_version() + (f" + overrides {own.digest}" if own else "")

    @property
    def strict(self) -> frozenset[str]:
        """Models, in lower case, whose input is bounded by its bytes."""
        return self._own.strict

    def rates(self, model: str, tier: Served = "standard") -> Rates | None:
        """Return the current prices of a model in a service tier; ``None``: unknown, or the model is free.

        Args:
            model: ``provider:name``.
            tier: service tier; one that the model is not sold in has no price.
        """
        billed = self._billed(model)
        return None if self._is_free(billed) else self._rates(billed, tier)

    def cost(self, model: str, usage: Usage | None, tier: Served = "standard") -> Decimal | None:
        """Return the cost of a usage.

        Reasoning is billed like output, and cache tokens without a price of their own like other
        input. A price may depend on the length of the input: ask for one call at a time.

        Args:
            model: ``provider:name``.
            usage: of one call; ``None``: unknown, which only what is free has a price for.
            tier: service tier that it is billed at.

        Returns:
            Dollars; ``None``: unknown.
        """
        billed = self._billed(model)
        if self._is_free(billed):
            return Decimal(0)
        if usage is None:
            return None
        rates = self._rates(billed, tier)
        return None if rates is None else rates.cost(usage)

    def worst(
        self,
        model: str,
        *,
        input_tokens: int,
        output_tokens: int,
        tier: Tier = "standard",
        caches: bool = False,
    ) -> Decimal:
        """Return the maximum cost of one call: an upper bound of :meth:`cost` for all usages within the bounds.

        It holds whichever buckets the tokens fall into, whichever step of a price their number chooses, and for prices
        that start, or hours that begin, while the call is under way (:data:`~posology.budget.prices.table.HORIZON`).
        Writing to a prompt cache counts if the call asks for it (``caches``), at the price of the shortest lifetime, and
        for models of unknown caching (:attr:`~posology.llm.models.families.Capabilities.cache`). A call that is sent in the tier ``flex`` may be
        billed at the standard price, so that is counted; one in ``batch`` is billed as such in any case.

        Raises:
            UnpricedModel: a price that the call may be billed at is unknown; it names the tier.
            ValueError: a bound is negative.
        """
        if input_tokens < 0 or output_tokens < 0:
            raise ValueError("a bound on tokens is never negative")
        billed = self._billed(model)
        if self._is_free(billed):
            return Decimal(0)
        most, writes = Decimal(0), _writes(model, caches=caches)
        for served in _SERVED[tier]:
            for rates in self._possible(billed, served):
                cost = (
                    None
                    if rates is None
                    else rates.worst(input_tokens, output_tokens, writes=writes)
                )
                if cost is None:
                    raise UnpricedModel(model=model, tier=served)
                most = max(most, cost)
        return most

    def check(self, model: str, tier: Tier = "standard") -> None:
        """Raise an error for a model with an unknown price in a tier, for input or output.

        Raises:
            UnpricedModel: the price is unknown.
        """
        self.worst(model, input_tokens=1, output_tokens=1, tier=tier)

    def free(self, model: str) -> bool:
        """Whether a model is free by declaration, and not billed as another."""
        return self._is_free(self._billed(model))

    def _billed(self, model: str) -> str:
        name = model.strip().lower()
        return self._own.shadow.get(name, name)

    def _is_free(self, billed: str) -> bool:
        own = self._own
        if billed in own.models:
            return False
        return billed in own.free_models or billed.partition(":")[0] in self._free

    def _listed(self, billed: str) -> Listed | None:
        provider, _, name = billed.partition(":")
        return self._find(_table_id(provider), name)

    def _rates(self, billed: str, tier: Served) -> Rates | None:
        if own := self._own.models.get(billed):
            return own.tiers.get(tier)
        listed = self._listed(billed)
        now = self._clock()
        found = None if listed is None else listed.rates(now, tier)
        if found is None and listed is not None and (share := _share(billed, tier)) is not None:
            standard = listed.rates(now)
            found = None if standard is None else standard.scaled(share)
        return self._times(billed, found)

    def _possible(self, billed: str, tier: Served) -> tuple[Rates | None, ...]:
        if own := self._own.models.get(billed):
            return (own.tiers.get(tier),)
        listed = self._listed(billed)
        # a reservation is a promise: a price that another model of a similar name has is none
        if listed is None or not listed.bounding:
            return (None,)
        now = self._clock()
        found = listed.possible(now, tier)
        share = _share(billed, tier)
        if None in found and share is not None:
            found = tuple(
                None if one is None else one.scaled(share) for one in listed.possible(now)
            )
        return tuple(self._times(billed, rates) for rates in found)

    def _times(self, billed: str, rates: Rates | None) -> Rates | None:
        """Return prices of the table as the provider bills them."""
        factor = self._factors.get(billed.partition(":")[0], Decimal(1))
        return rates if rates is None or factor == 1 else rates.scaled(factor)


def _table_id(provider: str) -> str:
    row = PROVIDERS.get(provider)
    return (row.priced_as if row else "") or provider


def _share(billed: str, tier: Served) -> Decimal | None:
    """Return the published share of the standard price that a tier costs, for models whose tier the table lacks."""
    return capabilities(billed).batch_share if tier == "batch" else None


def _writes(model: str, *, caches: bool) -> Writes:
    caching = capabilities(model).cache
    if caching == "unknown":
        return "any"
    return "short" if caches and caching != "free" else "none"


def listed_models() -> tuple[str, ...]:
    """Return the models of the packaged table whose providers can be called, as ``provider:name``."""
    remote = (row.name for row in PROVIDERS.values() if row.remote)
    return tuple(
        f"{provider}:{name}"
        for provider in remote
        for name in table.listed_names(_table_id(provider))
    )


@functools.cache
def packaged() -> PriceBook:
    """Return the packaged table alone."""
    return PriceBook()


def load(path: Path | None) -> PriceBook:
    """Return the packaged table with the user's price file over it; ``None``: no file.

    Raises:
        BadPrices: the file cannot be read, or says what cannot be; naming the key.
    """
    if path is None:
        return packaged()
    own = price_file.read(path)
    book = PriceBook(own)
    for model, other in own.shadow.items():
        reason = "is free: there is nothing to bill" if book.free(other) else None
        try:
            book.check(other)
        except UnpricedModel:
            reason = "has no price"
        if reason:
            raise BadPrices(f"{other} {reason}", path=str(path), key=f'shadow."{model}"')
    return book
