"""Every suite by its name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from evals.papers.briefcontext.conflicts import Conflicts
from evals.papers.briefcontext.distractors import Distractors
from evals.papers.briefcontext.position import Position
from evals.papers.briefcontext.preflight import Preflight
from evals.papers.doubling.ladders import ByPassages, Curve
from evals.papers.leancontext.tables import Cascades, Numbers, States
from evals.papers.provence.mixed import Length, Place
from evals.papers.provence.needles import Needles
from evals.papers.provence.number import Number
from evals.papers.provence.pruning import Pruning
from evals.papers.provence.ranking import Ranking
from evals.papers.suite import Suite
from evals.papers.tcra.answers import Passages
from evals.papers.tcra.rate import Rate
from evals.papers.tcra.stages import Stages
from evals.papers.tcra.words import Removal

_ALL: tuple[Suite, ...] = (
    # BriefContext
    Position(),
    Distractors(),
    Preflight(),
    Conflicts(),
    # Adaptive RAG
    ByPassages(),
    Curve(),
    # LeanContext
    Numbers(),
    Cascades(),
    States(),
    # TCRA-LLM
    Passages(),
    Removal(),
    Stages(),
    Rate(),
    # Provence
    Pruning(),
    Number(),
    Place(),
    Length(),
    Needles(),
    Ranking(),
)
SUITES: Mapping[str, Suite] = MappingProxyType({suite.name: suite for suite in _ALL})
