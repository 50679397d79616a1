"""TCP ports for servers of our own."""

from __future__ import annotations

import secrets
import socket
from contextlib import closing

from posology.errors import ConfigurationError

#: below the ports that systems give to outgoing connections: a client that connects again and again to
#: a stopped server's port there can meet itself, and keep the server from coming back
_PORTS = range(10_240, 32_768)


def free_port(host: str) -> int:
    """A port that nobody listens on now."""
    for _ in range(200):
        port = secrets.choice(_PORTS)
        if port_is_free(host, port):
            return port
    raise ConfigurationError(f"no port of {host} is free")


def port_is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        # as servers do: connections that are still closing are no obstacle
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
