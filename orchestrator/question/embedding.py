"""A question's vector from a paid embedder: bought before retrieval, within the caller's budget."""

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
    """Payment for a question's vector."""

    #: tenant that pays
    tenant: str
    #: returns the ``Complete`` of a model; ``None``: nothing is spent, only stored vectors are used
    complete: Callable[[str], Complete] | None = None
    #: whether passages are found by words alone if nothing is spent and no vector is stored
    blind: bool = False


async def encoded(embedder: Embedder, text: str, spend: Spend | None) -> EncodedQuery | None:
    """Return a question's vector from a paid embedder; ``None``: the embedder computes it itself.

    Args:
        embedder: the index's embedder.
        text: text of the question.
        spend: pays; ``None``: a paid embedder refuses when it is called.

    Returns:
        The vector; zeros for a search by words alone, see :func:`seeing`.

    Raises:
        BudgetError: the tenant's limits do not allow the call, or not yet.
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
    """Return the mode of a search: as requested, or by words if there is no vector."""
    return mode if vectors is None or vectors.vector.any() else "bm25"


def unseen(mode: Mode, vectors: EncodedQuery | None) -> bool:
    """Return whether a vector would find passages that share no word with the question."""
    return mode not in ("bm25", "bm25>dense") and seeing(mode, vectors) != mode


async def unpaid(embedder: Embedder, text: str, tenant: str) -> Sequence[Call]:
    """Return the calls that buy a question's vector, unless it is stored."""
    if not isinstance(embedder, PaidEmbedder):
        return ()
    return await to_thread.run_sync(lambda: embedder.missing([text], tenant=tenant))


def remembering(embedder: Embedder, settings: Settings) -> Embedder:
    """Have a paid embedder store its vectors in the compressors' file. Blocking."""
    if isinstance(embedder, OpenAIEmbedder):
        return embedder.keeping(make_memory(settings), settings.credentials(PROVIDER).base_url)
    return embedder
