"""The price table of the installed ``genai-prices`` package, without network."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from importlib.metadata import version
from types import MappingProxyType
from typing import TYPE_CHECKING

from posology.budget.prices.rates import Rates, Step
from posology.types import Served

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, TieredPrices

#: A price that starts within this time may apply to a call that is sent now: no job lasts longer than a day.
HORIZON = timedelta(days=2)
#: the table's names of service tiers other than the standard one
_TIERS: Mapping[Served, Mapping[str, str]] = MappingProxyType(
    {
        "flex": {"service_tier": "flex"},
        "batch": {"processing": "batch"},
        "priority": {"service_tier": "priority"},
    }
)
#: models that use tools whose every use is billed: searches, and sessions of a computer
_FEES = re.compile(r"search|deep-research|computer-use")
#: what may follow the beginning of a model's id: the date of a release, and Bedrock's version
_RELEASE = re.compile(r"([-@]\d{8}|-?\d{4}-\d{2}-\d{2}|-latest)?(-v\d+(:\d+)?)?")
_YEAR, _DAY = re.compile(r"-20\d\d$"), re.compile(r"\d{4}")
#: what follows the base and its year in the id of a fine-tuned model: ``-07-18:ORGANISATION:NAME:ID``
_TUNED = re.compile(r"[\d-]*:[\w-]*:[\w-]*:[\w-]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """A model of the table."""

    model: ModelInfo
    #: whether these prices bound what a call costs: the name is one of the model's ids, and no use of a tool is billed
    #: beside the tokens
    bounding: bool = True

    def rates(self, at: datetime, tier: Served = "standard") -> Rates | None:
        """Return the prices of a service tier at a time in UTC; ``None``: unknown."""
        if not self.model.prices:
            return None
        if tier == "standard":
            return _rates(self.model.get_prices(at))
        when = _TIERS.get(tier)
        known = any(
            v.when == when and (v.constraint is None or v.constraint.active(at))
            for v in self.model.price_variants or ()
        )
        return _rates(self.model.get_prices(at, when)) if known else None

    def possible(self, now: datetime, tier: Served = "standard") -> tuple[Rates | None, ...]:
        """Return all prices of a service tier that may apply from now until :data:`HORIZON`.

        Prices may start at a date or hold for some hours of the day; a call that is sent under one
        price may be settled under the next.
        """
        return tuple({self.rates(at, tier): None for at in self._changes(now)})

    def _changes(self, now: datetime) -> Iterator[datetime]:
        """Return now, and the times until the horizon at which prices change."""
        from genai_prices.types import ModelPrice, StartDateConstraint

        prices = self.model.prices
        listed = () if isinstance(prices, ModelPrice) else prices
        yield now
        for when in (one.constraint for one in (*listed, *(self.model.price_variants or ()))):
            if isinstance(when, StartDateConstraint):
                start = datetime.combine(when.start_date, time(), UTC)
                if now < start <= now + HORIZON:
                    yield start
            elif when is not None:
                for clock in (when.start_time, when.end_time):
                    for day in range((HORIZON + timedelta(days=1)).days):
                        yield datetime.combine(now + timedelta(days=day), clock)


def find(provider: str, name: str) -> Listed | None:
    """Return a model of the table; ``None``: there is none.

    The table is the package's own, also where another library in the process has put a downloaded one
    in its place: what a call cost depends on the pinned version alone.
    """
    from genai_prices.data import providers
    from genai_prices.data_snapshot import find_provider_by_id

    listed = find_provider_by_id(providers, provider) if provider and name else None
    model = listed.find_model(name, all_providers=providers) if listed else None
    if model is None:
        return None
    fees = _FEES.search(name.lower()) and not _has_fee(model)
    return Listed(model=model, bounding=_names(model, name.lower()) and not fees)


def listed_names(provider: str) -> tuple[str, ...]:
    """Return the ids of a provider's models in the table, in its order; none for an unknown provider.

    Bedrock's regional prices have ids that no model has: they stand as those of the United States.
    """
    from genai_prices.data import providers
    from genai_prices.data_snapshot import find_provider_by_id

    listed = find_provider_by_id(providers, provider)
    if listed is None:
        return ()
    return tuple(re.sub(r"^regional\.", "us.", model.id) for model in listed.models)


def _names(model: ModelInfo, name: str) -> bool:
    """Whether a name is one of the model's own: the table matches many names by their beginning alone."""
    from genai_prices import types

    def exact(clause: types.MatchLogic) -> bool:
        match clause:
            case types.ClauseOr():
                return any(map(exact, clause.or_))
            case types.ClauseAnd():
                return all(one.is_match(name) for one in clause.and_) and any(
                    map(exact, clause.and_)
                )
            case types.ClauseEquals() | types.ClauseRegex():
                return clause.is_match(name)
            case types.ClauseStartsWith():
                begun = clause.starts_with.lower()
                rest = name.removeprefix(begun)
                if rest == name:
                    return False
                if begun.startswith("ft:"):
                    return bool(_TUNED.fullmatch(rest))
                return bool(
                    _RELEASE.fullmatch(rest) or (_YEAR.search(begun) and _DAY.fullmatch(rest))
                )
            case types.ClauseContains():
                # of names that the clause allows, only those that begin with its words are surely the model's
                rest = name.removeprefix(clause.contains.lower())
                return rest != name and bool(_RELEASE.fullmatch(rest))
            case types.ClauseEndsWith():
                return name == clause.ends_with.lower()

    return name == model.id.lower() or exact(model.match)


