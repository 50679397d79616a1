"""A switch that forbids calls to remote providers: off in tests, on everywhere else.

It is global on purpose: it holds in every thread and event loop of the process.
"""

from __future__ import annotations

from posology.errors import ConfigurationError
from posology.network.hosts import is_loopback

_allowed = True


def remote_providers_allowed() -> bool:
    """Whether adapters may send to hosts other than this machine."""
    return _allowed


def allow_remote_providers(*, allowed: bool) -> None:
    """Set the switch; a suite of tests sets it for a while."""
    global _allowed  # noqa: PLW0603 - one switch a process is the point
    _allowed = allowed


def check(base_url: str) -> None:
    """Raise an error while the switch is off, unless the URL is of this machine.

    Raises:
        ConfigurationError: the switch is off and the URL leaves this machine.
    """
    if not _allowed and not is_loopback(base_url):
        raise ConfigurationError(
            "remote providers are disabled in this process, and the base URL is not of this machine: use a "
            "StubProvider or a ScriptedModel"
        )
