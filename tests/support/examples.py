"""How many examples a property test tries where the profile's own number is too small or takes too long."""

from __future__ import annotations

from hypothesis import settings

#: how many times as many `make fuzz` tries
FUZZ = 20


def examples(n: int) -> settings:
    """Settings of ``n`` examples, and of 20 times as many in ``make fuzz``."""
    fuzz = settings.get_current_profile_name() == "fuzz"
    return settings(max_examples=n * FUZZ if fuzz else n)