def _has_fee(model: ModelInfo) -> bool:
    from genai_prices.types import ModelPrice

    prices = model.prices
    listed = [prices] if isinstance(prices, ModelPrice) else [one.prices for one in prices]
    return all(one.requests_kcount for one in listed)


@cache
def table_version() -> str:
    """Return the version of the table, e.g. ``genai-prices 0.2.3``."""
    return f"genai-prices {version('genai-prices')}"


def _rates(listed: ModelPrice) -> Rates | None:
    """Return the prices of a model; ``None`` without a price for input: a listed 0 is unknown, not free."""
    from genai_prices.types import TieredPrices

    keys = (
        "input_mtok",
        "cache_read_mtok",
        "cache_write_mtok",
        "cache_write_5m_mtok",
        "cache_write_1h_mtok",
        "output_mtok",
        "output_reasoning_mtok",
    )
    prices = {key: getattr(listed, key) for key in keys}
    starts = {t.start for p in prices.values() if isinstance(p, TieredPrices) for t in p.tiers}
    steps = []
    for above in (-1, *sorted(starts)):
        at = {key: _at(price, above) for key, price in prices.items()}
        read = at["input_mtok"]
        if not read:
            return None
        # tokens without a price of their own have the price of their kind
        write = _or(at["cache_write_mtok"], read)
        said = at["output_mtok"] or None
        reasoning = None if said is None else _or(at["output_reasoning_mtok"], said)
        steps.append(
            Step(
                above=above,
                input=read,
                cache_read=_or(at["cache_read_mtok"], read),
                cache_write_5m=_or(at["cache_write_5m_mtok"], write),
                cache_write_1h=_or(at["cache_write_1h_mtok"], write),
                output=said,
                reasoning=reasoning,
            )
        )
    return Rates(steps=tuple(steps), request=_request(listed))


def _request(listed: ModelPrice) -> Decimal:
    from genai_prices.types import TieredPrices

    price = listed.requests_kcount
    if isinstance(price, TieredPrices):
        # no model has it; the most expensive is a bound
        price = max([price.base, *(tier.price for tier in price.tiers)])
    return (price or Decimal(0)) / 1_000


def _at(price: Decimal | TieredPrices | None, above: int) -> Decimal | None:
    """Return the price for inputs just longer than ``above``."""
    if price is None or isinstance(price, Decimal):
        return price
    return next((t.price for t in reversed(price.tiers) if above >= t.start), price.base)


def _or(price: Decimal | None, otherwise: Decimal) -> Decimal:
    return otherwise if price is None else price
