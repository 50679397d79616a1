"""Direct RAG: one call over all retrieved passages, whole."""

from __future__ import annotations

from dataclasses import replace

from posology.seams import Complete
from posology.types import Answer, Call, Refusal, Task
from strategies.evidence import shown, whole
from strategies.single_call import NOTHING_FOUND, ask, conclude

NAME = "direct"


class Direct:
    """Asks once, for a cited answer or a refusal, and keeps only the quotes that stand."""

    async def __call__(self, task: Task, complete: Complete) -> Answer | Refusal:
        """Answer from the passages in their order.

        Without passages there is nothing to ask about: that refuses without a call.

        Raises:
            ProviderError: the call failed; nothing was answered.
        """
        call = self.call(task)
        if call is None:
            return Refusal(reason=NOTHING_FOUND, strategy=NAME)
        outcome = conclude(task.query, await complete(call), call.excerpts, strategy=NAME)
        return replace(outcome, shown=shown(call.excerpts, task.retrieval.passages))

    def call(self, task: Task) -> Call | None:
        """The one call that it makes; ``None`` where there is nothing to ask about."""
        return ask(task, whole(task.retrieval.passages), strategy=NAME)
