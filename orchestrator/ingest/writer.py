"""Opening an index for writing: the index, and the models that its rows are computed with."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from orchestrator.ingest.embedding import Payer, paying
from orchestrator.ingest.shards.processes import SHARD, Spread, spreading
from orchestrator.models import Models
from orchestrator.service import index_place
from orchestrator.settings import Settings
from posology.errors import InputError
from posology.index.build.rows import RowSource
from posology.index.embedders import load as load_embedder
from posology.index.embedders.paid.embedder import OpenAIEmbedder
from posology.index.store import Index
from posology.seams import Embedder
from strategies.compression.late.codec import LateCodec
from strategies.compression.self_information import make_annotator


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """The index that a command writes, and who computes and pays for its vectors."""

    #: address of the index; ``None``: as configured
    place: str | Path | None = None
    #: as :func:`posology.index.embedders.load` takes it; ``None``: as configured
    embedder: str | Path | None = None
    #: that one, if it is loaded already; ``None``: it is loaded
    encoder: Embedder | None = None
    #: pays for bought vectors
    payer: Payer = field(default_factory=Payer)
    #: workers that encode; ``None``: this process does
    spread: Spread | None = None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Writer:
    """An index, and the models that its rows are computed with."""

    index: Index
    source: RowSource


@contextmanager
def open_writer(settings: Settings, target: Target) -> Iterator[Writer]:
    """Open an index for writing, or create it. Blocking.

    Passages are annotated by the configured language model. Token codes are stored if the settings ask for them and
    the packaged codec is for this embedder.

    Args:
        settings: the configuration.
        target: the index, and who computes and pays for its vectors.

    Raises:
        PosologyError: the index cannot be written; none is created if vectors cannot be bought. A folder that was made
            for the index is removed if the block raises an :class:`~posology.errors.InputError` before a passage is written.
    """
    name = target.embedder or settings.embedder
    encoder = target.encoder or load_embedder(name, options=settings.embedding)
    annotator = make_annotator(settings.self_information)
    codec = LateCodec.packaged() if settings.token_codes else None
    with ExitStack() as stack:
        embedder: Embedder = encoder
        if isinstance(encoder, OpenAIEmbedder):
            models = Models(name, settings.embedding)
            embedder = stack.enter_context(paying(encoder, settings, models, target.payer))
        place = index_place(settings, target.place)
        made = place.folder if place.folder is not None and not place.folder.exists() else None
        index = Index.open_or_create(
            place,
            encoder.name,
            encoder.dim,
            annotator=annotator.name,
            codec=codec,
        )
        index.keep = settings.kept_versions
        source = RowSource(embedder=embedder, annotator=annotator, codec=codec)
        if target.spread is not None:
            workers = spreading(
                target.spread, settings, index, embedder=None if name is None else str(name)
            )
            source = replace(source, builder=stack.enter_context(workers), batch=SHARD)
        try:
            yield Writer(index=index, source=source)
        except InputError:
            if made is not None and not index.newest().count():
                shutil.rmtree(made)
            raise
