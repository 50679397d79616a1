"""The ``mcp`` command: tools for an assistant on this machine."""

from __future__ import annotations

from contextlib import AsyncExitStack
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer
from anyio import create_task_group, to_thread

from orchestrator.cli.common import IndexOption, errors, run
from orchestrator.settings import Settings, load_settings
from posology.errors import ConfigurationError

if TYPE_CHECKING:
    from orchestrator.api.mcp.desk import Desk


def mcp(
    *,
    index: IndexOption = None,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Address of a service that answers, with the API key in POSOLOGY_API_KEY. Default: a stack that runs here with the same "
            "settings, else this process.",
        ),
    ] = None,
) -> None:
    """Serve the tools for assistants (MCP) on standard input and output, until the client ends."""
    with errors(as_json=False):
        if find_spec("mcp") is None:
            raise ConfigurationError(
                "the tools for assistants need the package mcp: pip install 'posology[mcp]'"
            )
        if url and index:
            raise typer.BadParameter("--index needs this machine's own index: omit it with --url")
        settings = load_settings()
        run(lambda: _serve(settings, index, url))


async def _serve(settings: Settings, index: str | None, url: str | None) -> None:
    from mcp.server.stdio import stdio_server

    from orchestrator.api.mcp.server import make_server

    async with AsyncExitStack() as stack:
        desk = await _desk(stack, settings, index, url)
        server = make_server(lambda _: desk, own=True)
        reading, writing = await stack.enter_async_context(stdio_server())
        await server.run(reading, writing, server.create_initialization_options())


async def _desk(
    stack: AsyncExitStack, settings: Settings, index: str | None, url: str | None
) -> Desk:
    """Return what answers: the service at the address, the stack that runs here, or this process."""
    from orchestrator.api.mcp.elsewhere import LocalDesk, RemoteDesk
    from orchestrator.library import AsyncPosology
    from orchestrator.service import index_place
    from orchestrator.stack.answers import stack_for
    from posology.client import Client
    from posology.index.store import Index

    if url:
        key = settings.api_key
        # a key has its own tenant
        tenant = settings.tenant if key is None else None
        client = Client(url, tenant=tenant, api_key=key.get_secret_value() if key else None)
    elif (here := stack_for(settings, index)) is not None and here.api_url is not None:
        client = Client(here.api_url, tenant=settings.tenant)
    else:
        # an index that cannot be read is an error of the command, not of each call
        await to_thread.run_sync(Index.open, index_place(settings, index))
        library = AsyncPosology(index)
        stack.push_async_callback(library.aclose)
        group = await stack.enter_async_context(create_task_group())
        stack.callback(group.cancel_scope.cancel)
        return LocalDesk(library=library, group=group)
    return RemoteDesk(client=await stack.enter_async_context(client))
