"""Asks what a plan needs and a run's file does not have yet, and keeps every reply before the next is awaited."""

from __future__ import annotations

from collections.abc import Callable

from anyio import to_thread

from orchestrator.training.paid.calls import Buyer, Purchase, buy_all
from orchestrator.training.paid.rows import Failed
from orchestrator.training.qtable.plan import Actions, Plan
from orchestrator.training.qtable.rewards import Said
from orchestrator.training.qtable.rows import Arm, Asked, Replied, RunFile, calls_of
from posology.llm.memo import call_key
from strategies.single_call import conclude


def missing(plan: Plan, run: RunFile) -> list[tuple[str, Asked, Arm]]:
    """The calls of a plan that a run has no answer to, question by question."""
    replies = run.content.replies
    needed = calls_of(ground.asked for ground in plan.grounds.values())
    return [(key, asked, arm) for key, (asked, arm) in needed.items() if key not in replies]


class Explorer:
    """Full exploration ("Training algorithm"): every action on every question, once.

    Calls of equal content are made once, whichever actions they are of: of a few sentences 5 % and 10 % are the
    same.

    Args:
        plan: what is asked.
        actions: how.
        purchase: how it is paid for.
        run: keeps what was answered; a call that it has an answer to is not made.
        tell: is told how many calls have ended.
    """

    def __init__(
        self,
        *,
        plan: Plan,
        actions: Actions,
        purchase: Purchase,
        run: RunFile,
        tell: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._plan = plan
        self._actions = actions
        self._purchase = purchase
        self._run = run
        self._tell = tell

    async def __call__(self) -> None:
        """Ask until all is answered.

        What one call alone is refused for is written down, and the others go on.

        Raises:
            PosologyError: what would stop every call, such as a budget that is spent. What was under way
                has ended and is kept.
        """
        buyer = Buyer(self._purchase, spent=self._run.content.spent, failed=self._write)

        async def ask(todo: tuple[str, Asked, Arm]) -> None:
            await self._ask(*todo, buyer)

        await buy_all(ask, missing(self._plan, self._run), at_once=self._purchase.at_once)

    async def _ask(self, key: str, asked: Asked, arm: Arm, buyer: Buyer) -> None:
        retrieval = self._plan.grounds[asked.digest].retrieval
        # rendered once more, since all of them together would fill the memory
        call = await to_thread.run_sync(self._actions.call, retrieval, arm.keep)
        assert call is not None
        assert call_key(call) == key
        bought = await buyer(call)
        said = Said.by(
            conclude(call.query, bought.completion, call.excerpts, strategy=call.strategy)
        )
        self._write(
            Replied(
                call=key,
                text=said.text,
                choice=said.choice,
                refused=said.refused,
                cost=bought.cost,
            )
        )

    def _write(self, row: Replied | Failed) -> None:
        # a few bytes; the loop waits for the disk, since a reply is lost to whoever is killed before
        self._run.write(row)
        self._tell(1)
