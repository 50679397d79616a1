"""Request metrics and the access log of this process."""

from __future__ import annotations

import logging
import re
import time
import uuid
from ipaddress import ip_address

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from orchestrator.logs.events import note
from posology.version import HEADER, __version__

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
#: served methods; any other would add a label forever
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
#: header with the id of a request, in both directions
REQUEST_ID = "X-Request-ID"
#: ids of clients that are taken over; others could forge lines of a log
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}", re.ASCII)
#: key of the scope with the request's tenant
TENANT = "posology.tenant"
#: key of the scope with the request's id
_OWN_ID = "posology.request"
#: routes that are asked every few seconds; their successes are lines of level debug
_PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
_FAILED = 500


class Traffic:
    """Metrics of one app; its own registry allows several apps in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "posology_http_requests",
            "Requests to this process, by method, route and status.",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "posology_http_request_seconds",
            "Seconds from a request to the last byte of its response, without event streams.",
            ("method", "route"),
            buckets=_BUCKETS,
            registry=self.registry,
        )

    def note(self, *, method: str, route: str, status: int, seconds: float, stream: bool) -> None:
        """Count a finished request."""
        known = method if method in _METHODS else "other"
        self._requests.labels(known, route, str(status)).inc()
        if not stream:
            self._seconds.labels(known, route).observe(seconds)


class TrafficMiddleware:
    """Counts and logs every request, including those that end in a defect, and gives it an id."""

    def __init__(self, app: ASGIApp, traffic: Traffic) -> None:
        self._app = app
        self._traffic = traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        # defaults if no response is sent: the client disconnected, or a defect
        status, stream = _FAILED, False
        given = Headers(scope=scope).get(REQUEST_ID, "")
        request_id = given if _ID.fullmatch(given) else uuid.uuid4().hex
        scope[_OWN_ID] = request_id

        async def noting(message: Message) -> None:
            nonlocal status, stream
            if message["type"] == "http.response.start":
                status = message["status"]
                kind = Headers(raw=message["headers"]).get("content-type", "")
                stream = kind.startswith("text/event-stream")
                stamp(MutableHeaders(scope=message), scope)
            await send(message)

        with bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, noting)
            finally:
                route = getattr(scope.get("route"), "path", None) or "none"
                seconds = time.perf_counter() - started
                self._traffic.note(
                    method=scope["method"],
                    route=route,
                    status=status,
                    seconds=seconds,
                    stream=stream,
                )
                note(
                    "request",
                    _level(route, status),
                    method=scope["method"],
                    route=route,
                    status=status,
                    seconds=round(seconds, 4),
                    tenant=scope.get(TENANT),
                    client=address(scope),
                )


def stamp(headers: MutableHeaders, scope: Scope) -> None:
    """Set the headers that every response has: its id, the version, and that no cache keeps it."""
    headers[REQUEST_ID] = scope[_OWN_ID]
    headers[HEADER] = __version__
    # a reply is of one tenant, unless its route knows better
    headers.setdefault("Cache-Control", "no-store")


def address(scope: Scope) -> str | None:
    """Return the IP address that a request came from, as far as proxies are believed; ``None``: it has none."""
    client = scope.get("client")
    try:
        return None if client is None else str(ip_address(client[0]))
    except ValueError:
        # a proxy's word is no address
        return None


def _level(route: str, status: int) -> int:
    if status >= _FAILED:
        return logging.ERROR
    return logging.DEBUG if route in _PROBES else logging.INFO
