"""The client for programs without an event loop."""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import ExitStack
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal

from posology.client.client import Client
from posology.client.rows import Row
from posology.client.tables import TableFormat
from posology.published.affected import AffectedAnswer
from posology.published.answers import AskOutput, PassageOutput
from posology.published.estimates import EstimateOutput
from posology.published.ingests import IngestOutput
from posology.published.jobs import BatchOutput, BatchRow, JobEvent, JobOutput, JobSummary
from posology.published.literature import IndexStatus, QuoteSearch, SearchOutput
from posology.published.money import SpendOutput
from posology.published.tables.orders import TableOrder
from posology.published.watches.forms import WatchOutput, WatchSummary
from posology.types import BatchState, Grouping, JobState, Mode

_Found = TypeVar("_Found")


class SyncClient:
    """A :class:`Client` whose methods block.

    It has an event loop in a thread of its own, so it also works where a loop runs already. Use it as a context
    manager, or call :meth:`close`. Every method does what the method of that name does there, raises the same errors,
    and takes the same arguments. Threads may share it.

    Args:
        base_url: where the API is.
        tenant: tenant of the jobs; ``None``: the key's, or ``default`` without a key.
        api_key: the tenant's key, where the service wants one.
        timeout: seconds of silence that one attempt bears.
        attempts: at one request, the first included.
        transport: what sends the requests; ``None``: the network.
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8000",
        *,
        tenant: str | None = None,
        api_key: str | None = None,
        timeout: float = 30.0,
        attempts: int = 5,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._client = Client(
            base_url,
            tenant=tenant,
            api_key=api_key,
            timeout=timeout,
            attempts=attempts,
            transport=transport,
        )
        self._open = ExitStack()
        self._portal: BlockingPortal = self._open.enter_context(start_blocking_portal())
        self._open.callback(lambda: self._portal.call(self._client.aclose))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, and end the thread."""
        self._open.close()

    def submit(
        self,
        question: str | Mapping[str, Any],
        *,
        key: str | None = None,
        wait: float = 0.0,
        **request: Any,
    ) -> JobOutput:
        """See :meth:`Client.submit`."""
        return self._run(lambda: self._client.submit(question, key=key, wait=wait, **request))

    def submit_or_find(
        self,
        question: str | Mapping[str, Any],
        *,
        key: str | None,
        wait: float = 0.0,
        **request: Any,
    ) -> tuple[JobOutput, bool]:
        """See :meth:`Client.submit_or_find`."""
        return self._run(
            lambda: self._client.submit_or_find(question, key=key, wait=wait, **request)
        )

    def ask(
        self, question: str | Mapping[str, Any], *, key: str | None = None, **request: Any
    ) -> AskOutput:
        """See :meth:`Client.ask`."""
        return self._run(lambda: self._client.ask(question, key=key, **request))

    def get(self, job: str) -> JobOutput:
        """See :meth:`Client.get`."""
        return self._run(lambda: self._client.get(job))

    def jobs(self, *, state: JobState | str | None = None, page: int = 100) -> Iterator[JobSummary]:
        """See :meth:`Client.jobs`."""
        return self._each(self._client.jobs(state=state, page=page))

    def cancel(self, job: str) -> JobOutput:
        """See :meth:`Client.cancel`."""
        return self._run(lambda: self._client.cancel(job))

    def retry(self, job: str) -> JobOutput:
        """See :meth:`Client.retry`."""
        return self._run(lambda: self._client.retry(job))

    def feedback(self, job: str, *, score: float, comment: str | None = None) -> JobOutput:
        """See :meth:`Client.feedback`."""
        return self._run(lambda: self._client.feedback(job, score=score, comment=comment))

    def events(self, job: str, *, after: str | None = None) -> Iterator[JobEvent]:
        """See :meth:`Client.events`."""
        return self._each(self._client.events(job, after=after))

    def wait(self, job: str) -> JobOutput:
        """See :meth:`Client.wait`."""
        return self._run(lambda: self._client.wait(job))

    def create_watch(
        self, question: str | Mapping[str, Any], *, every: str | int = "week", **request: Any
    ) -> WatchOutput:
        """See :meth:`Client.create_watch`."""
        return self._run(lambda: self._client.create_watch(question, every=every, **request))

    def watch(self, watch: str) -> WatchOutput:
        """See :meth:`Client.watch`."""
        return self._run(lambda: self._client.watch(watch))

    def watches(self) -> tuple[WatchSummary, ...]:
        """See :meth:`Client.watches`."""
        return self._run(self._client.watches)

    def pause_watch(self, watch: str) -> WatchOutput:
        """See :meth:`Client.pause_watch`."""
        return self._run(lambda: self._client.pause_watch(watch))

    def resume_watch(self, watch: str) -> WatchOutput:
        """See :meth:`Client.resume_watch`."""
        return self._run(lambda: self._client.resume_watch(watch))

    def end_watch(self, watch: str) -> WatchOutput:
        """See :meth:`Client.end_watch`."""
        return self._run(lambda: self._client.end_watch(watch))

    def submit_batch(
        self, rows: str | Path | Iterable[Row], *, key: str | None = None, **defaults: Any
    ) -> BatchOutput:
        """See :meth:`Client.submit_batch`."""
        return self._run(lambda: self._client.submit_batch(rows, key=key, **defaults))

    def batch(self, batch: str) -> BatchOutput:
        """See :meth:`Client.batch`."""
        return self._run(lambda: self._client.batch(batch))

    def batches(
        self, *, state: BatchState | str | None = None, page: int = 100
    ) -> Iterator[BatchOutput]:
        """See :meth:`Client.batches`."""
        return self._each(self._client.batches(state=state, page=page))

    def cancel_batch(self, batch: str) -> BatchOutput:
        """See :meth:`Client.cancel_batch`."""
        return self._run(lambda: self._client.cancel_batch(batch))

    def batch_rows(self, batch: str, *, page: int = 100) -> Iterator[BatchRow]:
        """See :meth:`Client.batch_rows`."""
        return self._each(self._client.batch_rows(batch, page=page))

    def search(
        self,
        query: str,
        *,
        k: int = 10,
        mode: Mode = "fused",
        retracted: bool = False,
        filters: Mapping[str, Any] | None = None,
        index_version: int | None = None,
        collection: str | None = None,
    ) -> SearchOutput:
        """See :meth:`Client.search`."""
        return self._run(
            lambda: self._client.search(
                query,
                k=k,
                mode=mode,
                retracted=retracted,
                filters=filters,
                index_version=index_version,
                collection=collection,
            )
        )

    def passage(
        self, passage: str, *, version: int | None = None, collection: str | None = None
    ) -> PassageOutput:
        """See :meth:`Client.passage`."""
        return self._run(
            lambda: self._client.passage(passage, version=version, collection=collection)
        )

    def find_quote(
        self, quote: str, *, version: int | None = None, collection: str | None = None
    ) -> QuoteSearch:
        """See :meth:`Client.find_quote`."""
        return self._run(
            lambda: self._client.find_quote(quote, version=version, collection=collection)
        )

    def index(self, *, collection: str | None = None) -> IndexStatus:
        """See :meth:`Client.index`."""
        return self._run(lambda: self._client.index(collection=collection))

    def affected(
        self, *, since: date | str | None = None, page: int = 50, collection: str | None = None
    ) -> Iterator[AffectedAnswer]:
        """See :meth:`Client.affected`."""
        return self._each(self._client.affected(since=since, page=page, collection=collection))

    def upload(self, path: str | Path, *, name: str | None = None) -> IngestOutput:
        """See :meth:`Client.upload`."""
        return self._run(lambda: self._client.upload(path, name=name))

    def ingest(self, ingest: str) -> IngestOutput:
        """See :meth:`Client.ingest`."""
        return self._run(lambda: self._client.ingest(ingest))

    def ingests(self) -> tuple[IngestOutput, ...]:
        """See :meth:`Client.ingests`."""
        return self._run(self._client.ingests)

    def fetch(
        self,
        query: str | None = None,
        *,
        question: str | None = None,
        pmids: Sequence[str] = (),
        links: str | None = None,
        trials: Sequence[str] = (),
        service: str = "pubmed",
        max_records: int = 100,
        full_text: bool = False,
        wider: bool = False,
        added_since: date | str | None = None,
    ) -> IngestOutput:
        """See :meth:`Client.fetch`."""
        return self._run(
            lambda: self._client.fetch(
                query,
                question=question,
                pmids=pmids,
                links=links,
                trials=trials,
                service=service,
                max_records=max_records,
                full_text=full_text,
                wider=wider,
                added_since=added_since,
            )
        )

    def cancel_ingest(self, ingest: str) -> IngestOutput:
        """See :meth:`Client.cancel_ingest`."""
        return self._run(lambda: self._client.cancel_ingest(ingest))

    def wait_ingest(self, ingest: str) -> IngestOutput:
        """See :meth:`Client.wait_ingest`."""
        return self._run(lambda: self._client.wait_ingest(ingest))

    def create_table(
        self,
        documents: Sequence[str] = (),
        *,
        search: Mapping[str, Any] | None = None,
        preset: str | None = None,
        fields: Sequence[Mapping[str, Any]] = (),
        criteria: Sequence[str] = (),
        model: str | None = None,
        max_cost_usd: Decimal | str | None = None,
        **options: Any,
    ) -> TableOrder:
        """See :meth:`Client.create_table`."""
        return self._run(
            lambda: self._client.create_table(
                documents,
                search=search,
                preset=preset,
                fields=fields,
                criteria=criteria,
                model=model,
                max_cost_usd=max_cost_usd,
                **options,
            )
        )

    def table(self, table: str) -> TableOrder:
        """See :meth:`Client.table`."""
        return self._run(lambda: self._client.table(table))

    def tables(self) -> tuple[TableOrder, ...]:
        """See :meth:`Client.tables`."""
        return self._run(self._client.tables)

    def wait_table(self, table: str) -> TableOrder:
        """See :meth:`Client.wait_table`."""
        return self._run(lambda: self._client.wait_table(table))

    def download_table(self, table: str, *, form: TableFormat = "csv") -> bytes:
        """See :meth:`Client.download_table`."""
        return self._run(lambda: self._client.download_table(table, form=form))

    def cancel_table(self, table: str) -> TableOrder:
        """See :meth:`Client.cancel_table`."""
        return self._run(lambda: self._client.cancel_table(table))

    def estimate(
        self, questions: str | Mapping[str, Any] | Iterable[str | Mapping[str, Any]]
    ) -> EstimateOutput:
        """See :meth:`Client.estimate`."""
        return self._run(lambda: self._client.estimate(questions))

    def spend(
        self,
        *,
        by: Grouping | str = Grouping.DAY,
        since: date | str | None = None,
        until: date | str | None = None,
    ) -> SpendOutput:
        """See :meth:`Client.spend`."""
        return self._run(lambda: self._client.spend(by=by, since=since, until=until))

    def _run(self, work: Callable[[], Awaitable[_Found]]) -> _Found:
        return self._portal.call(work)

    def _each(self, found: AsyncGenerator[_Found]) -> Iterator[_Found]:
        try:
            while some := self._portal.call(_next, found):
                yield from some
        finally:
            self._portal.call(found.aclose)


async def _next(found: AsyncGenerator[_Found]) -> tuple[_Found, ...]:
    """Return the next item alone; nothing at the end."""
    async for one in found:
        return (one,)
    return ()
