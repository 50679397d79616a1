"""A simulated model for experiments, with the published weaknesses of language models.

It stands on gold labels, and its parameters are fitted to published figures (``published.json``, each with its source)
by ``python -m evals.simulation --write``. Only experiments, ``posology eval`` and tests may import it.
"""

from orchestrator.evaluation.simulation.model import (
    MISREAD,
    SIMULATED,
    Answers,
    Gold,
    SimulatedModel,
    is_right,
)
from orchestrator.evaluation.simulation.profiles import Curve, Profile, Refusals, profiles

__all__ = [
    "MISREAD",
    "SIMULATED",
    "Answers",
    "Curve",
    "Gold",
    "Profile",
    "Refusals",
    "SimulatedModel",
    "is_right",
    "profiles",
]
