"""Dependencies of compressors, provided by the composition root."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from posology.seams import Embedder, Memory

if TYPE_CHECKING:
    from strategies.compression.self_information.annotator import Scorer


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """Dependencies that a compressor may use; each is loaded on first use.

    A maker whose dependency is missing raises :class:`~posology.errors.ConfigurationError` with the setting's name.
    """

    #: embedder of the index; ``None``: unavailable
    embedder: Callable[[], Embedder] | None = None
    #: hub names or folders of compressors' models, by the compressor's name
    models: Mapping[str, str] = field(default_factory=dict)
    #: cache of what is computed per sentence; ``None``: a cache in the compressor itself
    memory: Callable[[], Memory] | None = None
    #: trained language model that annotated the index's phrases; ``None``: unavailable
    scorer: Callable[[], Scorer] | None = None
