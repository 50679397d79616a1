"""Second calls: the call after an unusable reply, within what was estimated for both.

A reservation is mostly slack: less is read than its bound, and replies are far shorter than theirs. A second call is paid
for from that slack. The two calls together may cost a fixed multiple of the first one's reservation, which is what an
estimate's worst case counts. What is left of it bounds the second reply; a second call without room is not made.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Final

from posology.llm.models.effort import larger_bound
from posology.seams import Bound, Prices
from posology.types import Call, Completion

#: Maximum cost of a call and its second one, as a multiple of the call's reservation: with it a repair of a reply of
#: ordinary length is never refused up to five times as much input as output, by dollars (decision 43).
REPAIRED: Final = Decimal("1.75")
#: the same if the model may reason: the second call has at least twice the first one's bound
REASONED: Final = Decimal(3)
#: how much longer than the first reply a second one must be able to be, and output tokens added
_LONGER, _MORE = 1.25, 64


def allowance(call: Call, reserved: Decimal) -> Decimal:
    """Return the maximum cost of a call and its second one, in dollars.

    Args:
        call: the first call.
        reserved: dollars reserved for it.
    """
    if call.schema is None:
        return reserved
    return reserved * (REPAIRED if larger_bound(call) is None else REASONED)


class SecondCalls:
    """Bounds second calls by their :func:`allowance`.

    Args:
        prices: as calls are reserved by.
        bound: most input tokens of a call.
    """

    def __init__(self, *, prices: Prices, bound: Bound) -> None:
        self._prices = prices
        self._bound = bound

    def __call__(self, call: Call, reply: Completion, second: Call) -> Call | None:
        """Return a second call with the bound on its output that is paid for.

        Args:
            call: the first call.
            reply: its unusable reply.
            second: the second call, with the bound that it would best have.

        Returns:
            ``None``: it is not paid for, or with less room than the reply needs.

        Raises:
            UnpricedModel: the model has no price.
        """
        read = self._bound(call)
        reserved = self._worst(call, read, call.max_tokens)
        used = reply.usage
        # by the prices of a reservation: the tier that served the first call may have another
        charged = (
            reserved if used is None else self._worst(call, used.total_input, used.total_output)
        )
        left = allowance(call, reserved) - charged
        longest = self._most(second, self._bound(second), left)
        if longest < min(second.max_tokens, self._least(call, reply)):
            return None
        return replace(second, max_tokens=longest)

    def _least(self, call: Call, reply: Completion) -> int:
        """Return the fewest output tokens that a second call is worth making with."""
        if reply.usage is None:
            return call.max_tokens
        return int(_LONGER * reply.usage.total_output) + _MORE

    def _most(self, call: Call, read: int, left: Decimal) -> int:
        """Return the longest output up to the call's bound that so many dollars pay for; 0: none."""
        low, high = 0, call.max_tokens
        while low < high:
            middle = (low + high + 1) // 2
            if self._worst(call, read, middle) <= left:
                low = middle
            else:
                high = middle - 1
        return low

    def _worst(self, call: Call, read: int, said: int) -> Decimal:
        return self._prices.worst(
            call.model,
            input_tokens=read,
            output_tokens=said,
            tier=call.tier,
            caches=bool(call.cached),
        )
