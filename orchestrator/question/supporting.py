"""The check of every answer for support: the same for all strategies and models."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from anyio import to_thread

from orchestrator.question.machine import Outcome
from orchestrator.question.request import Request
from posology.llm.models.names import parse
from posology.seams import SupportJudge
from posology.types import Answer, Excerpt
from strategies.support.check import applied, checked


def no_judge() -> None:
    """Return no judge, so that rules alone decide."""


class SupportCheck:
    """Checks whether the quotes behind each sentence of an answer support it.

    It calls no model and spends nothing. The same answer gets the same result from the same judge, whose name is recorded.

    Args:
        judge: loads or returns the judge, in a thread; ``None``: there is none.
    """

    def __init__(self, judge: Callable[[], SupportJudge | None] = no_judge) -> None:
        self._judge = judge

    async def __call__(
        self, outcome: Outcome, request: Request, excerpts: Iterable[Excerpt]
    ) -> Outcome:
        """Return an answer with the support of its sentences, or what the request's mode makes of it.

        The offline reader's answers stay as they are: they are quotes, and remarks that no quote stands behind.

        Args:
            outcome: of a strategy; a refusal stays as it is.
            request: the question, with its mode.
            excerpts: every retrieved passage, with all of its sentences.
        """
        quoting = parse(request.model).provider == "offline"
        if request.support == "off" or quoting or not isinstance(outcome, Answer):
            return outcome
        by_id = {one.passage.id: one for one in excerpts}
        found = await to_thread.run_sync(checked, outcome, by_id, request.query.text, self._judge)
        return applied(found, request.support)
