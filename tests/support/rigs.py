"""Stacks over adapters to stub providers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from posology.budget.prices.book import packaged
from posology.llm.accounting import Account
from posology.llm.stack import build
from posology.seams import Complete
from posology.testing import StubProvider, by_bytes
from posology.types import Outcome


@dataclass(frozen=True, kw_only=True)
class Rig:
    """A stack over one adapter, and what it left behind."""

    stub: StubProvider
    adapter: Any
    complete: Complete
    account: Account

    @property
    def outcomes(self) -> list[tuple[int, int, Outcome, str | None]]:
        return [(a.call, a.attempt, a.outcome, a.error) for a in self.account.attempts]

    @property
    def sent(self) -> list[dict[str, Any]]:
        return [request.json for request in self.stub.requests]


@asynccontextmanager
async def rigs() -> AsyncIterator[Callable[..., Rig]]:
    """Makes a rig of an adapter to a stub, the stub's script, and what a stack is built with."""
    async with AsyncExitStack() as opened:

        def make(adapter_to: Callable[[StubProvider], Any], script: Any, **built: Any) -> Rig:
            stub = opened.enter_context(StubProvider(script))
            adapter, account = adapter_to(stub), Account()
            opened.push_async_callback(adapter.aclose)
            given: dict[str, Any] = {
                "journal": account,
                "prices": packaged(),
                "bound": by_bytes,
                **built,
            }
            complete = build(adapter, **given)
            return Rig(stub=stub, adapter=adapter, complete=complete, account=account)

        yield make
