"""Request metrics of this process."""

from __future__ import annotations

import time

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
#: served methods; any other would add a label forever
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


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
    """Counts every request, including those that end in a defect."""

    def __init__(self, app: ASGIApp, traffic: Traffic) -> None:
        self._app = app
        self._traffic = traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        # defaults if no response is sent: the client disconnected, or a defect
        status, stream = 500, False

        async def noting(message: Message) -> None:
            nonlocal status, stream
            if message["type"] == "http.response.start":
                status = message["status"]
                stream = (b"content-type", b"text/event-stream; charset=utf-8") in message[
                    "headers"
                ]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            route = scope.get("route")
            self._traffic.note(
                method=scope["method"],
                route=getattr(route, "path", None) or "none",
                status=status,
                seconds=time.perf_counter() - started,
                stream=stream,
            )
