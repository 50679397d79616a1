"""The composition root: settings in, a working service out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from anyio import to_thread
from pydantic import SecretStr

from orchestrator.compressors import Compressors, make_compressors
from orchestrator.connections import Connections
from orchestrator.models import Models
from orchestrator.question import qtables
from orchestrator.question.decider import Decider, Means
from orchestrator.question.embedding import Spend, encoded
from orchestrator.question.estimates.costs import make_estimator
from orchestrator.question.pipeline import Pipeline, Prepared, Report
from orchestrator.question.request import Request
from orchestrator.retrieval import make_retriever
from orchestrator.settings import Settings
from posology.errors import ConfigurationError, PolicyMismatch
from posology.index.places import Place, s3_options
from posology.index.search.filters import NONE
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.llm.accounting import Account
from posology.seams import Journal, Meter
from posology.types import Answer, Call, Decision, Filters, Mode, Query, Refusal, Retrieval
from strategies.compression import known


class Service:
    """Answers questions and searches, over one open index."""

    def __init__(
        self,
        *,
        settings: Settings,
        index: Index,
        retriever: Retriever,
        pipeline: Pipeline,
        compressors: Compressors,
    ) -> None:
        self.settings = settings
        self.index = index
        self.compressors = compressors
        self._retriever = retriever
        self._pipeline = pipeline

    async def ask(
        self,
        request: Request,
        account: Account,
        journal: Journal | None = None,
        *,
        means: Means | None = None,
    ) -> Report:
        """Answer one question; see :meth:`Pipeline.run`."""
        tenant = self.settings.tenant
        return await self._pipeline.run(request, account, journal, tenant=tenant, means=means)

    async def unpaid(self, query: Query, tenant: str) -> Sequence[Call]:
        """See :meth:`Pipeline.unpaid`."""
        return await self._pipeline.unpaid(query, tenant)

    def spend(self, journal: Journal) -> Spend:
        """What pays for questions' vectors; see :meth:`Pipeline.spend`."""
        return self._pipeline.spend(journal, self.settings.tenant)

    async def prepare(
        self,
        request: Request,
        *,
        means: Means | None = None,
        decided: Decision | None = None,
        spend: Spend | None = None,
    ) -> Prepared:
        """Retrieve and decide, and spend nothing but for the question's vector; see :meth:`Pipeline.prepare`."""
        return await self._pipeline.prepare(request, means=means, decided=decided, spend=spend)

    async def further(
        self,
        prepared: Prepared,
        outcome: Answer | Refusal,
        *,
        means: Means | None = None,
        decided: Decision | None = None,
    ) -> Prepared | None:
        """Decide again after a ladder that was refused to the last; see :meth:`Pipeline.further`."""
        return await self._pipeline.further(prepared, outcome, means=means, decided=decided)

    async def search(
        self,
        query: Query,
        *,
        k: int,
        mode: Mode,
        retracted: bool = False,
        filters: Filters = NONE,
        spend: Spend | None = None,
        version: int | str | None = None,
    ) -> Retrieval:
        """Retrieve passages, and spend nothing but for the question's vector; see :meth:`Retriever.retrieve`.

        Args:
            query: the question.
            k: how many.
            mode: in which order.
            retracted: whether retracted ones may be among them.
            filters: which others may.
            spend: pays for the question's vector, where it has to be bought.
            version: of the index; ``None``: the newest.
        """
        vectors = await encoded(self._retriever.embedder, query.text, spend)
        return await self._retriever.retrieve(
            query,
            k=k,
            mode=mode,
            retracted=retracted,
            filters=filters,
            encoded=vectors,
            version=version,
        )


def index_place(settings: Settings, given: str | None = None) -> Place:
    """Where the index is: as given, else as configured; with what it takes to reach it on object storage.

    Raises:
        ConfigurationError: neither says, or it is no place for an index.
    """
    place = given or settings.index
    if place is None:
        raise ConfigurationError("say where the index is: --index DIR, or set POSOLOGY_INDEX")
    return place_of(settings, place)


def place_of(settings: Settings, where: str) -> Place:
    """A folder or an address as a place, with the settings' credentials for an address.

    Raises:
        ConfigurationError: it is no place for an index.
    """
    if "://" not in where:
        return Place.of(where)
    options = s3_options(
        key=_shown(settings.aws_access_key_id),
        secret=_shown(settings.aws_secret_access_key),
        token=_shown(settings.aws_session_token),
        region=settings.aws_region,
        endpoint=settings.s3_endpoint,
    )
    return Place.of(where, options if where.startswith("s3://") else None)


def _shown(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


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
    settings: Settings,
    models: Models,
    connections: Connections,
    place: str | None = None,
) -> Service:
    """Open the index and load the embedder.

    Args:
        settings: say what the call does not.
        models: have the embedder.
        connections: to models.
        place: where the index is; ``None``: as configured.

    Raises:
        ConfigurationError: nobody says where the index is.
        IndexFault: there is no usable index, or another embedder made it.
        EmbedderUnavailable: the embedder's files cannot be loaded.
        ModelUnavailable: those of the re-ranker cannot.
    """
    where = index_place(settings, place)
    index = await to_thread.run_sync(Index.open, where)
    index.keep = settings.kept_versions
    retriever = await make_retriever(settings, models, index)
    compressors = make_compressors(settings, models, index)
    return Service(
        settings=settings,
        index=index,
        retriever=retriever,
        pipeline=Pipeline(
            retriever=retriever,
            decider=await to_thread.run_sync(
                make_decider, settings, connections, index, compressors
            ),
            completes=connections.complete,
        ),
        compressors=compressors,
    )


def make_decider(
    settings: Settings, connections: Connections, index: Index, compressors: Compressors
) -> Decider:
    """What decides by the configured policy and Q-table. Blocking.

    Raises:
        PolicyMismatch: the Q-table is of another embedder than the index, or of a compressor that there is not.
        PosologyError: its file cannot be read.
    """
    table = qtables.configured(settings)
    if table is not None and table.embedder != index.meta.embedder:
        raise PolicyMismatch(
            f"the Q-table {settings.qtable} was trained with {table.embedder}, and the index was made with "
            f"{index.meta.embedder}: train one with this index",
            policy="qtable",
        )
    if table is not None and not known(table.compressor):
        raise PolicyMismatch(
            f"the Q-table {settings.qtable} was trained with the compressor {table.compressor}, which there is "
            "not: train one with another",
            policy="qtable",
        )
    return Decider(
        default=settings.policy,
        table=table,
        estimator=make_estimator(settings, connections, compressors),
        compressors=compressors,
        embedder=index.meta.embedder,
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
    models = Models(settings.embedder, settings.embedding)
    async with open_connections(settings, models, meter) as connections:
        yield await make_service(settings, models, connections, place)
