"""Waiting for other processes, whose ends no event tells."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def until(done: Callable[[], Any], seconds: float = 90.0) -> Any:
    """What a function returns, once that is true; fails if it takes too long."""
    deadline = time.monotonic() + seconds
    while not (value := done()):
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.02)
    return value
