"""A full disk."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def full_disk() -> Iterator[Callable[[], None]]:
    """No file of this process may grow until the function is called, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))

    def free() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    try:
        yield free
    finally:
        free()
