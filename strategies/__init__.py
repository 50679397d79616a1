"""Strategies: how a question is answered. A new one is a file here and a line in ``STRATEGIES``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from posology.seams import Strategy
from strategies import briefcontext, direct

#: name → how to make it
STRATEGIES: Mapping[str, Callable[..., Strategy]] = MappingProxyType(
    {direct.NAME: direct.Direct, briefcontext.NAME: briefcontext.BriefContext}
)
