"""Whatever a provider says of its usage: what it bills is charged, and what is charged stays below the cap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.budget.ledger.journal import LedgerJournal
from posology.budget.ledger.memory import MemoryLedger
from posology.errors import BudgetError, ProviderError
from posology.llm.accounting import Account
from posology.llm.calls import Caller
from posology.llm.providers.anthropic import AnthropicAdapter
from posology.llm.providers.openai import OpenAIAdapter
from posology.llm.providers.replies.reader import Reply
from posology.llm.retry import RetryPolicy
from posology.llm.stack import build
from posology.testing import FlatPrices
from posology.testing.provider import formats
from posology.types import Call, Completion, Finish, Limits, Outcome, Scope, Usage
from tests.support.calls import a_call

#: most tokens of a call: input and output
READ, WRITTEN = 30, 10
PRICES = FlatPrices(token=Decimal("0.01"))
BOUND = (READ + WRITTEN) * Decimal("0.01")
ADAPTERS: Mapping[str, Any] = {
    "openai": OpenAIAdapter(api_key="none", base_url="http://127.0.0.1:9/v1"),
    "anthropic": AnthropicAdapter(api_key="none", base_url="http://127.0.0.1:9"),
}
#: what becomes of a usage on its way: the counts that a reply states as 0
TOLD = {
    "as it is": (),
    "zeros": ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens"),
    "no prompt": ("prompt_tokens", "input_tokens"),
    "no output": ("completion_tokens", "output_tokens"),
}


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A reply of the provider, and what it bills."""

    billed: Usage
    told: str
    #: status of an error that the reply holds instead of a text; ``None``: it has a text
    error: int | None

    def body(self, provider: str) -> dict[str, Any]:
        if self.error is not None:
            body: dict[str, Any] = getattr(formats, f"{provider}_error_within")(
                self.error, None, "no"
            )
        else:
            body = getattr(formats, f"{provider}_reply")("m", "Yes.", self.billed, Finish.STOP)
        if self.told == "nothing":
            body.pop("usage", None)
        elif "usage" in body:
            body["usage"] |= {name: 0 for name in TOLD[self.told] if name in body["usage"]}
        return body


replies = st.builds(
    Sent,
    billed=st.builds(Usage, input=st.integers(1, READ), output=st.integers(1, WRITTEN)),
    told=st.sampled_from([*TOLD, "nothing"]),
    error=st.sampled_from([None, None, None, 429, 502]),
)


@pytest.mark.parametrize("provider", list(ADAPTERS))
@given(sent=st.lists(replies, max_size=12), cap=st.integers(0, 200))
def test_what_is_billed_is_charged_and_what_is_charged_stays_below_the_cap(
    provider: str, sent: list[Sent], cap: int
) -> None:
    limit = cap * Decimal("0.01")
    ledger, account, due = MemoryLedger(Limits(total=limit)), Account(), Decimal(0)
    waiting = iter(sent)

    async def send(call: Call, *, attempt_id: str | None = None) -> Completion:
        nonlocal due
        one = next(waiting)
        if one.error is None:
            due += PRICES.cost(call.model, one.billed) or 0
        body = one.body(provider)
        reply = Reply(body=body, request_id=attempt_id, latency=None)
        found: Completion = ADAPTERS[provider].read(reply, call.model)
        return found

    async def ask() -> Decimal:
        complete = build(
            send,
            journal=LedgerJournal(ledger, account),
            prices=PRICES,
            bound=lambda _: READ,
            retry=RetryPolicy(attempts=1),
            caller=Caller(wait_timeout=0.0),
        )
        for _ in sent:
            try:
                await complete(a_call(model=f"{provider}:m", max_tokens=WRITTEN))
            except BudgetError:
                break
            except ProviderError:
                continue
        (spent,) = [one.spent for one in await ledger.balances() if one.scope is Scope.TOTAL]
        return spent

    spent = anyio.run(ask)
    assert spent == account.charged <= limit
    assert due <= spent
    for attempt, one in zip(account.attempts, sent, strict=False):
        if one.error == 429:
            assert (attempt.error, attempt.charged) == ("RateLimited", Decimal(0))
        elif one.error is not None or one.told != "as it is":
            assert (attempt.usage, attempt.charged) == (None, BOUND)
        else:
            assert (attempt.outcome, attempt.usage) == (Outcome.OK, one.billed)
