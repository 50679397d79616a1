"""Text to vectors. Importing this package loads no model and no torch; :func:`load` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias, overload

from posology.errors import EmbedderUnavailable
from posology.hub import DEFAULT, require
from posology.index.embedders.options import Options, Precision

if TYPE_CHECKING:
    from posology.index.embedders.card import Loaded
    from posology.index.embedders.projection import Projection
    from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder
    from posology.seams import Embedder

#: makes an embedder from the part of its name after the colon
Loader: TypeAlias = Callable[[str, Options], "Embedder"]


def _medcpt(models: str, options: Options) -> Embedder:
    require("models", "medcpt")
    from posology.index.embedders.medcpt import load as load_medcpt

    return load_medcpt(models, options)


def _openai(model: str, options: Options) -> Embedder:  # noqa: ARG001 - the provider computes
    from posology.index.embedders.paid.embedder import load as load_openai

    return load_openai(model)


#: loaders by kind, the part of a name before the first colon; names without a kind are sentence-transformers models
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
    name: str | Path | None, *, precision: Precision = "auto", options: Options | None = None
) -> Embedder: ...
def load(
    name: str | Path | None = None, *, precision: Precision = "auto", options: Options | None = None
) -> Embedder:
    """Load an embedder. Blocking, never over the network.

    Args:
        name: ``minilm`` (the default: all-MiniLM-L6-v2, installed with Posology), the folder of a
            sentence-transformers model, a name on the Hugging Face hub whose files are in the
            local cache, or ``KIND:NAME`` with a kind of :data:`LOADERS`; ``medcpt`` alone is as published.
        precision: arithmetic of the forward passes, if there are no options.
        options: computation options; vectors of all options can be mixed in one index. ``None``: the default embedder in
            integers; others by torch, in bfloat16 on CPUs with hardware support, else in float32.

    Raises:
        EmbedderUnavailable: the files are missing, or not of that kind.
        ModelUnavailable: a package that runs it is missing.
    """
    given = options or Options(precision=precision)
    wanted = str(name or DEFAULT)
    kind, _, rest = wanted.partition(":")
    # the loader handles a kind without a name: medcpt is the published model
    if kind in LOADERS:
        return LOADERS[kind](rest, given)
    if rest and not Path(wanted).exists():
        kinds = ", ".join(f"{known}:NAME" for known in LOADERS)
        raise EmbedderUnavailable(
            f"unknown embedder {wanted!r}: give a name, a folder, or {kinds}", embedder=wanted
        )
    return load_sentence_transformer(wanted, given)


def load_sentence_transformer(
    name: str = DEFAULT, options: Options | None = None
) -> SentenceTransformerEmbedder:
    """Load a sentence-transformers embedder, which also returns token vectors. Blocking.

    Args:
        name: as :func:`load` takes it, without a kind.
        options: computation options.

    Raises:
        EmbedderUnavailable: the files are missing, or not a sentence-transformers model.
        ModelUnavailable: a package that runs it is missing.
    """
    from posology.index.embedders.models import load_best, load_default, locate
    from posology.index.embedders.sentence_transformer import SentenceTransformerEmbedder

    given = options or Options()
    if name == DEFAULT:
        loaded = load_default(given)
    else:
        loaded = load_best(locate(name), embedder=name, options=given)
    return SentenceTransformerEmbedder(loaded, projection=_projection(loaded))


def _projection(loaded: Loaded) -> Projection | None:
    """Return the packaged projection, if the model has layers to read; ``None``: sentences are read alone, too."""
    from posology.index.embedders.projection import packaged

    return packaged() if loaded.forward.depth else None
