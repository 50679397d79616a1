"""The Lua scripts of jobs: files under ``lua``, each with the same beginning."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from posology.budget.ledger import scripts as money
from posology.store import keys
from posology.store.lua import lua
from posology.types.jobs import OVER, TRANSITIONS

#: upper bounds of the latency histogram, seconds
BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300)

#: messages that wait for one endpoint of webhooks, and its failures that are kept
MESSAGES, FAILURES = 4_000, 500


def _set(names: Iterable[str]) -> str:
    return "{" + ", ".join(f"{name} = true" for name in sorted(names)) + "}"


def _constants() -> str:
    """Render the constants that Python and the scripts share as Lua."""
    allowed = ", ".join(f"{old} = {_set(new)}" for old, new in TRANSITIONS.items())
    return (
        f"local ALLOWED = {{{allowed}}}\n"
        f"local OVER = {_set(OVER)}\n"
        f"local BUCKETS = {{{', '.join(map(str, BUCKETS))}}}\n"
        f"local MESSAGES, FAILURES, DUE = {MESSAGES}, {FAILURES}, '{keys.DUE}'\n"
    )


@cache
def source(name: str) -> str:
    """The whole text of a script."""
    return money.library() + _constants() + lua("orchestrator.jobs", "_lib", name)
