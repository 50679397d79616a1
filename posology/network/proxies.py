"""The proxies that the environment names, as curl reads them: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from ipaddress import ip_address, ip_network
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies

from posology.errors import ConfigurationError
from posology.network.hosts import is_address, is_loopback

_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


@dataclass(frozen=True, kw_only=True, slots=True)
class Proxy:
    """A proxy. Its text has neither user nor password."""

    #: address, with the user and the password for it
    url: str = field(repr=False)
    #: the environment variable that names it, or the system's settings
    variable: str

    def __str__(self) -> str:
        return f"{shown(self.url)} ({self.variable})"

    @property
    def place(self) -> tuple[str, int]:
        """Host and port."""
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or _PORTS[parts.scheme]


def proxy_for(url: str) -> Proxy | None:
    """Return the proxy for requests to an address; ``None``: they go straight to it, as all do to this machine.

    Raises:
        ConfigurationError: the variable of this proxy cannot be used.
    """
    if is_loopback(url):
        return None
    known = getproxies()
    parts = urlsplit(url)
    kind = parts.scheme if known.get(parts.scheme) else "all"
    if not known.get(kind) or _is_excepted(parts, known.get("no", "")):
        return None
    return _checked(kind, known[kind])


def proxies() -> tuple[Proxy, ...]:
    """Return all proxies that requests may go through.

    Raises:
        ConfigurationError: one of the variables cannot be used.
    """
    known = getproxies()
    if "*" in map(str.strip, known.get("no", "").split(",")):
        return ()
    kinds = {scheme if known.get(scheme) else "all": None for scheme in ("https", "http")}
    return tuple(_checked(kind, known[kind]) for kind in kinds if known.get(kind))


def through(url: str) -> str:
    """Return how requests reach an address, for messages: the proxy by name, or nothing."""
    try:
        proxy = proxy_for(url)
    except (ConfigurationError, ValueError):
        return ""
    return "" if proxy is None else f" through the proxy {proxy}"


def without_loopback(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables that keep libraries with HTTP clients of their own from asking this machine through a proxy.

    Args:
        environment: of a process.

    Returns:
        Variables to set; none if there are no proxies.
    """
    by_name = {name.lower(): value for name, value in sorted(environment.items())}
    if not any(by_name.get(f"{kind}_proxy") for kind in ("http", "https", "all")):
        return {}
    given = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    entries = [part for part in map(str.strip, given.split(",")) if part]
    if "*" in entries:
        return {}
    own = (one for one in ("localhost", "127.0.0.0/8", "127.0.0.1", "::1") if one not in entries)
    value = ",".join((*entries, *own))
    # some read only the one, some only the other
    return {"NO_PROXY": value, "no_proxy": value}


def shown(address: str) -> str:
    """Return the address of a proxy without user and password."""
    scheme, mark, rest = address.rpartition("://")
    return f"{scheme}{mark}{'***@' if '@' in rest else ''}{rest.rpartition('@')[2]}"


def _checked(kind: str, value: str) -> Proxy:
    """Return a proxy that a client can use.

    Raises:
        ConfigurationError: the message has no password.
    """
    variable, url = _variable(kind), value if "://" in value else f"http://{value}"
    scheme = url.partition("://")[0].lower()
    if scheme not in _PORTS:
        raise ConfigurationError(
            f"{variable}: {shown(value)}: there are no proxies of the scheme {scheme}: use http, https, socks5 or socks5h, "
            "or unset it"
        )
    if not _is_address(url):
        raise ConfigurationError(
            f"{variable}: {shown(value)} is no address of a proxy: use http://HOST:PORT, with user and password "
            "percent-encoded, or unset it"
        )
    if scheme.startswith("socks") and find_spec("socksio") is None:
        raise ConfigurationError(
            f"{variable} names a SOCKS proxy ({shown(value)}), which needs the package socksio: run pip install "
            "'posology[socks]', or unset it"
        )
    return Proxy(url=url, variable=variable)


def _is_address(url: str) -> bool:
    import httpx2

    try:
        httpx2.Proxy(url)
    except (ValueError, httpx2.InvalidURL):
        return False
    return is_address(url)


def _variable(kind: str) -> str:
    """Return the name of the variable that names a proxy, in the case in which it counts."""
    wanted = f"{kind}_proxy"
    names = (wanted, *(name for name in os.environ if name.lower() == wanted))
    return next((name for name in names if os.environ.get(name)), "the system's proxy settings")


def _is_excepted(url: SplitResult, exceptions: str) -> bool:
    """Whether NO_PROXY names an address: its host or a domain above it, its network, or all."""
    return any(_names(entry, url) for entry in _entries(exceptions))


def _entries(exceptions: str) -> Iterator[str]:
    yield from filter(None, (part.strip().lower() for part in exceptions.split(",")))


def _names(entry: str, url: SplitResult) -> bool:
    if entry == "*":
        return True
    host = url.hostname or ""
    try:
        network = ip_network(
            entry.replace("[", "").replace("]", "") if "/" in entry else entry, strict=False
        )
    except ValueError:
        pass
    else:
        try:
            return ip_address(host) in network
        except ValueError:
            return False
    try:
        named = urlsplit(entry if "://" in entry else f"//{entry}")
        name, port = named.hostname or "", named.port
    except ValueError:
        # curl ignores what it cannot read, too
        return False
    if named.scheme not in ("", "all", url.scheme):
        return False
    if port is not None and port != (url.port or _PORTS.get(url.scheme)):
        return False
    below = name.removeprefix("*").removeprefix(".")
    return bool(below) and (host.endswith(f".{below}") or (host == below and below == name))
