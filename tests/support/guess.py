"""Token counts by length, for plans of calls."""

from __future__ import annotations

from orchestrator.question.estimates.tokens import Counting
from orchestrator.question.estimates.typical import Guessing, Typical
from posology.testing.prices import by_bytes
from posology.text.tokens import approximate

GUESS = Guessing(counting=Counting(approximate), typical=Typical(), bound=by_bytes)
