"""Direct RAG: one call over all retrieved passages, whole."""

from __future__ import annotations

from dataclasses import replace

from posology.seams import Complete
from posology.types import Answer, Call, Refusal, Task
from strategies.evidence import shown, whole
from strategies.single_call import NOTHING_FOUND, OneCall, ask, conclude

NAME = "direct"


class Direct(OneCall):
    """One call over whole passages, for a cited answer or a refusal; keeps only verified quotes."""

    async def __call__(self, task: Task, complete: Complete) -> Answer | Refusal:
        """Answer from the passages in their order.

        Without passages it refuses, without a call.

        Raises:
            ProviderError: the call failed.
        """
        call = self.call(task)
        if call is None:
            return Refusal(reason=NOTHING_FOUND, strategy=NAME)
        outcome = conclude(task.query, await complete(call), call.excerpts, strategy=NAME)
        return replace(outcome, shown=shown(call.excerpts, task.retrieval.passages))

    def call(self, task: Task) -> Call | None:
        """Render the call; ``None`` without passages."""
        before = task.step.before if task.step else ()
        return ask(task, whole(task.retrieval.passages), strategy=NAME, before=before)
