"""Every suite by its name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from evals.papers.briefcontext.position import Position
from evals.papers.suite import Suite

_ALL: tuple[Suite, ...] = (
    # BriefContext
    Position(),
)
SUITES: Mapping[str, Suite] = MappingProxyType({suite.name: suite for suite in _ALL})
