"""Keeps a test suite away from providers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from posology.llm.switch import allow_remote_providers, remote_providers_allowed


@contextmanager
def forbid_remote_providers() -> Iterator[None]:
    """Within it no adapter of this process sends to a host other than this machine.

    A call that would is refused with a :class:`~posology.errors.ConfigurationError`.
    """
    before = remote_providers_allowed()
    allow_remote_providers(allowed=False)
    try:
        yield
    finally:
        allow_remote_providers(allowed=before)
