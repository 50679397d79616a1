"""What an exploration will cost, before any of it is spent."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.at_once import few_at_once
from orchestrator.buying.estimates import Costs
from orchestrator.estimates.costs import Dollars, Estimate, Estimator
from orchestrator.learning.planning import Actions, Plan
from orchestrator.learning.runfile import Arm, Asked
from posology.types import Dose
from strategies import compressed, direct

#: calls that are estimated at once
_AT_ONCE = 4


def dose(keep: float) -> Dose:
    """What an action gives a question."""
    if keep == 1:
        return Dose(strategy=direct.NAME)
    return Dose(strategy=compressed.NAME, keep=keep)


async def estimate(
    plan: Plan,
    missing: Sequence[tuple[str, Asked, Arm]],
    actions: Actions,
    estimator: Estimator,
) -> Costs:
    """Estimate calls by the prices and bounds that they are reserved by.

    Raises:
        UnpricedModel: nobody knows what the model costs.
    """
    estimator.check(actions.model)

    async def price(one: tuple[str, Asked, Arm]) -> Estimate:
        _, asked, arm = one
        return await estimator(actions.task(plan.grounds[asked.digest].retrieval), dose(arm.keep))

    found = await few_at_once(price, missing, limit=_AT_ONCE)
    return Costs(
        calls=len(found),
        input=sum(one.input for one in found),
        output=sum(one.output for one in found),
        dollars=sum((one.dollars for one in found), Dollars()),
    )
