"""Addresses that webhooks may call: public ones, and networks that the operator allows."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from functools import partial
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
)
from urllib.parse import urlsplit

import anyio
from anyio import to_thread
from anyio.lowlevel import RunVar

from posology.errors import InvalidQuery
from posology.network.hosts import is_own_host

#: characters of an address
MAX_URL = 2_000
#: the rule of addresses without TLS
PLAIN = "http:// is delivered only to hosts whose addresses are all in POSOLOGY_WEBHOOK_NETWORKS"
#: seconds in which a name must be found
_LOOKUP = 10.0
#: names that are looked up at the same time: as many as messages are sent
_AT_ONCE = 128
_LOOKUPS: RunVar[anyio.CapacityLimiter] = RunVar("lookups of webhooks")

Address = IPv4Address | IPv6Address
Networks = Sequence[IPv4Network | IPv6Network]


class TargetRefused(Exception):
    """An address that must not be called, or cannot be found. One text for both: it must not map a network.

    Args:
        secure: whether TLS is used.
    """

    def __init__(self, *, secure: bool = True) -> None:
        public = "the host of the address has no public address that can be found"
        super().__init__(public if secure else PLAIN)


async def check_url(url: str, allowed: Networks) -> None:
    """Check the address of an endpoint before it is stored, so that none is stored to which nothing is ever delivered.

    A name is resolved only for ``http``: with ``https`` it may get a public address later.

    Args:
        url: the address.
        allowed: networks besides the public ones.

    Raises:
        InvalidQuery: it is none, has a user or fragment, needs https, or is itself a private address.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _invalid("it cannot be read") from None
    if len(url) > MAX_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise _invalid(f"it must have at most {MAX_URL} printable ASCII characters without spaces")
    if parts.scheme not in ("https", "http") or not host:
        raise _invalid("write https://HOST/PATH")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise _invalid("it must have no user, password or fragment")
    if parts.scheme == "https":
        if (address := _written(host)) is not None and not may_call(address, allowed):
            raise _invalid("its host is not a public address")
        return
    try:
        if not allowed:
            raise TargetRefused(secure=False)
        with anyio.fail_after(_LOOKUP):
            await resolve(host, port or 80, allowed, secure=False)
    except (TargetRefused, TimeoutError):
        raise _invalid(f"{PLAIN}, and this one must begin with https://") from None


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
    look = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    try:
        # not the event loop's own few threads: tenants' names that are slow must delay no call of another
        found = await to_thread.run_sync(look, abandon_on_cancel=True, limiter=_lookups())
    except (OSError, UnicodeError):
        raise TargetRefused(secure=secure) from None
    # an IPv6 address of the link has its interface behind a %
    texts = list(dict.fromkeys(str(one[4][0]) for one in found))
    addresses = [_literal(text) for text in texts]
    if not addresses or not all(
        one is not None and may_call(one, allowed, secure=secure) for one in addresses
    ):
        raise TargetRefused(secure=secure)
    return texts


def _lookups() -> anyio.CapacityLimiter:
    try:
        return _LOOKUPS.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(_AT_ONCE)
        _LOOKUPS.set(limiter)
        return limiter


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


def _written(host: str) -> Address | None:
    """Return the address that a host is in any form, ``2130706433`` and ``localhost`` among them; ``None``: it is a name."""
    if (literal := _literal(host)) is not None:
        return literal
    if is_own_host(host):
        return IPv4Address("127.0.0.1")
    try:
        return IPv4Address(socket.inet_aton(host))
    except OSError:
        return None


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _invalid(why: str) -> InvalidQuery:
    return InvalidQuery(f"url: this cannot be the address of an endpoint: {why}", field="url")
