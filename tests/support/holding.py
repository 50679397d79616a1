"""An account that knows the most that was charged and reserved at one time, and replies as long as their bounds."""

from __future__ import annotations

from decimal import Decimal

from posology.llm.accounting import Account
from posology.seams import Bound
from posology.types import Attempt, Call, Completion, Finish, Opening, Usage


class Holding(Account):
    """Adds up charges and open reservations."""

    def __init__(self) -> None:
        super().__init__()
        self._held: dict[str, Decimal] = {}
        self._charged = Decimal(0)
        #: dollars
        self.most = Decimal(0)

    async def open(self, opening: Opening) -> int:
        self._held[opening.id] = opening.reserved
        self.most = max(self.most, self._charged + sum(self._held.values()))
        return await super().open(opening)

    async def close(self, attempt: Attempt, completion: Completion | None) -> None:
        reserved = self._held.pop(attempt.id)
        self._charged += reserved if attempt.cost is None else attempt.cost
        await super().close(attempt, completion)


def used(call: Call, text: str, *, bound: Bound, share: float) -> Completion:
    """Return a reply whose usage is a share of the call's bounds.

    Args:
        call: the call.
        text: of the reply.
        bound: of its input.
        share: 0 to 1.
    """
    usage = Usage(input=int(share * bound(call)), output=int(share * call.max_tokens))
    return Completion(
        text=text,
        usage=usage,
        finish=Finish.STOP,
        served_model=call.model.partition(":")[2],
        latency=0.0,
    )
