"""What commands need that write an index: the index, and what makes its rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from orchestrator.ingest.embedding import Payer, paying
from orchestrator.ingest.shards.processes import SHARD, Spread, spreading
from orchestrator.models import Models
from orchestrator.service import index_place
from orchestrator.settings import Settings
from posology.index.build.ingest import BATCH
from posology.index.build.rows import Making
from posology.index.embedders import load as load_embedder
from posology.index.embedders.paid.embedder import OpenAIEmbedder
from posology.index.store import Index
from posology.seams import Annotator, Embedder, TokenCodec
from strategies.compression.late.codec import LateCodec
from strategies.compression.self_information import make_annotator


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Writing:
    """An index, and what makes its rows."""

    index: Index
    embedder: Embedder
    annotator: Annotator
    #: ``None``: no token codes are kept
    codec: TokenCodec | None
    #: workers; ``None``: this process
    making: Making | None
    #: records that are encoded and committed together
    batch: int


@contextmanager
def writing(
    settings: Settings,
    *,
    place: str | None,
    embedder: str | None,
    payer: Payer | None,
    spread: Spread | None,
) -> Iterator[Writing]:
    """Make ready for writing an index, which is made if there is none. Blocking.

    Args:
        settings: say where the index is, and which embedder, where the arguments do not; by which language
            model the passages are annotated, and whether token codes are kept: they are where the packaged
            codec is for this embedder; and for how long old versions are kept.
        place: the index.
        embedder: as :func:`posology.index.embedders.load` takes it.
        payer: pays for vectors that are bought; ``None``: the configured tenant.
        spread: workers that encode; ``None``: this process does.

    Raises:
        PosologyError: nothing can be written; no index is made where vectors cannot be bought.
    """
    name = embedder or settings.embedder
    encoder = load_embedder(name, options=settings.embedding)
    annotator = make_annotator(settings.self_information)
    codec = LateCodec.packaged() if settings.token_codes else None
    with ExitStack() as stack:
        ready: Embedder = encoder
        if isinstance(encoder, OpenAIEmbedder):
            models = Models(name, settings.embedding)
            ready = stack.enter_context(paying(encoder, settings, models, payer or Payer()))
        index = Index.open_or_create(
            index_place(settings, place),
            encoder.name,
            encoder.dim,
            annotator=annotator.name,
            codec=codec,
        )
        index.keep = settings.kept_versions
        making = (
            None
            if spread is None
            else stack.enter_context(spreading(spread, settings, index, embedder=name))
        )
        yield Writing(
            index=index,
            embedder=ready,
            annotator=annotator,
            codec=codec,
            making=making,
            batch=BATCH if spread is None else SHARD,
        )
