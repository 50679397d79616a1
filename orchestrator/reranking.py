"""The configured re-ranker: what puts retrieved passages in order before anything reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from orchestrator.settings import Settings
from posology.errors import ConfigurationError
from posology.index.embedders.options import Options
from posology.index.store import Index
from posology.seams import Reranker

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
