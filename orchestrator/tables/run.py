"""A table as a paid run: the replies to all documents, then its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from anyio import to_thread

from orchestrator.connections import Connections
from orchestrator.question.estimates.costs import Estimator
from orchestrator.question.estimates.tokens import Counting, packaged_counter
from orchestrator.question.estimates.typical import Typical
from orchestrator.settings import Settings
from orchestrator.tables.documents import Papers
from orchestrator.tables.output import row_output, table_output
from orchestrator.tables.rows import Begin, Replied, Replies, RunFile
from orchestrator.training.paid.calls import Buys
from orchestrator.training.paid.rows import Row
from orchestrator.training.paid.run import Costs, PaidRun, Quote
from posology.llm.memo import call_key
from posology.llm.structured import read
from posology.published.tables.forms import TableEstimate, TableOutput
from posology.seams import SupportJudge
from posology.types import Call, Completion, Finish, Tier
from posology.types.tables import Document
from prompts.tables.cells import NAME
from prompts.template import digests
from strategies.tables.cells import TableRow
from strategies.tables.reading import EXPECTED_CELL, STRATEGY, Reading, unread
from strategies.tables.support import judged


class _Unanswered(Exception):
    """A run has no reply to a call."""

    def __init__(self, call: str) -> None:
        super().__init__(call)
        self.call = call


class Tabulation(PaidRun[Replies, Document]):
    """Reads documents, each by its own calls.

    Args:
        file: keeps the replies; a call with a reply in the file is not made.
        todo: documents without a reply to each of their calls.
        reading: how documents are read.
    """

    def __init__(self, file: RunFile, todo: Sequence[Document], reading: Reading) -> None:
        super().__init__(file, todo, model=reading.model)
        self._reading = reading

    def begin(self) -> Sequence[Row]:
        """Return the ``begin`` row if there are documents to read."""
        if not self.todo:
            return ()
        begin = Begin(
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            model=self.model,
            fields=tuple(one.name for one in self._reading.fields),
            prompt=digests([NAME])[NAME],
        )
        return (begin,)

    def kept(self, call: str) -> bool:
        """See :meth:`PaidRun.kept`."""
        return call in self.file.content.replies

    async def price(self, connections: Connections, settings: Settings, tier: Tier) -> Costs:
        """Estimate the missing calls; see :meth:`PaidRun.price`."""
        estimator = Estimator(
            prices=connections.prices,
            bound=connections.bound,
            counting=Counting(packaged_counter(), native_schema=settings.native_schema),
            typical=Typical(),
        )

        def estimate() -> Costs:
            calls = [call for one in self.todo for call in self._missing(one)]
            found = estimator.calls(
                STRATEGY, calls, tier, output=lambda call: EXPECTED_CELL * len(call.fields)
            )
            return Costs(
                calls=found.calls, input=found.input, output=found.output, dollars=found.dollars
            )

        return await to_thread.run_sync(estimate)

    async def ask(self, item: Document, buyer: Buys) -> None:
        """Read a document; keep each reply before the next call."""
        await self._reading(item, partial(self._complete, buyer, item))

    def _missing(self, document: Document) -> list[Call]:
        return [call for call in self._reading.calls(document) if not self.kept(call_key(call))]

    async def _complete(self, buyer: Buys, document: Document, call: Call) -> Completion:
        """Return the reply in the file, or pay for one and keep it."""
        key = call_key(call)
        known = self.file.content.replies.get(key)
        if known is not None:
            return _completion(known, call)
        bought = await buyer(call)
        completion = bought.completion
        await self.file.keep(
            Replied(
                call=key,
                document=document.id,
                text=completion.text,
                finish=completion.finish,
                served_model=completion.served_model,
                cost=bought.cost,
            )
        )
        return completion


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Documents to read, and how."""

    papers: Papers
    reading: Reading

    async def plan(self, file: RunFile) -> Tabulation:
        """Find the documents without a reply to each of their calls. Nothing is spent."""

        def todo() -> list[Document]:
            found, paid = list[Document](), set(file.content.replies)
            for one in self.papers.documents:
                wanted = {call_key(call) for call in self.reading.calls(one)}
                # copies of a document have the same calls, which the first of them makes
                if not wanted <= paid:
                    found.append(one)
                    paid |= wanted
            return found

        return Tabulation(file, await to_thread.run_sync(todo), self.reading)

    def estimate(self, quote: Quote, todo: int) -> TableEstimate:
        """Return the published form of a quote.

        Args:
            quote: price of the run.
            todo: documents to read.
        """
        documents = len(self.papers.documents)
        return TableEstimate(
            documents=documents, read=documents - todo, calls=quote.costs.calls, **quote.fields()
        )

    async def conclude(
        self, file: RunFile, estimate: TableEstimate, judge: Callable[[], SupportJudge | None]
    ) -> TableOutput:
        """Return the table by the replies in a file.

        Args:
            file: has the replies.
            estimate: price of the run.
            judge: returns what judges values beside their quotes; ``None``: rules alone decide.
        """
        rows: list[tuple[TableRow, str | None]] = []
        for document in self.papers.documents:
            try:
                row = await self.reading(document, partial(_recalled, file))
            except _Unanswered as error:
                failed = file.content.failures.get(error.call)
                reason = f"{failed.error}: {failed.message}" if failed else "its call was not made"
                rows.append((unread(self.reading.fields, document), reason))
            else:
                rows.append((await to_thread.run_sync(judged, row, judge), None))
        return table_output(
            self.reading,
            tuple(
                row_output(row, retracted=row.document.id in self.papers.retracted, error=error)
                for row, error in rows
            ),
            left_out=self.papers.bad,
            estimate=estimate,
            spent=file.content.spent,
        )


async def _recalled(file: RunFile, call: Call) -> Completion:
    key = call_key(call)
    known = file.content.replies.get(key)
    if known is None:
        raise _Unanswered(key)
    return _completion(known, call)


def _completion(known: Replied, call: Call) -> Completion:
    """Return a reply that was kept, which was valid when it was."""
    parsed = None
    if known.finish is not Finish.FILTERED:
        assert call.schema is not None
        parsed = read(known.text, call.schema)
    return Completion(
        text=known.text,
        usage=None,
        finish=known.finish,
        served_model=known.served_model,
        parsed=parsed,
    )
