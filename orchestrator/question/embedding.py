"""A question's vector, where it is bought: by the tenant and under the cap of whoever asks, before retrieval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from anyio import to_thread

from orchestrator.compressors import make_memory
from orchestrator.settings import Settings
from posology.index.embedders.paid.embedder import OpenAIEmbedder
from posology.index.embedders.paid.models import PROVIDER
from posology.seams import Complete, Embedder, PaidEmbedder
from posology.types import Call, EncodedQuery, Mode


@dataclass(frozen=True, kw_only=True, slots=True)
class Spend:
    """What pays for a question's vector."""

    #: whose money it is
    tenant: str
    #: gives the ``Complete`` of a model; ``None``: nothing is spent, and what was bought before has to do
    complete: Callable[[str], Complete] | None = None
    #: whether, where nothing is spent and the vector is not there, passages are found by their words alone
    blind: bool = False


async def encoded(embedder: Embedder, text: str, spend: Spend | None) -> EncodedQuery | None:
    """A question's vector, where it is bought; ``None``: the embedder is to compute it.

    Args:
        embedder: the index's.
        text: of the question.
        spend: pays; ``None``: nothing does, and an embedder that has to be paid refuses when it is asked.

    Returns:
        Also a vector of zeros, for a search that is to be blind: see :func:`seeing`.

    Raises:
        BudgetError: the tenant's limits do not allow it, or not yet.
        ProviderError: the call failed.
    """
    if spend is None or not isinstance(embedder, PaidEmbedder):
        return None
    import numpy as np

    kept = await to_thread.run_sync(lambda: embedder.kept(text, tenant=spend.tenant))
    if kept is not None:
        return EncodedQuery(vector=kept)
    if spend.complete is None:
        if not spend.blind:
            return None
        return EncodedQuery(vector=np.zeros(embedder.dim, np.float32))
    (vector,) = await embedder.encode([text], spend.complete(embedder.model), tenant=spend.tenant)
    return EncodedQuery(vector=vector)


def seeing(mode: Mode, vectors: EncodedQuery | None) -> Mode:
    """The mode that a question can be searched by: as asked, or by words where its vector is not there."""
    return mode if vectors is None or vectors.vector.any() else "bm25"


def unseen(mode: Mode, vectors: EncodedQuery | None) -> bool:
    """Whether passages that share no word with the question would be found, were its vector there."""
    return mode not in ("bm25", "bm25>dense") and seeing(mode, vectors) != mode


async def unpaid(embedder: Embedder, text: str, tenant: str) -> Sequence[Call]:
    """The calls that a question's vector still has to be bought by."""
    if not isinstance(embedder, PaidEmbedder):
        return ()
    return await to_thread.run_sync(lambda: embedder.missing([text], tenant=tenant))


def remembering(embedder: Embedder, settings: Settings) -> Embedder:
    """The same embedder; one that is paid keeps what it bought where compressors keep theirs. Blocking."""
    if isinstance(embedder, OpenAIEmbedder):
        return embedder.keeping(make_memory(settings), settings.credentials(PROVIDER).base_url)
    return embedder
