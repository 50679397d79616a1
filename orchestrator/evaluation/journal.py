"""The account of one question's calls in the run's file, and the replies that an interrupted run has paid for."""

from __future__ import annotations

from orchestrator.evaluation.folder import Calls, Closed, Opened, reply
from orchestrator.training.paid.rows import RowFile
from posology.budget.ledger import entries
from posology.llm.accounting import Account
from posology.types import Attempt, Completion, Opening


class KeptCalls:
    """A :class:`~posology.seams.Journal` of one row, and its :class:`~posology.seams.Recall`.

    An attempt is on disk before it is sent, and its reply before anything is done with it.

    Args:
        file: the run's calls.
        key: key of the row.
    """

    def __init__(self, file: RowFile[Calls], key: str) -> None:
        self._file = file
        self._key = key
        earlier = file.content.attempts.get(key, {}).values()
        #: all attempts, those of interrupted runs included
        self.account = Account(earlier)
        #: whether a reply of an interrupted run was used
        self.replayed = False
        self._replies = dict(file.content.replies.get(key, {}))
        self._calls = max((one.call for one in earlier), default=0)
        self._open: dict[str, Opening] = {}

    async def open(self, opening: Opening) -> int:
        """Record an attempt before it is sent.

        Raises:
            BadFile: the file cannot be written, so nothing is spent.
        """
        number = opening.call
        if number is None:
            self._calls += 1
            number = self._calls
        self._file.write(Opened(key=self._key, call=number, attempt=entries.opened(opening)))
        self._open[opening.id] = opening
        return number

    async def close(self, attempt: Attempt, completion: Completion | None) -> None:
        """Record how an attempt ended, with its reply.

        Raises:
            BadFile: the file cannot be written; the attempt counts at its bound.
        """
        await self.account.close(attempt, completion)
        opening = self._open.pop(attempt.id)
        self._file.write(
            Closed(
                key=self._key,
                content=opening.key,
                attempt=entries.ended(attempt),
                reply=None if completion is None else reply(completion),
            )
        )

    async def recall(self, content: str, /) -> Completion | None:
        """Return the reply that an interrupted run got to an equal call for this row; ``None``: there is none."""
        found = self._replies.get(content)
        self.replayed = self.replayed or found is not None
        return found
