"""Capabilities of models, the lanes that they are sold in, and the form of requests to them: one row a family, from a data file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Final, Literal, get_args

from posology.errors import InvalidQuery
from posology.types import EFFORTS, Effort, Lane, Tier

#: ``none``: it never reasons on our requests. ``optional``: it does unless the request turns it off. ``always``. ``unknown``
Reasoning = Literal["none", "optional", "always", "unknown"]
#: when a request may set the sampling temperature
Temperature = Literal["always", "without reasoning", "never"]
#: Who writes prompts to a cache that bills writes. ``free``: writes cost nothing. ``asked``: only a request with
#: breakpoints. ``declined``: every request that does not decline. ``unknown``
Caching = Literal["free", "asked", "declined", "unknown"]
#: How the input's tokens are bounded, see :mod:`posology.budget.bounds.calls`. ``openai``: published as ``tiktoken``.
#: ``newer``: unpublished ones of 2026, which count up to 1.35 times as much. ``open``: of open weights
Tokenizer = Literal["openai", "claude", "newer", "open", "unknown"]

#: the lanes, the most expensive first
LANES: Final[tuple[Lane, ...]] = get_args(Lane)
_FIRST: Final[Mapping[Lane, Tier]] = {
    "standard": "standard",
    "flex-then-standard": "flex",
    "flex": "flex",
    "batch-then-standard": "batch",
    "batch": "batch",
}
#: days before its retirement from which a model is reported
WARNING_DAYS: Final = 90
#: the date of a release, at the end of a name
_RELEASE = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|latest)$")
#: Clouds that sell another provider's models: the provider, and the model's name within the cloud's. Bedrock's may
#: begin with where it runs and end with a version: ``eu.anthropic.claude-haiku-4-5-20251001-v1:0``
_SOLD: Final = {
    "azure": ("openai", re.compile(r"(.+)")),
    "bedrock": ("anthropic", re.compile(r"(?:[a-z-]+\.)?anthropic\.(.+?)(?:-v\d+(?::\d+)?)?")),
    "vertex": ("anthropic", re.compile(r"(.+)")),
}
#: number of cached names; names come from requests
_KEPT = 1_024


@dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    """A family of models. The defaults are those of a model that nothing is known of."""

    provider: str
    #: pattern of its models' names; empty: the model is unknown
    match: str = ""
    reasoning: Reasoning = "unknown"
    #: levels of effort that a request may ask for, lowest first; empty: it has no such parameter, or it is unknown
    efforts: tuple[Effort, ...] = ()
    #: level without a request for one; ``None``: none, or unknown
    default_effort: Effort | None = None
    #: Anthropic's type of ``thinking`` that means none; empty: a request without ``thinking`` has none
    off: str = ""
    temperature: Temperature = "never"
    #: tokens of input and output together; ``None``: unknown
    context: int | None = None
    #: most output tokens of a reply; ``None``: unknown
    output: int | None = None
    tokenizer: Tokenizer = "unknown"
    cache: Caching = "unknown"
    #: service tiers that it is sold in
    tiers: tuple[str, ...] = ("standard",)
    #: whether the provider's batch endpoint takes it
    batch: bool = False
    #: published share of the standard price that a batch costs, where ``genai-prices`` has none; ``None``: see there
    batch_share: Decimal | None = None
    #: names without their release, or whole, to the dates on which the provider switches them off
    retires: Mapping[str, date] = field(default_factory=dict)
    #: where this is from
    source: str = ""
    #: when it was last compared with its source; ``None``: never
    checked: date | None = None
    #: what is uncertain; empty: nothing
    note: str = ""

    @property
    def known(self) -> bool:
        """Whether the table has the model."""
        return bool(self.match)

    def reasons(self, effort: Effort | None) -> bool:
        """Whether a reply may hold reasoning, at a level of effort; ``None``: none is sent."""
        if self.reasoning == "optional":
            return effort != "none"
        return self.reasoning in ("always", "unknown")

    def takes_temperature(self, effort: Effort | None) -> bool:
        """Whether a request may set the temperature, at a level of effort; ``None``: none is sent."""
        if self.temperature == "without reasoning":
            return (effort or self.default_effort) == "none"
        return self.temperature == "always"

    def retirement(self, name: str) -> date | None:
        """Return the day on which the provider switches a model off; ``None``: none is announced."""
        return self.retires.get(name) or self.retires.get(_RELEASE.sub("", name))


@lru_cache(maxsize=_KEPT)
def capabilities(model: str) -> Capabilities:
    """Return what a model can do; of an unknown one, what is safe.

    A cloud's model has the capabilities of the same model at its maker, without tiers, batches and dates of its
    retirement, which differ. Azure does not document that cache writes can be declined: there they are not.

    Args:
        model: ``provider:name``. Of a gateway's name such as ``openai/gpt-6-luna`` the last part counts.
    """
    provider, _, name = model.strip().lower().partition(":")
    if provider in _SOLD:
        return _sold(provider, name)
    name = name.rpartition("/")[2]
    plain = _RELEASE.sub("", name)
    for family in families():
        if family.provider == provider and re.fullmatch(family.match, plain):
            return family
    return Capabilities(provider=provider)


def _sold(cloud: str, name: str) -> Capabilities:
    maker, pattern = _SOLD[cloud]
    found = pattern.fullmatch(name)
    family = capabilities(f"{maker}:{found[1]}") if found else Capabilities(provider=cloud)
    if not family.known:
        return Capabilities(provider=cloud)
    return replace(
        family,
        provider=cloud,
        tiers=("standard",),
        batch=False,
        batch_share=None,
        retires={},
        cache="unknown" if family.cache == "declined" else family.cache,
    )


def retirement_warning(model: str, today: date) -> str | None:
    """Return a sentence on a model's end; ``None``: it is more than :data:`WARNING_DAYS` away, or not announced."""
    retires = capabilities(model).retirement(model.strip().lower().partition(":")[2])
    if retires is None or retires - today > timedelta(days=WARNING_DAYS):
        return None
    if retires <= today:
        return f"its provider switched it off on {retires}"
    return f"its provider switches it off on {retires}, in {(retires - today).days} days"


