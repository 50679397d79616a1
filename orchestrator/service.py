"""The composition root: settings in, a working service out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cached_property

from anyio import to_thread

from orchestrator.connections import Connections
from orchestrator.pipeline import Pipeline, Report, Request
from orchestrator.settings import Settings
from policies import POLICIES
from posology.errors import ConfigurationError
from posology.index.embedders import DEFAULT, PACKAGED
from posology.index.embedders import load as load_embedder
from posology.index.retriever import Mode, Retriever
from posology.index.store import Index
from posology.llm.accounting import Account
from posology.seams import Complete, TokenEncoder
from posology.text.tokens import wordpiece_counter
from posology.types import Query, Retrieval, TokenVectors
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

    async def ask(self, request: Request, account: Account) -> Report:
        """Answer one question; see :meth:`Pipeline.run`."""
        return await self._pipeline.run(request, account)

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
async def open_service(settings: Settings, place: str | None = None) -> AsyncIterator[Service]:
    """Open the index, load the embedder, and be ready to connect to providers.

    Raises:
        ConfigurationError: nobody says where the index is.
        IndexFault: there is no usable index, or another embedder made it.
        EmbedderUnavailable: the embedder's files cannot be loaded.
    """
    where = index_place(settings, place)
    index = await to_thread.run_sync(Index.open, where)
    embedder = await to_thread.run_sync(load_embedder, settings.embedder)
    # the offline reader's threshold and weights hold for the packaged encoder, whatever the index's
    packaged = settings.embedder in (None, DEFAULT)
    encoder = embedder if packaged else _PackagedEncoder()
    retriever = Retriever(index, embedder)
    connections = Connections(settings, offline=lambda: _reader(encoder))
    try:
        yield Service(
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
    finally:
        await connections.aclose()


class _PackagedEncoder:
    """The packaged encoder, loaded when the reader first reads, in the reader's own thread."""

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        return self._encoder.token_vectors(texts)

    @cached_property
    def _encoder(self) -> TokenEncoder:
        return load_embedder(DEFAULT)


def _reader(encoder: TokenEncoder) -> Complete:
    """The offline reader, which counts tokens with the packaged encoder's own tokenizer."""
    from posology.llm.offline import ExtractiveReader

    tokenizer = PACKAGED[DEFAULT]() / "tokenizer.json"
    return ExtractiveReader(encoder, wordpiece_counter(tokenizer))
