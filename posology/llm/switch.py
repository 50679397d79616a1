"""A switch that forbids calls to remote providers: off in tests, on everywhere else.

It is global on purpose: it holds in every thread and event loop of the process.
"""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from posology.errors import ConfigurationError

_allowed = True


def remote_providers_allowed() -> bool:
    """Whether adapters may send to hosts other than this machine."""
    return _allowed


def allow_remote_providers(*, allowed: bool) -> None:
    """Set the switch; `posology.testing.forbid_remote_providers` sets it for a while."""
    global _allowed  # noqa: PLW0603 - one switch a process is the point
    _allowed = allowed


def is_loopback(base_url: str) -> bool:
    """Whether a URL's host is this machine, by name or address; ``False`` for what is not a URL."""
    try:
        host = urlsplit(base_url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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
