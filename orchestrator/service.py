"""The composition root: settings in, a working service out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import to_thread

from orchestrator.connections import Connections
from orchestrator.models import Models
from orchestrator.pipeline import Pipeline, Prepared, Report, Request
from orchestrator.settings import Settings
from policies import POLICIES
from posology.errors import ConfigurationError
from posology.index.retriever import Mode, Retriever
from posology.index.store import Index
from posology.llm.accounting import Account
from posology.seams import Journal, Meter
from posology.types import Query, Retrieval
from strategies import STRATEGIES


class Service:
    """Answers questions and searches, over one open index."""

    def __init__(
        self, *, settings: Settings, index: Index, retriever: Retriever, pipeline: Pipeline
    ) -> None:
        self.settings = settings
        self.index = index
        self._retriever = retriever
        self._pipeline = pipeline

    async def ask(
        self, request: Request, account: Account, journal: Journal | None = None
    ) -> Report:
        """Answer one question; see :meth:`Pipeline.run`."""
        return await self._pipeline.run(request, account, journal)

    async def prepare(self, request: Request) -> Prepared:
        """Retrieve and decide, and spend nothing; see :meth:`Pipeline.prepare`."""
        return await self._pipeline.prepare(request)

    async def search(
        self, query: Query, *, k: int, mode: Mode, retracted: bool = False
    ) -> Retrieval:
        """Retrieve passages and spend nothing; see :meth:`Retriever.retrieve`."""
        return await self._retriever.retrieve(query, k=k, mode=mode, retracted=retracted)


def index_place(settings: Settings, given: str | None = None) -> str:
    """Where the index is: as given, else as configured.

    Raises:
        ConfigurationError: neither says.
    """
    place = given or settings.index
    if place is None:
        raise ConfigurationError("say where the index is: --index DIR, or set POSOLOGY_INDEX")
    return place


@asynccontextmanager
async def open_connections(
    settings: Settings, models: Models, meter: Meter | None = None
) -> AsyncIterator[Connections]:
    """Be ready to connect to providers; closes what was connected."""
    connections = Connections(settings, offline=models.reader, meter=meter)
    try:
        yield connections
    finally:
        await connections.aclose()


async def make_service(
    settings: Settings, models: Models, connections: Connections, place: str | None = None
) -> Service:
    """Open the index and load the embedder.

    Raises:
        ConfigurationError: nobody says where the index is.
        IndexFault: there is no usable index, or another embedder made it.
        EmbedderUnavailable: the embedder's files cannot be loaded.
    """
    where = index_place(settings, place)
    index = await to_thread.run_sync(Index.open, where)
    retriever = Retriever(index, await to_thread.run_sync(models.embedder))
    return Service(
        settings=settings,
        index=index,
        retriever=retriever,
        pipeline=Pipeline(
            retriever=retriever,
            policy=POLICIES["fixed"](),
            strategies=STRATEGIES,
            completes=connections.complete,
        ),
    )


@asynccontextmanager
async def open_service(
    settings: Settings, place: str | None = None, *, meter: Meter | None = None
) -> AsyncIterator[Service]:
    """A service for as long as it is needed, with models and connections of its own.

    Args:
        settings: say what the call does not.
        place: where the index is; ``None``: as configured.
        meter: of the tenant's minute; ``None``: it is not limited.

    Raises:
        ConfigurationError: nobody says where the index is.
        IndexFault: there is no usable index, or another embedder made it.
        EmbedderUnavailable: the embedder's files cannot be loaded.
    """
    models = Models(settings.embedder)
    async with open_connections(settings, models, meter) as connections:
        yield await make_service(settings, models, connections, place)
