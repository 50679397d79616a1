"""The composition root: settings in, a working service out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread
from pydantic import SecretStr

from orchestrator.compressors import Compressors, make_compressors
from orchestrator.connections import Connections
from orchestrator.models import Models
from orchestrator.question import qtables
from orchestrator.question.answering import Answerer
from orchestrator.question.checks import own_prompts
from orchestrator.question.decider import Decider
from orchestrator.question.embedding import Spend, encoded
from orchestrator.question.estimates.costs import Estimator, make_estimator
from orchestrator.question.machine import Remaining
from orchestrator.question.pipeline import Pipeline, Report
from orchestrator.question.request import Request
from orchestrator.retrieval import make_retriever
from orchestrator.settings import Settings
from posology.errors import ConfigurationError, IndexMissing, InvalidQuery, PolicyMismatch
from posology.index.places import Place, s3_options
from posology.index.search.filters import NONE
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.llm.accounting import Account
from posology.llm.calls import Told
from posology.seams import Journal, Meter, Recall
from posology.types import EncodedQuery, Filters, Mode, Query, Retrieval
from strategies.compression import known

#: most collections that a process keeps open
OPEN = 8


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
        estimator: Estimator,
        decider: Decider,
        collection: str | None = None,
    ) -> None:
        self.settings = settings
        #: name of its collection; ``None``: it is not opened as one
        self.collection = collection
        self.index = index
        #: estimates what questions cost
        self.estimator = estimator
        #: has policies decide
        self.decider = decider
        #: prepares and answers questions
        self.pipeline = pipeline
        self.compressors = compressors
        self._retriever = retriever

    async def ask(
        self,
        request: Request,
        account: Account,
        journal: Journal | None = None,
        *,
        remaining: Remaining | None = None,
        recall: Recall | None = None,
        told: Told | None = None,
    ) -> Report:
        """Answer one question of the configured tenant; see :meth:`Pipeline.run`."""
        return await self.pipeline.run(
            request,
            account,
            journal,
            tenant=self.settings.tenant,
            remaining=remaining,
            recall=recall,
            told=told,
        )

    def check(self, collection: str | None) -> None:
        """Check that a request is for this index: it is the only one that a library or a command opens.

        Raises:
            InvalidQuery: it names another collection.
        """
        if collection not in (None, self.collection):
            raise InvalidQuery(
                f"collection {collection!r} is not the open index: give its name as the index, --index {collection}",
                field="collection",
            )

    def order(self, mode: Mode) -> str:
        """Return the name of the order of passages, with the configured re-ranker; see :meth:`Retriever.order`."""
        return self._retriever.order(mode)

    async def encode(self, query: Query, spend: Spend | None) -> EncodedQuery | None:
        """Return a question's vector from a paid embedder; ``None``: the embedder computes it in the search.

        Args:
            query: the question.
            spend: pays for it; ``None``: it is not paid for.

        Raises:
            BudgetError: the tenant's limits do not allow the call, or not yet.
            ProviderError: the call failed.
        """
        return await encoded(self._retriever.embedder, query.text, spend)

    async def search(
        self,
        query: Query,
        *,
        k: int,
        mode: Mode,
        retracted: bool = False,
        filters: Filters = NONE,
        spend: Spend | None = None,
        vectors: EncodedQuery | None = None,
        version: int | str | None = None,
    ) -> Retrieval:
        """Retrieve passages; only the question's vector may cost anything. See :meth:`Retriever.retrieve`.

        Args:
            query: the question.
            k: number of passages.
            mode: order of the passages.
            retracted: whether retracted passages may be found.
            filters: filters that every passage must pass.
            spend: pays for the question's vector; ``None``: it is not paid for.
            vectors: the question's vectors, from :meth:`encode`; ``None``: they are computed or bought now.
            version: version of the index; ``None``: the newest.
        """
        vectors = vectors or await self.encode(query, spend)
        return await self._retriever.retrieve(
            query,
            k=k,
            mode=mode,
            retracted=retracted,
            filters=filters,
            encoded=vectors,
            version=version,
        )


def index_place(settings: Settings, given: str | Path | None = None) -> Place:
    """Return the place of the index, as given or else as configured, with credentials for object storage.

    Args:
        settings: the settings.
        given: folder, address, or name of a collection, which comes before a folder of that name.

    Raises:
        ConfigurationError: no place is given or configured, or an index cannot be there.
    """
    place = given or settings.index
    if isinstance(given, str):
        place = settings.collection_places.get(given, given)
    if place is None:
        raise ConfigurationError(
            "no index is configured: pass --index DIR, set index in posology.toml, or set POSOLOGY_INDEX; to ask without one, "
            "name files or folders behind the question, or pass --live"
        )
    return place_of(settings, place)


def place_of(settings: Settings, where: str | Path) -> Place:
    """Return a folder or an address as a place, with the settings' credentials for an address.

    Raises:
        ConfigurationError: an index cannot be there.
    """
    if isinstance(where, Path) or "://" not in where:
        return Place.of(where)
    options = s3_options(
        key=_secret(settings.aws_access_key_id),
        secret=_secret(settings.aws_secret_access_key),
        token=_secret(settings.aws_session_token),
        region=settings.aws_region,
        endpoint=settings.s3_endpoint,
    )
    return Place.of(where, options if where.startswith("s3://") else None)


def _secret(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


@asynccontextmanager
async def open_connections(
    settings: Settings, models: Models, meter: Meter | None = None
) -> AsyncIterator[Connections]:
    """Load the configured templates; open connections to providers on first use, and close them in the end.

    Raises:
        BadFile: the templates cannot be read or used.
    """
    await to_thread.run_sync(own_prompts, settings)
    offline = partial(models.offline, settings.reading)
    connections = Connections(settings, offline=offline, meter=meter)
    try:
        yield connections
    finally:
        await connections.aclose()


async def make_service(
    settings: Settings,
    models: Models,
    connections: Connections,
    place: str | Path | None = None,
) -> Service:
    """Open the index and load the embedder.

    Args:
        settings: the settings.
        models: has the embedder.
        connections: connections to models.
        place: place of the index; ``None``: as configured.

    Raises:
        ConfigurationError: no place of the index is given or configured.
        IndexFault: there is no usable index, or another embedder made it.
        EmbedderUnavailable: the embedder's files cannot be loaded.
        ModelUnavailable: the re-ranker's files cannot be loaded.
    """
    where = index_place(settings, place)
    index = await to_thread.run_sync(Index.open, where)
    index.keep = settings.kept_versions
    retriever = await make_retriever(settings, models, index)
    compressors = make_compressors(settings, models, index)
    estimator = await to_thread.run_sync(make_estimator, settings, connections, compressors)
    decider = await to_thread.run_sync(make_decider, settings, estimator, index, compressors)
    pipeline = Pipeline(
        retriever=retriever,
        decider=decider,
        completes=connections.complete,
        compressors=compressors,
        estimator=estimator,
        seconds=settings.compression_seconds,
        answerer=Answerer(models.judge),
    )
    return Service(
        settings=settings,
        index=index,
        retriever=retriever,
        pipeline=pipeline,
        compressors=compressors,
        estimator=estimator,
        decider=decider,
        collection=str(place) if place in settings.collection_places else None,
    )


class Services:
    """The default index and the indices of collections, each opened on first use, with one encoder for all.

    Args:
        settings: name the places.
        models: has the embedder.
        connections: connections to models.
    """

    def __init__(self, settings: Settings, models: Models, connections: Connections) -> None:
        self._settings = settings
        self._models = models
        self._connections = connections
        #: those that were used last stand at the end
        self._opened: dict[str | None, Service] = {}
        self._opening: defaultdict[str | None, anyio.Lock] = defaultdict(anyio.Lock)

    async def __call__(self, collection: str | None = None) -> Service:
        """Return the service of a collection; ``None``: of the default index, which stays open.

        Raises:
            PosologyError: it cannot be opened; the next call tries again.
            IndexMissing: no place of that collection is configured here.
        """
        if collection not in (None, *self._settings.collection_places):
            raise IndexMissing(
                f"the collection {collection} has no place here: name one in POSOLOGY_COLLECTIONS",
                index=str(collection),
            )
        async with self._opening[collection]:
            service = self._opened.pop(collection, None) or await make_service(
                self._settings, self._models, self._connections, collection
            )
            self._opened[collection] = service
        named = [name for name in self._opened if name is not None]
        for name in named[:-OPEN]:
            # work under way keeps it
            del self._opened[name]
        return service


def make_decider(
    settings: Settings, estimator: Estimator, index: Index, compressors: Compressors
) -> Decider:
    """Build the decider with the configured policy, Q-table and calibration. Blocking.

    Raises:
        PolicyMismatch: the Q-table or the calibration was made with another embedder than the index's, or the Q-table
            with an unknown compressor.
        PosologyError: a file cannot be read.
    """
    table = qtables.configured(settings)
    if table is not None and table.embedder != index.meta.embedder:
        raise PolicyMismatch(
            f"the Q-table {settings.qtable} was trained with {table.embedder}, but the index was made with "
            f"{index.meta.embedder}: train a Q-table with this index",
            policy="qtable",
        )
    if table is not None and not known(table.compressor):
        raise PolicyMismatch(
            f"the Q-table {settings.qtable} was trained with the unknown compressor {table.compressor}: train one "
            "with another compressor",
            policy="qtable",
        )
    calibration = qtables.configured_calibration(settings)
    if calibration is not None and calibration.embedder != index.meta.embedder:
        raise PolicyMismatch(
            f"the calibration {settings.calibration} was made with {calibration.embedder}, but the index was made with "
            f"{index.meta.embedder}: run `posology policy calibrate` with this index",
            policy="preflight",
        )
    return Decider(
        default=settings.policy,
        table=table,
        estimator=estimator,
        compressors=compressors,
        embedder=index.meta.embedder,
        calibration=calibration,
    )


@asynccontextmanager
async def open_service(
    settings: Settings,
    place: str | Path | None = None,
    *,
    meter: Meter | None = None,
    models: Models | None = None,
) -> AsyncIterator[Service]:
    """Open a service with connections of its own.

    Args:
        settings: the settings.
        place: place of the index; ``None``: as configured.
        meter: the tenant's rate limits; ``None``: there are none.
        models: has the encoder; ``None``: as configured.

    Raises:
        ConfigurationError: no place of the index is given or configured.
        IndexFault: there is no usable index, or another embedder made it.
        EmbedderUnavailable: the embedder's files cannot be loaded.
    """
    models = models or Models(settings.embedder, settings.embedding)
    async with open_connections(settings, models, meter) as connections:
        yield await make_service(settings, models, connections, place)
