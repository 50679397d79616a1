"""Addresses that webhooks may call: public ones, and networks that the operator allows."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
)
from urllib.parse import urlsplit

import anyio

from posology.errors import InvalidQuery

#: characters of an address
MAX_URL = 2_000

Address = IPv4Address | IPv6Address
Networks = Sequence[IPv4Network | IPv6Network]


class TargetRefused(Exception):
    """An address that must not be called, or cannot be found. One text for both: it must not map a network."""

    def __init__(self) -> None:
        super().__init__("the host of the address has no public address that can be found")


def check_url(url: str, allowed: Networks) -> None:
    """Check the address of an endpoint before it is stored; names are resolved when a message is sent.

    Args:
        url: the address.
        allowed: networks besides the public ones.

    Raises:
        InvalidQuery: it is none, has a user or fragment, needs https, or is itself a private address.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise _invalid("it cannot be read") from None
    if len(url) > MAX_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise _invalid(f"it must have at most {MAX_URL} printable ASCII characters without spaces")
    if parts.scheme not in ("https", "http") or not host:
        raise _invalid("write https://HOST/PATH")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise _invalid("it must have no user, password or fragment")
    if parts.scheme == "http" and not allowed:
        raise _invalid("it must begin with https://")
    literal = _literal(host)
    if literal is not None and not may_call(literal, allowed, secure=parts.scheme == "https"):
        raise _invalid("its host is not a public address")


async def resolve(host: str, port: int, allowed: Networks, *, secure: bool) -> list[str]:
    """Return the addresses of a host, after each of them was checked.

    Args:
        host: name or address.
        port: of the service.
        allowed: networks besides the public ones.
        secure: whether TLS is used; without it, only ``allowed`` is called.

    Raises:
        TargetRefused: the host has no address, or one that must not be called.
    """
    try:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise TargetRefused from None
    # an IPv6 address of the link has its interface behind a %
    texts = list(dict.fromkeys(str(one[4][0]) for one in found))
    addresses = [_literal(text) for text in texts]
    if not addresses or not all(
        one is not None and may_call(one, allowed, secure=secure) for one in addresses
    ):
        raise TargetRefused
    return texts


def may_call(address: Address, allowed: Networks, *, secure: bool = True) -> bool:
    """Return whether an address may be called: it is public and TLS is used, or its network is allowed."""
    if any(address in network for network in allowed):
        return True
    # IPv6 addresses that stand for IPv4 ones are reserved, private or of 6to4
    relayed = isinstance(address, IPv6Address) and (address.sixtofour or address.is_site_local)
    return secure and not (
        relayed
        or not address.is_global
        or address.is_private
        or address.is_reserved
        or address.is_multicast
    )


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _invalid(why: str) -> InvalidQuery:
    return InvalidQuery(f"url: this cannot be the address of an endpoint: {why}", field="url")
