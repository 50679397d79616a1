"""The configured retriever: encoder, re-ranker, and what counts as one work."""

from __future__ import annotations

from pathlib import Path

from anyio import to_thread

from orchestrator.embedding.questions import remembering
from orchestrator.models import Models
from orchestrator.reranking import make_reranker
from orchestrator.settings import Settings
from posology.errors import BadFile, ConfigurationError
from posology.index.expansion import Abbreviations, Expander, Headings, Several
from posology.index.retriever import Retriever
from posology.index.store import Index


async def make_retriever(
    settings: Settings, models: Models, index: Index, *, reranked: bool = True
) -> Retriever:
    """What finds passages in an index.

    Args:
        settings: say what puts passages in order, and what counts once.
        models: have the encoder.
        index: to search.
        reranked: whether the configured re-ranker orders what is found; without it the first stage does.

    Raises:
        EmbedderUnavailable: the encoder's files cannot be loaded.
        ModelUnavailable: those of the re-ranker cannot.
        ConfigurationError: there is no such re-ranker or expander, or it needs what is not there.
        IndexMismatch: another encoder made the index.
    """
    reranker = await to_thread.run_sync(make_reranker, settings, index) if reranked else None
    encoder = await to_thread.run_sync(lambda: remembering(models.embedder(), settings))
    expander = await to_thread.run_sync(make_expander, settings)
    return Retriever(index, encoder, reranker, fold=settings.fold, expander=expander)


def make_expander(settings: Settings) -> Expander | None:
    """What gives other words for a question's, as ``POSOLOGY_EXPAND`` says; ``None`` where it is not set. Blocking.

    Raises:
        ConfigurationError: there is no such expander, or its file cannot be read.
    """
    found: list[Expander] = []
    for name in filter(None, (settings.expand or "").split(",")):
        kind, _, file = (part.strip() for part in name.partition(":"))
        if kind == "abbreviations" and not file:
            found.append(Abbreviations())
        elif kind == "mesh" and file:
            from posology.corpus.mesh import read_terms

            try:
                found.append(Headings(read_terms(Path(file))))
            except BadFile as error:
                raise ConfigurationError(f"POSOLOGY_EXPAND: {error}") from error
        else:
            raise ConfigurationError(
                f"POSOLOGY_EXPAND: no {name.strip()!r}: write abbreviations, or mesh:FILE, or both"
            )
    return Several(found) if found else None
