"""The HTTP API: ``uvicorn --factory orchestrator.api.app:from_environment``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import to_thread
from fastapi import Depends, FastAPI

from orchestrator.api import openapi, problems
from orchestrator.api.adding import fetches, uploads
from orchestrator.api.bodies import LingeringMiddleware
from orchestrator.api.chat import routes as chat
from orchestrator.api.context import Context, Limits, known_parameters
from orchestrator.api.mcp.endpoint import Endpoint
from orchestrator.api.origins import OriginMiddleware
from orchestrator.api.routes import (
    answers,
    ask,
    batches,
    estimate,
    feedback,
    health,
    jobs,
    literature,
    pages,
    spend,
    webhooks,
)
from orchestrator.api.tables import routes as tables
from orchestrator.api.traffic import TrafficMiddleware
from orchestrator.api.watches import routes as watches
from orchestrator.console.routes import ROUTES as CONSOLE
from orchestrator.environment import prepare_process
from orchestrator.jobs.place import room
from orchestrator.jobs.store import JobStore, open_store
from orchestrator.logs import events
from orchestrator.logs.configuration import configure
from orchestrator.prices import price_book
from orchestrator.settings import Auth, Settings, load_settings
from posology.store.connection import FEW_TRIES
from posology.version import __version__


def create_app(
    settings: Settings, store: JobStore | None = None, *, limits: Limits | None = None
) -> FastAPI:
    """Build the API.

    Args:
        settings: defaults of a question.
        store: job store; ``None``: the settings' own is opened while the app runs.
        limits: limits of one request.
    """
    context = Context(settings=settings, limits=limits or Limits(), store=store)
    tools = Endpoint(context)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            async with opened(), tools.serving():
                yield
        finally:
            await to_thread.run_sync(events.flush)

    @asynccontextmanager
    async def opened() -> AsyncIterator[None]:
        if context.store is not None:
            yield
            return
        async with open_store(
            settings.redis,
            retention=settings.retention,
            patience=FEW_TRIES,
            prices=price_book(settings),
            room=room(settings),
            advice=settings.auth is not Auth.KEYS,
        ) as found:
            context.store = found
            try:
                yield
            finally:
                await context.aclose()
                context.store = None

    app = FastAPI(
        title="Posology",
        version=__version__,
        summary="Question answering over the medical literature, through a queue.",
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        lifespan=lifespan,
        redirect_slashes=False,
        # FastAPI's pages load scripts from elsewhere; routes/pages.py has our own
        docs_url=None,
        redoc_url=None,
    )
    app.state.context = context
    for served in (
        jobs,
        answers,
        ask,
        feedback,
        batches,
        literature,
        uploads,
        fetches,
        estimate,
        spend,
        tables,
        chat,
        webhooks,
        watches,
    ):
        app.include_router(served.router, dependencies=[Depends(known_parameters)])
    app.include_router(health.router)
    app.router.routes.extend((*pages.ROUTES, tools.route, *CONSOLE))
    if settings.auth is not Auth.KEYS:
        app.add_middleware(OriginMiddleware, names=settings.known_hosts)
    app.add_middleware(LingeringMiddleware)
    app.add_middleware(TrafficMiddleware, traffic=context.traffic)
    problems.register(app)
    app.openapi = lambda: openapi.document(app)  # type: ignore[method-assign]  # FastAPI's own way
    return app


def from_environment() -> FastAPI:
    """Build the API from the environment, and configure the logs of this process.

    Raises:
        ConfigurationError: a variable is invalid.
    """
    prepare_process()
    settings = load_settings()
    configure(settings)
    return create_app(settings)
