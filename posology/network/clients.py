"""The maker of HTTP clients."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx2

from posology.errors import ConfigurationError
from posology.network.certificates import authorities
from posology.network.hosts import is_address
from posology.network.proxies import proxy_for


def http_client(
    address: str | None,
    *,
    transport: httpx2.AsyncBaseTransport | None = None,
    verify: ssl.SSLContext | None = None,
    **options: Any,
) -> httpx2.AsyncClient:
    """Return a connection pool for one service.

    Redirects are not followed: they would forward the question, and hide a wrong address. Proxies and certificates of the
    environment apply, except that no proxy stands before this machine. Certificates are read where TLS needs them.

    Args:
        address: the only service that is asked; ``None``: any, without a proxy, whatever the environment names.
        transport: for tests; ``None``: the network.
        verify: trusted authorities; ``None``: those of the environment, without an address the system's.
        options: others of the client.

    Raises:
        ConfigurationError: a variable for a proxy or for certificates cannot be used.
    """
    if transport is None:
        options |= _ways(address, verify)
    return httpx2.AsyncClient(
        transport=transport, follow_redirects=False, trust_env=False, **options
    )


def blocking_client(
    address: str,
    around: Callable[[httpx2.BaseTransport], httpx2.BaseTransport] = lambda inner: inner,
    **options: Any,
) -> httpx2.Client:
    """Return a connection pool for a program that waits; see :func:`http_client`.

    Args:
        address: the only service that is asked.
        around: wraps what sends.
        options: others of the client.
    """
    sends = around(httpx2.HTTPTransport(trust_env=False, **_ways(address, None)))
    return httpx2.Client(transport=sends, follow_redirects=False, trust_env=False, **options)


def _ways(address: str | None, verify: ssl.SSLContext | None) -> dict[str, Any]:
    """Return the options of a client that say how it reaches an address."""
    proxy = None if address is None else proxy_for(address)
    secure = proxy is not None and _is_secure(proxy.url)
    if verify is None:
        verify = _trusted(address, secure=secure)
    if proxy is None:
        return {"verify": verify}
    return {
        "verify": verify,
        "proxy": httpx2.Proxy(proxy.url, ssl_context=verify if secure else None),
    }


def _trusted(address: str | None, *, secure: bool) -> ssl.SSLContext:
    """Return the authorities that a client trusts.

    Args:
        address: the service; ``None``: any.
        secure: whether its proxy speaks TLS.
    """
    if address is None:
        return httpx2.create_ssl_context(trust_env=False)
    if secure or _is_secure(address):
        return authorities()
    # none is needed, and none is read
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _is_secure(url: str) -> bool:
    return urlsplit(url).scheme == "https"


def checked_url(url: str, *, variable: str) -> str:
    """Return a base URL without a trailing slash.

    Args:
        url: the URL.
        variable: where it was given, for the message.

    Raises:
        ConfigurationError: it is not an HTTP URL. The message omits it: it may contain a password.
    """
    try:
        usable = httpx2.URL(url).scheme in ("http", "https")
    except (ValueError, httpx2.InvalidURL):
        usable = False
    if not (usable and is_address(url)):
        raise ConfigurationError(
            f"{variable} is no base URL: use http:// or https://, a host, and optionally a numeric port"
        )
    return url.rstrip("/")
