"""Streamable HTTP of the protocol, at ``/mcp`` of the API.

Requests are self-contained, so that any process of the service may answer any of them. The protocol's package is loaded at
the first request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import TaskGroup, TaskStatus
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from orchestrator.api.bodies import chunks
from orchestrator.api.context import Context, tenant_of
from orchestrator.api.problems import RequestProblem
from orchestrator.api.traffic import TENANT

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH = "/mcp"


class Endpoint:
    """Serves the tools to the tenant of each request.

    Args:
        api: state of the app.
    """

    def __init__(self, api: Context) -> None:
        self._api = api
        self._group: TaskGroup | None = None
        self._starting = anyio.Lock()
        self._manager: StreamableHTTPSessionManager | None = None

    @property
    def route(self) -> Route:
        """Its route; streams that a client opens with GET are not offered, nor sessions to end with DELETE."""
        return Route(PATH, self, methods=["POST"])

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve during the block."""
        async with anyio.create_task_group() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = self._manager = None
                group.cancel_scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Raises:
            KeyRefused: the key is unknown or missing.
            RequestProblem: the body is too large, or the package is not installed.
            ClientDisconnect: the client left before the response, which cancels its call.
        """
        request = Request(scope, receive)
        scope[TENANT] = await tenant_of(request, self._api)
        limit = self._api.limits.job_bytes
        body = b"".join([chunk async for chunk in chunks(request, limit=limit)])
        manager = await self._running()
        begun = False

        async def noting(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        await manager.handle_request(scope, _replayed(body, receive), noting)
        if not begun:
            raise ClientDisconnect

    async def _running(self) -> StreamableHTTPSessionManager:
        async with self._starting:
            if self._manager is None:
                if self._group is None:
                    raise RuntimeError("the app is not running: its lifespan serves the protocol")
                if find_spec("mcp") is None:
                    raise RequestProblem(
                        501,
                        "NotInstalled",
                        "The service lacks a package",
                        "the tools for assistants need the package mcp: the operator must run "
                        "pip install 'posology[mcp]'",
                    )
                self._manager = await self._group.start(self._run)
            return self._manager

    async def _run(self, *, task_status: TaskStatus[Any]) -> None:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        from orchestrator.api.mcp.server import make_server
        from orchestrator.api.mcp.service import ServiceDesk

        def desk_of(one: ServerRequestContext[Any, Any]) -> ServiceDesk:
            assert isinstance(one.request, Request)
            return ServiceDesk(api=self._api, tenant=one.request.scope[TENANT], request=one.request)

        server = make_server(desk_of)
        manager = StreamableHTTPSessionManager(server, stateless=True)
        async with manager.run():
            task_status.started(manager)
            await anyio.sleep_forever()


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return the messages of a request whose body was read."""
    sent = False

    async def replayed() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed
