"""What a call leaves in memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable


def held_after(call: Callable[[], object]) -> int:
    """Return the bytes that Python allocated in a call and still holds after it."""
    tracemalloc.start()
    try:
        call()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return held
