"""The user's price file: see ``docs/how-to/prices.md``."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any

from posology.budget.prices.rates import Rates, Step
from posology.errors import BadPrices
from posology.types import Served

#: maximum dollars per million tokens
_MOST = Decimal(10**6)
_WRITTEN = re.compile(r"[0-9]{1,7}(\.[0-9]{1,12})?")
_BUCKETS = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")
#: service tiers with a share of the standard price, and the highest share
_SHARES: Mapping[Served, int] = MappingProxyType({"flex": 1, "batch": 1, "priority": 100})
_MODEL_KEYS = {*_BUCKETS, *_SHARES, "tiers"}
_TABLES: Mapping[str, set[str] | None] = {
    "models": None,
    "free": {"models", "providers"},
    "shadow": None,
    "bounds": {"strict"},
    "factors": None,
}
#: maximum factor of a provider's prices
_MOST_TIMES = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Own:
    """Prices of one model in the file."""

    #: by service tier; those of a missing one are unknown
    tiers: Mapping[Served, Rates]


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceFile:
    """The content of a price file. Names of models are in lower case."""

    #: the first 8 hex digits of the SHA-256 of the file's content
    digest: str
    models: Mapping[str, Own] = field(default_factory=dict)
    free_models: frozenset[str] = frozenset()
    free_providers: frozenset[str] = frozenset()
    #: model → the model whose prices it is billed at
    shadow: Mapping[str, str] = field(default_factory=dict)
    #: models whose input is bounded by its bytes
    strict: frozenset[str] = frozenset()
    #: provider → how many times the packaged table's prices its bills show
    factors: Mapping[str, Decimal] = field(default_factory=dict)


def read(path: Path) -> PriceFile:
    """Read a price file.

    Raises:
        BadPrices: it cannot be read, or says what cannot be; naming the key.
    """
    try:
        content = path.read_bytes()
        data = tomllib.loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise BadPrices(error.strerror or type(error).__name__, path=str(path), key=None) from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadPrices(f"not TOML: {error}", path=str(path), key=None) from None
    reader = _Reader(str(path))
    reader.known(data, set(_TABLES), ())
    tables = {name: reader.table(data.get(name, {}), (name,)) for name in _TABLES}
    for name, keys in _TABLES.items():
        if keys is not None:
            reader.known(tables[name], keys, (name,))
    models = {
        reader.model(name, ("models", name)): reader.own(entry, ("models", name))
        for name, entry in tables["models"].items()
    }
    shadow = {
        reader.model(name, ("shadow", name)): reader.model(other, ("shadow", name))
        for name, other in tables["shadow"].items()
    }
    free = reader.models(tables["free"].get("models", []), ("free", "models"))
    providers = reader.names(tables["free"].get("providers", []), ("free", "providers"))
    strict = reader.models(tables["bounds"].get("strict", []), ("bounds", "strict"))
    for table in ("models", "shadow"):
        if len(models if table == "models" else shadow) < len(tables[table]):
            raise reader.bad("a model is named twice, in different case", (table,))
    for name in [*models, *free, *shadow]:
        if (name in models) + (name in free) + (name in shadow) > 1:
            raise reader.bad(f"{name} is in more than one of models, free and shadow", ())
    for name, other in shadow.items():
        if other in shadow:
            raise reader.bad(f"{other} is itself billed as another model", ("shadow", name))
    return PriceFile(
        digest=hashlib.sha256(content).hexdigest()[:8],
        models=models,
        free_models=frozenset(free),
        free_providers=frozenset(providers),
        shadow=shadow,
        strict=frozenset(strict),
        factors={
            name.strip().lower(): reader.factor(value, ("factors", name))
            for name, value in tables["factors"].items()
        },
    )


class _Reader:
    """Checks values, and names the keys of wrong ones."""

    def __init__(self, path: str) -> None:
        self._path = path

    def bad(self, reason: str, key: Iterable[str]) -> BadPrices:
        named = ".".join(part if part.isidentifier() else f'"{part}"' for part in key)
        return BadPrices(reason, path=self._path, key=named or None)

    def known(self, table: Mapping[str, Any], keys: set[str], key: tuple[str, ...]) -> None:
        for name in table:
            if name not in keys:
                raise self.bad(f"unknown key: use {', '.join(sorted(keys))}", (*key, name))

    def table(self, value: Any, key: tuple[str, ...]) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.bad("write a table", key)
        return value

    def model(self, value: Any, key: tuple[str, ...]) -> str:
        provider, _, name = value.strip().partition(":") if isinstance(value, str) else ("", "", "")
        if not provider or not name:
            raise self.bad("name a model as provider:name", key)
        return f"{provider}:{name}".lower()

    def models(self, value: Any, key: tuple[str, ...]) -> list[str]:
        return [self.model(name, key) for name in self.names(value, key)]

    def names(self, value: Any, key: tuple[str, ...]) -> list[str]:
        if not isinstance(value, list) or not all(isinstance(v, str) and v.strip() for v in value):
            raise self.bad("write a list of names", key)
        return [name.strip().lower() for name in value]

    def price(self, value: Any, key: tuple[str, ...]) -> Decimal:
        if isinstance(value, float):
            raise self.bad(f'write it as a string, "{value}": a float is not exact', key)
        written = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        if not isinstance(written, str) or not _WRITTEN.fullmatch(written):
            raise self.bad(
                'write dollars per million tokens, such as "0.15"; not negative, at most 12 decimals',
                key,
            )
        price = Decimal(written)
        if price > _MOST:
            raise self.bad(f"must be at most ${_MOST} per million tokens", key)
        return price

    def factor(self, value: Any, key: tuple[str, ...]) -> Decimal:
        factor = self.price(value, key)
        if not 0 < factor <= _MOST_TIMES:
            raise self.bad(f'write a factor > 0 and <= {_MOST_TIMES}, such as "1.1"', key)
        return factor

    def own(self, value: Any, key: tuple[str, ...]) -> Own:
        entry = self.table(value, key)
        self.known(entry, _MODEL_KEYS, key)
        if "input" not in entry:
            raise self.bad("missing", (*key, "input"))
        prices = {b: self.price(entry[b], (*key, b)) for b in _BUCKETS if b in entry}
        steps = [_step(-1, prices)]
        tiers = entry.get("tiers", [])
        if not isinstance(tiers, list):
            raise self.bad("write [[tiers]] tables", (*key, "tiers"))
        for place, value_of_tier in enumerate(tiers):
            at = (*key, f"tiers[{place}]")
            tier = self.table(value_of_tier, at)
            self.known(tier, {*_BUCKETS, "above"}, at)
            above = tier.get("above")
            if type(above) is not int or above <= max(0, steps[-1].above):
                raise self.bad(
                    "write a number of tokens, larger than the tier's before", (*at, "above")
                )
            prices = prices | {b: self.price(tier[b], (*at, b)) for b in _BUCKETS if b in tier}
            steps.append(_step(above, prices))
        rates = Rates(steps=tuple(steps))
        shares = {
            name: self._share(entry[name], most, (*key, name))
            for name, most in _SHARES.items()
            if name in entry
        }
        scaled = {name: rates.scaled(share) for name, share in shares.items()}
        return Own(tiers={"standard": rates, **scaled})

    def _share(self, value: Any, most: int, key: tuple[str, ...]) -> Decimal:
        share = self.price(value, key)
        if share > most:
            raise self.bad(
                f'write the share of the standard price that is paid, such as "0.5"; at most {most}',
                key,
            )
        return share


def _step(above: int, said: Mapping[str, Decimal]) -> Step:
    """Return prices with defaults: cache prices are those of input; output without a price is unknown."""
    read = said["input"]
    return Step(
        above=above,
        input=read,
        cache_read=said.get("cache_read", read),
        cache_write_5m=said.get("cache_write_5m", read),
        cache_write_1h=said.get("cache_write_1h", said.get("cache_write_5m", read)),
        output=said.get("output"),
        reasoning=said.get("output"),
    )
