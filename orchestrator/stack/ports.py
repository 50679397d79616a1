"""Free TCP ports."""

from __future__ import annotations

import secrets
import socket
from contextlib import closing

from posology.errors import ConfigurationError

#: below the ports of outgoing connections: a client that reconnects to a stopped server's port in that range can
#: connect to itself and block the port
_PORTS = range(10_240, 32_768)


def free_port(host: str) -> int:
    """Return a free port.

    Raises:
        ConfigurationError: none was found.
    """
    for _ in range(200):
        port = secrets.choice(_PORTS)
        if port_is_free(host, port):
            return port
    raise ConfigurationError(f"no free port on {host}")


def port_is_free(host: str, port: int) -> bool:
    """Return whether a server could listen on the port now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        # as servers do: closing connections do not matter
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
