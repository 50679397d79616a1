"""Addresses of services, and which of them are this machine's."""

from __future__ import annotations

import socket
from ipaddress import IPv6Address, ip_address
from urllib.parse import urlsplit


def is_loopback(url: str) -> bool:
    """Whether a URL's host is this machine, by name or address; ``False`` for what is not a URL.

    That is ``localhost`` and the names below it, 127.0.0.0/8 in every notation, ``::1``, and the unspecified addresses,
    which a connection takes for these.
    """
    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return False
    if is_own_host(host):
        return True
    try:
        address = ip_address(host)
    except ValueError:
        return _is_short_loopback(host)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback or address.is_unspecified


def is_own_host(host: str) -> bool:
    """Whether a name or address, without its port, is of this machine: ``localhost``, a name below it, or an address."""
    host = host.rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_address(url: str) -> bool:
    """Whether a URL has a host without white space and, if it names a port, a number."""
    try:
        parts = urlsplit(url)
        # reading the port checks it
        return parts.port != 0 and [parts.hostname] == (parts.hostname or "").split()
    except ValueError:
        return False


def _is_short_loopback(host: str) -> bool:
    """Whether a host is an address of this machine in a notation of the C library, such as 127.1."""
    # digits and dots alone: what it takes besides them is no host of a URL
    if not host or not set(host) <= set("0123456789abcdefx."):
        return False
    try:
        address = ip_address(socket.inet_aton(host))
    except OSError:
        return False
    return address.is_loopback or address.is_unspecified
