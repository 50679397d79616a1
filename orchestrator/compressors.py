"""Compressors by name, made from what is configured."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.settings import Settings
from orchestrator.settings import models as named_models
from posology.errors import ConfigurationError, InvalidQuery
from posology.seams import Compressor, Rewriter
from strategies.compression import COMPRESSORS, PROMPTS, TOPS, known, make
from strategies.compression.cascade import parse as parse_cascade
from strategies.compression.parts import Parts

if TYPE_CHECKING:
    from orchestrator.models import Models
    from posology.index.store import Index
    from posology.seams import Memory
    from strategies.compression.self_information.annotator import Scorer

#: the file in the data folder
_MEMORY = "memory.sqlite"


def check(name: str | None, *, field: str = "compressor") -> None:
    """Check that a compressor exists; ``None`` is the configured one.

    Raises:
        InvalidQuery: the name is unknown.
    """
    if name is not None and not known(name):
        raise InvalidQuery(f"unknown compressor {name!r}: choose {_listed()}", field=field)


class Compressors:
    """The compressors of a process: each is built once, on first use. Threads may share it.

    Cascades share their parts for any shares in their names, so that names from outside do not load one model after
    the other.

    Args:
        default: name of the configured compressor.
        parts: models and files to build from; ``None``: none.

    Raises:
        ConfigurationError: the default is unknown.
    """

    def __init__(self, default: str, parts: Parts | None = None) -> None:
        if not known(default):
            raise ConfigurationError(
                f"unknown compressor {default!r}: set POSOLOGY_COMPRESSOR to {_listed()}"
            )
        self.default = default
        self._parts = parts or Parts()
        self._made: dict[str, Compressor | Rewriter] = {}
        self._lock = threading.Lock()

    def __call__(self, name: str | None) -> Compressor | Rewriter:
        """Return the compressor of a name, or the configured one for ``None``. Blocking: it may load a model.

        Raises:
            InvalidQuery: the name is unknown.
            ConfigurationError: its model or another part is missing, or does not load.
        """
        name = name or self.default
        check(name)
        with self._lock:
            return make(name, single=self._single)

    def _single(self, name: str) -> Compressor | Rewriter:
        if name not in self._made:
            self._made[name] = COMPRESSORS[name](self._parts)
        return self._made[name]

    def version(self, name: str | None) -> str:
        """Return a compressor's name, the version of a trained head, and its configured model; loads no model."""
        name = name or self.default
        last, made_of = name, set()
        while (cascade := parse_cascade(last)) is not None:
            made_of.add(TOPS[cascade.top])
            last = cascade.rest
        learned = []
        if "pruner" in made_of | {last}:
            from strategies.compression.late.head import Head

            learned = [Head.packaged().version]
        model = self._parts.models.get(last)
        return " ".join([name, *learned, *([model] if model is not None else [])])

    def prompts(self, name: str | None) -> tuple[str, ...]:
        """Return the names of a rewriter's prompts, also within a cascade; empty for other compressors."""
        last = name or self.default
        while (cascade := parse_cascade(last)) is not None:
            last = cascade.rest
        return PROMPTS.get(last, ())


def make_compressors(
    settings: Settings, models: Models | None = None, index: Index | None = None
) -> Compressors:
    """Build the compressors that the settings configure.

    Args:
        settings: name the default compressor and the models.
        models: has the encoder; ``None``: compressors that need one load it.
        index: has a language model that was learned from it; ``None``: there is no index.

    Raises:
        ConfigurationError: the configured compressor is unknown.
    """
    from orchestrator.models import Models

    own = models or Models(settings.embedder, settings.embedding)

    parts = Parts(
        embedder=own.embedder,
        models=named_models(settings.compressor_model),
        memory=lambda: make_memory(settings),
        scorer=_scorer(settings, index),
    )
    return Compressors(settings.compressor, parts)


def memory_file(settings: Settings) -> Path:
    """Return the file that keeps what compressors compute: as configured, or in the data folder."""
    return Path(settings.memory or Path(settings.home) / _MEMORY)


def make_memory(settings: Settings) -> Memory:
    """Open the file that keeps what compressors compute: as configured, or in the data folder.

    Raises:
        ConfigurationError: it cannot be opened.
    """
    from posology.store.memory import SqliteMemory

    place = memory_file(settings)
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"cannot create {place.parent} ({error.strerror}): set POSOLOGY_MEMORY to a writable file"
        ) from error
    return SqliteMemory(place)


def _scorer(settings: Settings, index: Index | None) -> Callable[[], Scorer] | None:
    """Return the loader of the language model that annotated the index's phrases; ``None``: they are not annotated."""
    if index is None or index.meta.annotator is None:
        return None

    def load() -> Scorer:
        from posology.index.learned import read_learned
        from strategies.compression.self_information.annotator import NgramScorer

        if settings.self_information is not None:
            from strategies.compression.self_information.causal import load

            return load(settings.self_information)
        kept = read_learned(index.connection)
        if kept is None:
            raise ConfigurationError(
                f"the index was annotated by {index.meta.annotator}: set POSOLOGY_SELF_INFORMATION to its model"
            )
        scorer = NgramScorer()
        scorer.restore(kept.data)
        return scorer

    return load


def make_compressor(settings: Settings) -> Compressor:
    """Build the configured compressor, which must not call a model.

    Raises:
        ConfigurationError: it is unknown, calls a model, or one of its parts is missing.
    """
    made = make_compressors(settings)(None)
    if isinstance(made, Rewriter):
        raise ConfigurationError(
            f"compressor {made.name} calls a model for every context, so shares cannot be learned with it: set "
            "POSOLOGY_COMPRESSOR to another"
        )
    return made


def _listed() -> str:
    tops = " or ".join(f"{top}+" for top in TOPS)
    return f"one of {', '.join(COMPRESSORS)}, or {tops} and one of them"
