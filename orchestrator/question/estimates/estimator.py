"""The estimator that settings and connections make."""

from __future__ import annotations

from orchestrator.compressors import Choose, make_compressors
from orchestrator.connections import Connections
from orchestrator.question.estimates.costs import Estimator
from orchestrator.question.estimates.savings import Machine
from orchestrator.question.estimates.tokens import Counting, packaged_counter
from orchestrator.question.estimates.typical import Typical
from orchestrator.settings import Settings


def make_estimator(
    settings: Settings, connections: Connections, choose: Choose | None = None
) -> Estimator:
    """An estimator by the prices and bounds that calls are reserved by.

    Args:
        settings: say what providers are sent.
        connections: have the prices and bounds.
        choose: gives compressors; ``None``: as configured.
    """
    counting = Counting(packaged_counter(), native_schema=settings.native_schema)
    return Estimator(
        prices=connections.prices,
        bound=connections.bound,
        counting=counting,
        typical=Typical(),
        choose=choose or make_compressors(settings),
        machine=make_machine(settings),
    )


def make_machine(settings: Settings) -> Machine | None:
    """The machine that compresses; ``None``: its time is not counted."""
    if settings.machine_dollars_per_hour is None:
        return None
    return Machine(
        dollars_per_hour=settings.machine_dollars_per_hour,
        utilisation=settings.machine_utilisation,
    )
