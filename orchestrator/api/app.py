"""The HTTP API: ``uvicorn --factory orchestrator.api.app:from_environment``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from orchestrator.api import openapi, problems
from orchestrator.api.context import Context, Limits
from orchestrator.api.routes import batches, estimate, feedback, health, jobs, spend
from orchestrator.api.traffic import TrafficMiddleware
from orchestrator.jobs.store import JobStore, open_store
from orchestrator.prices import price_book
from orchestrator.settings import Settings, load_settings
from posology import __version__

#: attempts at a Redis command: a few seconds, after which the client decides how long to wait
_TRIES = 8


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

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if context.store is not None:
            yield
            return
        async with open_store(
            settings.redis,
            retention=settings.retention,
            patience=_TRIES,
            prices=price_book(settings),
        ) as opened:
            context.store = opened
            try:
                yield
            finally:
                context.store = None

    app = FastAPI(
        title="Posology",
        version=__version__,
        summary="Question answering over the medical literature, through a queue.",
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        lifespan=lifespan,
        redirect_slashes=False,
        # these pages load scripts from elsewhere
        docs_url=None,
        redoc_url=None,
    )
    app.state.context = context
    app.include_router(jobs.router)
    app.include_router(feedback.router)
    app.include_router(batches.router)
    app.include_router(estimate.router)
    app.include_router(spend.router)
    app.include_router(health.router)
    app.add_middleware(TrafficMiddleware, traffic=context.traffic)
    problems.register(app)
    app.openapi = lambda: openapi.document(app)  # type: ignore[method-assign]  # FastAPI's own way
    return app


def from_environment() -> FastAPI:
    """Build the API from the environment.

    Raises:
        ConfigurationError: a variable is invalid.
    """
    return create_app(load_settings())
