"""What a data set will cost, before any of it is spent."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from orchestrator.question.estimates.costs import Dollars
from orchestrator.question.estimates.tokens import Counting
from orchestrator.training.paid.estimates import Costs
from orchestrator.training.summaries.shortener import Shortener
from posology.errors import UnpricedModel
from posology.seams import Bound, Prices
from posology.types import Call, Passage, Usage
from prompts.lengths import filler

#: Replies that a passage takes on average: a guess, nothing was measured. The paper does not say.
EXPECTED_ROUNDS = 2.0
#: tokens of a word of medical prose
_TOKENS = 1.4


def estimate(
    passages: Iterable[Passage],
    shortener: Shortener,
    *,
    prices: Prices,
    bound: Bound,
    counting: Counting,
) -> Costs:
    """Estimate the conversations by the prices and bounds that their calls are reserved by. Blocking.

    ``low``: every first reply fits; ``expected``: :data:`EXPECTED_ROUNDS`; ``worst``: no reply ever fits, and each
    is as long as it can be. One call a passage is counted.

    Raises:
        UnpricedModel: nobody knows what the model costs.
    """
    calls = 0
    tokens_in = tokens_out = 0.0
    dollars = Dollars()
    for passage in passages:
        call = shortener.first(passage)
        said = _TOKENS * shortener.length(passage).target
        read = counting.expected(call)
        rounds = min(EXPECTED_ROUNDS, shortener.rounds)
        # each further call takes in what was said before
        more = rounds * read + (rounds - 1) * rounds / 2 * said
        low = _cost(prices, call.model, read, said)
        expected = max(low, _cost(prices, call.model, more, rounds * said))
        worst = max(expected, _worst(passage, call, shortener, prices, bound))
        calls += 1
        tokens_in += more
        tokens_out += rounds * said
        dollars += Dollars(low=low, expected=expected, worst=worst)
    return Costs(calls=calls, input=round(tokens_in), output=round(tokens_out), dollars=dollars)


def _worst(
    passage: Passage, call: Call, shortener: Shortener, prices: Prices, bound: Bound
) -> Decimal:
    total = Decimal(0)
    for number in range(shortener.rounds):
        if number:
            call = shortener.again(passage, call, filler(call.max_tokens))
        total += prices.worst(call.model, input_tokens=bound(call), output_tokens=call.max_tokens)
    return total


def _cost(prices: Prices, model: str, read: float, said: float) -> Decimal:
    cost = prices.cost(model, Usage(input=round(read), output=round(said)))
    if cost is None:
        raise UnpricedModel(model=model)
    return cost
