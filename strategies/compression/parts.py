"""What compressors are made from, handed over by whoever composes the system."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from posology.seams import Embedder, Memory

if TYPE_CHECKING:
    from strategies.compression.self_information.annotator import Scorer


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """What a compressor may need: each is loaded when it is first asked for.

    A maker that misses one raises :class:`~posology.errors.ConfigurationError`, naming the setting.
    """

    #: the index's; ``None``: there is none at hand
    embedder: Callable[[], Embedder] | None = None
    #: hub names or folders of the models that compressors run, by the compressor's name
    models: Mapping[str, str] = field(default_factory=dict)
    #: what was computed of a sentence is kept there; ``None``: for as long as the compressor lives
    memory: Callable[[], Memory] | None = None
    #: the language model that the index's phrases were annotated by, with what it learned; ``None``: there is
    #: none at hand
    scorer: Callable[[], Scorer] | None = None
