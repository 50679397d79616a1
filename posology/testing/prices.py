"""Prices and bounds that a test can work out in its head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

from posology.errors import UnpricedModel
from posology.types import Call, Served, Tier, Usage

#: prices of the service tiers, as multiples of the standard one
_FACTORS: Mapping[Served, Decimal] = MappingProxyType(
    {
        "standard": Decimal(1),
        "flex": Decimal("0.5"),
        "batch": Decimal("0.5"),
        "priority": Decimal(2),
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class FlatPrices:
    """:class:`~posology.seams.Prices` of one price for every token of every model."""

    #: dollars per token; ``None``: unknown
    token: Decimal | None = Decimal("0.01")
    version: str = "flat"

    def cost(self, model: str, usage: Usage | None, tier: Served = "standard") -> Decimal | None:
        """Tokens times the price."""
        del model
        if usage is None or self.token is None or tier == "unknown":
            return None
        return self.token * _FACTORS[tier] * (usage.total_input + usage.total_output)

    def worst(
        self,
        model: str,
        *,
        input_tokens: int,
        output_tokens: int,
        tier: Tier = "standard",
        caches: bool = False,
    ) -> Decimal:
        """Tokens times the price; a flex call may be served as a standard one.

        Raises:
            UnpricedModel: there is no price.
        """
        del caches
        if self.token is None:
            raise UnpricedModel(model=model, tier=tier)
        factor = _FACTORS["batch" if tier == "batch" else "standard"]
        return self.token * factor * (input_tokens + output_tokens)


def by_bytes(call: Call) -> int:
    """A :class:`~posology.seams.Bound`: no tokenizer makes more tokens than there are bytes."""
    return sum(len(message.content.encode("utf-8", "surrogatepass")) for message in call.messages)
