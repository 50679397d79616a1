"""Cost estimate of a data set, before anything is spent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

from orchestrator.question.estimates.costs import Dollars
from orchestrator.question.estimates.tokens import Counting
from orchestrator.training.paid.run import Costs
from orchestrator.training.summaries.shortener import Shortener
from posology.errors import UnpricedModel
from posology.seams import Bound, Prices
from posology.types import Call, Passage, Tier, Usage
from prompts.lengths import filler

#: Mean replies for a passage: an assumption, not measured. The paper gives no figure.
EXPECTED_ROUNDS = 2.0
#: tokens per word of medical prose
_TOKENS = 1.4


def estimate(
    passages: Iterable[Passage],
    shortener: Shortener,
    *,
    prices: Prices,
    bound: Bound,
    counting: Counting,
    tier: Tier,
) -> Costs:
    """Estimate the conversations by the prices and bounds of their calls' reservations. Blocking.

    ``low``: every first reply fits. ``expected``: :data:`EXPECTED_ROUNDS` replies. ``worst``: no reply fits, and
    each has the maximum length. ``calls`` counts one call for each passage.

    Raises:
        UnpricedModel: the model has no price.
    """
    calls = 0
    tokens_in = tokens_out = 0.0
    dollars = Dollars()
    for passage in passages:
        call = replace(shortener.first(passage), tier=tier)
        written = _TOKENS * shortener.length(passage).target
        read = counting.expected(call)
        rounds = min(EXPECTED_ROUNDS, shortener.rounds)
        # each further call repeats the earlier replies
        more = rounds * read + (rounds - 1) * rounds / 2 * written
        low = _cost(prices, call, read, written)
        expected = max(low, _cost(prices, call, more, rounds * written))
        worst = max(expected, _worst(passage, call, shortener, prices, bound))
        calls += 1
        tokens_in += more
        tokens_out += rounds * written
        dollars += Dollars(low=low, expected=expected, worst=worst)
    return Costs(calls=calls, input=round(tokens_in), output=round(tokens_out), dollars=dollars)


def _worst(
    passage: Passage, call: Call, shortener: Shortener, prices: Prices, bound: Bound
) -> Decimal:
    total = Decimal(0)
    for number in range(shortener.rounds):
        if number:
            again = shortener.again(passage, call, filler(call.max_tokens))
            call = replace(again, tier=call.tier)
        total += prices.worst(
            call.model, input_tokens=bound(call), output_tokens=call.max_tokens, tier=call.tier
        )
    return total


def _cost(prices: Prices, call: Call, read: float, said: float) -> Decimal:
    cost = prices.cost(call.model, Usage(input=round(read), output=round(said)), call.tier)
    if cost is None:
        raise UnpricedModel(model=call.model, tier=call.tier)
    return cost
