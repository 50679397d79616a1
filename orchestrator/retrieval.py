"""The configured retriever: encoder, re-ranker, and what counts as one work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from anyio import to_thread

from orchestrator.models import Models
from orchestrator.question.embedding import remembering
from orchestrator.settings import Settings
from posology.errors import BadFile, ConfigurationError
from posology.index.embedders.options import Options
from posology.index.search.expansion import Abbreviations, Expander, Headings, Several
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.seams import Reranker


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


_HOW = (
    "set POSOLOGY_RERANKER to medcpt, pruner, nsp:MODEL or provence:MODEL, where MODEL is a folder or a hub name, "
    "which medcpt:MODEL may have, too"
)


def make_reranker(settings: Settings, index: Index) -> Reranker | None:
    """The re-ranker that ``POSOLOGY_RERANKER`` names; ``None`` where it names none. Blocking: it loads a model.

    Args:
        settings: name it: its kind, and after a colon its model where the kind has many.
        index: whose passages it is to score.

    Raises:
        ConfigurationError: there is no such re-ranker, it needs what the index has not, or its model does not
            load.
        DeviceUnavailable: an encoder's device (``POSOLOGY_EMBEDDER_DEVICE``) is not there.
    """
    if settings.reranker is None:
        return None
    kind, _, model = settings.reranker.partition(":")
    if kind not in RERANKERS:
        raise ConfigurationError(f"no re-ranker {settings.reranker!r}: {_HOW}")
    return RERANKERS[kind](model.strip(), index, settings.embedding)


def _medcpt(model: str, index: Index, options: Options) -> Reranker:  # noqa: ARG001 - it reads texts alone
    from posology.index.rerankers.medcpt import load

    return load(model, options)


def _nsp(model: str, index: Index, options: Options) -> Reranker:  # noqa: ARG001 - it reads texts alone
    from posology.index.rerankers.nsp import load

    return load(_named(model, "nsp"))


def _provence(model: str, index: Index, options: Options) -> Reranker:  # noqa: ARG001 - it reads texts alone
    from strategies.compression.parts import Parts
    from strategies.compression.provence import NAME, make_reranker

    return make_reranker(Parts(models={NAME: _named(model, "provence")}))


def _pruner(model: str, index: Index, options: Options) -> Reranker:  # noqa: ARG001 - it runs no encoder
    from strategies.compression.late.codec import LateCodec
    from strategies.compression.late.pruner import LateReranker

    if model:
        raise ConfigurationError(f"the pruner comes with its own model, not {model!r}: {_HOW}")
    # nothing is loaded for an index that has none
    if index.meta.codec is None or index.meta.codec != LateCodec.packaged().name:
        kept = f"those of {index.meta.codec}" if index.meta.codec else "none"
        raise ConfigurationError(
            f"the pruner reads token codes of its own codec, and the index has {kept}: "
            "ingest anew with POSOLOGY_TOKEN_CODES on, or choose another re-ranker (POSOLOGY_RERANKER)"
        )
    return LateReranker()


def _named(model: str, kind: str) -> str:
    if not model:
        raise ConfigurationError(f"the re-ranker {kind} needs a model: {_HOW}")
    return model


#: kind → how it is made from its model's name, an index, and how encoders compute
RERANKERS: Mapping[str, Callable[[str, Index, Options], Reranker]] = MappingProxyType(
    {"medcpt": _medcpt, "nsp": _nsp, "provence": _provence, "pruner": _pruner}
)
