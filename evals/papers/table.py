"""Every suite by its name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from evals.papers.briefcontext.conflicts import Conflicts
from evals.papers.briefcontext.distractors import Distractors
from evals.papers.briefcontext.position import Position
from evals.papers.briefcontext.preflight import Preflight
from evals.papers.doubling.ladders import ByPassages, Curve
from evals.papers.suite import Suite

_ALL: tuple[Suite, ...] = (
    # BriefContext
    Position(),
    Distractors(),
    Preflight(),
    Conflicts(),
    # Adaptive RAG
    ByPassages(),
    Curve(),
)
SUITES: Mapping[str, Suite] = MappingProxyType({suite.name: suite for suite in _ALL})
