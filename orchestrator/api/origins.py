"""Protection of an API without keys from web pages: the browser of its user must not be made to use it."""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from orchestrator.api import problems
from posology.network.hosts import is_own_host

#: what a browser says of a request that no other site has made
_OWN = ("none", "same-origin")
#: headers that proxies add, beside those that begin with ``x-forwarded-``
_PROXIES = frozenset(
    {
        "via",
        "forwarded",
        "x-real-ip",
        "x-client-ip",
        "true-client-ip",
        "cf-connecting-ip",
        "cdn-loop",
    }
)


class OriginMiddleware:
    """Refuses requests that the page of another site has made.

    Without keys, every client that reaches the API may use it, and a page that its user happens to visit reaches it through
    the browser. Such a page gives itself away: by its origin, or, where it has bound a name of its own to this machine,
    by that name in ``Host``. An address of digits cannot be bound, so each is accepted.

    Args:
        app: the application.
        names: names of the service besides ``localhost``, in lower case.
    """

    def __init__(self, app: ASGIApp, names: Collection[str] = ()) -> None:
        self._app = app
        self._names = frozenset(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            host = headers.get("host", "")
            if host and not self._known(host):
                response = problems.response(
                    421,
                    "UnknownHost",
                    "The host name is unknown to this service",
                    f"a service without API keys refuses the unknown host name {host!r}: use localhost or an IP address, or name "
                    "the host in POSOLOGY_HOSTS",
                )
                await response(scope, receive, send)
                return
            if is_foreign(headers, host):
                response = problems.response(
                    403,
                    "ForeignOrigin",
                    "The request was made by the page of another site",
                    "a service without API keys does not answer pages of other sites: set POSOLOGY_AUTH=keys",
                )
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _known(self, said: str) -> bool:
        try:
            host = urlsplit(f"//{said}").hostname or ""
        except ValueError:
            return False
        host = host.rstrip(".")
        if host == "localhost" or host.endswith(".localhost") or host in self._names:
            return True
        try:
            ip_address(host)
        except ValueError:
            return False
        return True


def is_foreign(headers: Headers, host: str) -> bool:
    """Return whether the page of another site has made a request to a host, as far as its browser says so."""
    if headers.get("sec-fetch-site", "none").strip().lower() not in _OWN:
        return True
    origin = headers.get("origin")
    try:
        # an opaque origin is `null`
        return origin is not None and urlsplit(origin).netloc.lower() != host.lower()
    except ValueError:
        return True


def is_local(request: Request) -> bool:
    """Return whether a request comes from this machine, and not through a proxy on it, as far as the proxy shows itself."""
    if any(name in _PROXIES or name.startswith("x-forwarded-") for name in request.headers):
        return False
    # no browser speaks it; nginx does to a service behind it, with none of the headers unless it is told to
    if request.scope.get("http_version") == "1.0":
        return False
    return request.client is not None and is_own_host(request.client.host)