def lanes_of(model: str) -> tuple[Lane, ...]:
    """Return the lanes of a model, ``provider:name``; an unknown model has the standard one."""
    family = capabilities(model)
    sold = {*family.tiers, *(("batch",) if family.batch else ())}
    return tuple(lane for lane in LANES if lane == "standard" or tier_of(lane) in sold)


def tier_of(lane: Lane) -> Tier:
    """Return the service tier that a lane's calls are sent in first."""
    return _FIRST[lane]


def check_lane(model: str, lane: Lane) -> None:
    """Check that a model is sold in a lane.

    Raises:
        InvalidQuery: it is not, or the model is unknown.
    """
    known = lanes_of(model)
    if lane not in known:
        raise InvalidQuery(
            f"{model} is not sold in the tier {lane}: use {' or '.join(known)}", field="tier"
        )


def lane_or_standard(model: str, lane: Lane) -> Lane:
    """Return a configured lane, or the standard one for a model that is not sold in it."""
    return lane if lane in lanes_of(model) else "standard"


@cache
def families() -> tuple[Capabilities, ...]:
    """Return all rows of the table."""
    text = (resources.files(__package__) / "families.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)["family"]
    return tuple(
        _family({**row, "provider": provider})
        for row in rows
        for provider in row.pop("providers", None) or [row["provider"]]
    )


def _family(row: Mapping[str, Any]) -> Capabilities:
    lists = {name: tuple(row[name]) for name in ("efforts", "tiers") if name in row}
    shares = {"batch_share": Decimal(row["batch_share"])} if "batch_share" in row else {}
    family = Capabilities(**{**row, **lists, **shares})
    assert list(family.efforts) == [one for one in EFFORTS if one in family.efforts], family.match
    return family
