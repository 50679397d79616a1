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
from strategies.compression import COMPRESSORS, TOPS, known, make
from strategies.compression.cascade import parse as parse_cascade
from strategies.compression.late import pruner
from strategies.compression.late.head import Head
from strategies.compression.parts import Parts

if TYPE_CHECKING:
    from orchestrator.models import Models
    from posology.index.store import Index
    from posology.seams import Memory
    from strategies.compression.self_information.annotator import Scorer

#: the file in the data folder
_MEMORY = "memory.sqlite"


def check(name: str | None, *, field: str = "compressor") -> None:
    """Refuse a name that no compressor has; ``None`` is the configured one's.

    Raises:
        InvalidQuery: listing those that there are.
    """
    if name is not None and not known(name):
        raise InvalidQuery(f"no compressor {name!r}: choose {_listed()}", field=field)


class Compressors:
    """The compressors of a process: each is made once, when it is first asked for. It may be shared by threads.

    Cascades share their parts, whatever shares of sentences their names hold: else names from outside would load
    one model after the other.

    Args:
        default: name of the configured one.
        parts: what they are made from.

    Raises:
        ConfigurationError: there is no such compressor.
    """

    def __init__(self, default: str, parts: Parts | None = None) -> None:
        if not known(default):
            raise ConfigurationError(
                f"no compressor {default!r}: set POSOLOGY_COMPRESSOR to {_listed()}"
            )
        self.default = default
        self._parts = parts or Parts()
        self._made: dict[str, Compressor | Rewriter] = {}
        self._lock = threading.Lock()

    def __call__(self, name: str | None) -> Compressor | Rewriter:
        """Return the compressor of a name, or the configured one for ``None``. Blocking: it may load a model.

        Raises:
            InvalidQuery: there is no such compressor.
            ConfigurationError: what it is made from is missing, or does not load.
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
        """Which one it is, with its model where one is set, and with what the pruner has learned; no model is loaded."""
        name = name or self.default
        last, made_of = name, set()
        while (cascade := parse_cascade(last)) is not None:
            made_of.add(TOPS[cascade.top])
            last = cascade.rest
        learned = [Head.packaged().version] if pruner.NAME in made_of | {last} else []
        model = self._parts.models.get(last)
        return " ".join([name, *learned, *([model] if model is not None else [])])


def make_compressors(
    settings: Settings, models: Models | None = None, index: Index | None = None
) -> Compressors:
    """The compressors that settings make.

    Args:
        settings: say which is meant where nobody says, and which models they run.
        models: have the encoder; ``None``: one is loaded for those that need it.
        index: has the language model that it learned; ``None``: there is none at hand.

    Raises:
        ConfigurationError: there is no such compressor.
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


def make_memory(settings: Settings) -> Memory:
    """What compressors compute for good, in a file: as configured, or in the data folder.

    Raises:
        ConfigurationError: it cannot be opened.
    """
    from posology.store.memory import SqliteMemory

    place = Path(settings.memory or Path(settings.home) / _MEMORY)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"{place.parent} cannot be made ({error.strerror}): set POSOLOGY_MEMORY to a file that can be written"
        ) from error
    return SqliteMemory(place)


def _scorer(settings: Settings, index: Index | None) -> Callable[[], Scorer] | None:
    """Loads the language model that the index's phrases were annotated by; ``None``: nothing annotated them."""
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
                f"{index.meta.annotator} annotated the index: name its model, POSOLOGY_SELF_INFORMATION=NAME"
            )
        scorer = NgramScorer()
        scorer.restore(kept.data)
        return scorer

    return load


def make_compressor(settings: Settings) -> Compressor:
    """The configured compressor, where it spends nothing.

    Raises:
        ConfigurationError: there is no such compressor, it asks a model, or what it is made from is missing.
    """
    made = make_compressors(settings)(None)
    if isinstance(made, Rewriter):
        raise ConfigurationError(
            f"{made.name} asks a model for every context, and shares cannot be learned from it: set "
            "POSOLOGY_COMPRESSOR to another"
        )
    return made


def _listed() -> str:
    tops = " or ".join(f"{top}+" for top in TOPS)
    return f"one of {', '.join(COMPRESSORS)}, or {tops} and one of them"
