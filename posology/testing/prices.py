"""Prices and bounds that a test can work out in its head."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from posology.errors import UnpricedModel
from posology.types import Call, Usage


@dataclass(frozen=True, kw_only=True, slots=True)
class FlatPrices:
    """:class:`~posology.seams.Prices` of one price for every token of every model."""

    #: dollars per token; ``None``: unknown
    token: Decimal | None = Decimal("0.01")
    version: str = "flat"

    def cost(self, model: str, usage: Usage | None) -> Decimal | None:
        """Tokens times the price."""
        del model
        if usage is None or self.token is None:
            return None
        return self.token * (usage.total_input + usage.total_output)

    def worst(self, model: str, *, input_tokens: int, output_tokens: int) -> Decimal:
        """Tokens times the price.

        Raises:
            UnpricedModel: there is no price.
        """
        if self.token is None:
            raise UnpricedModel(model=model)
        return self.token * (input_tokens + output_tokens)


def by_bytes(call: Call) -> int:
    """A :class:`~posology.seams.Bound`: no tokenizer makes more tokens than there are bytes."""
    return sum(len(message.content.encode("utf-8", "surrogatepass")) for message in call.messages)
