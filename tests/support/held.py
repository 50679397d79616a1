"""What a call leaves in memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable


def held_after(call: Callable[[], object]) -> int:
    """Return the bytes that Python's allocators hold more after a call than before it."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        call()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return after - before
