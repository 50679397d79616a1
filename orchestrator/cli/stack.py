"""The ``up`` and ``api`` commands: the local stack, and the HTTP API alone."""

from __future__ import annotations

import logging
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer
from rich.console import Console
from rich.text import Text

from orchestrator.cli.common import IndexOption, errors
from orchestrator.environment import environment
from orchestrator.settings import LogFormat, Settings, load_settings
from posology.errors import ConfigurationError

if TYPE_CHECKING:
    from orchestrator.stack.folder import StackInfo

HostOption = Annotated[str, typer.Option(help="Address that the API listens on.")]
PortOption = Annotated[
    int, typer.Option(min=0, max=65_535, help="Port of the API; 0: any free port.")
]

#: seconds for a worker to requeue unfinished work
_REQUEUE = 5.0


def up(
    *,
    home: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Data folder. Default: POSOLOGY_HOME."),
    ] = None,
    index: IndexOption = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of worker processes, about 450 MB each. Default: POSOLOGY_WORKERS, or one for each core.",
        ),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            min=1, help="Concurrent jobs per worker. Default: POSOLOGY_WORKER_CONCURRENCY."
        ),
    ] = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8000,
    api: Annotated[bool, typer.Option("--api/--no-api", help="Serve the HTTP API.")] = True,
    uploads: Annotated[
        bool,
        typer.Option(
            "--uploads",
            help="Take files over HTTP and ingest them: from tenants who may, and without keys from this machine. Read tables. "
            "Default: only if POSOLOGY_UPLOADS is set.",
        ),
    ] = False,
) -> None:
    """Run Redis, workers and the HTTP API on this machine until Ctrl-C.

    A second Ctrl-C stops without waiting: unfinished jobs are requeued. If POSOLOGY_REDIS_URL is set, that Redis is used and none is started.
    """
    from orchestrator.configuration import measured
    from orchestrator.logs.configuration import configure
    from orchestrator.logs.events import note
    from orchestrator.logs.notices import Notices
    from orchestrator.logs.rotated import PrivateFile
    from orchestrator.rendering.words import safe
    from orchestrator.service import index_place
    from orchestrator.stack.answers import digest
    from orchestrator.stack.options import StackOptions
    from orchestrator.stack.up import run_stack
    from posology.devices import cores
    from posology.index.connection import require
    from posology.store.connection import shown

    with errors(as_json=False):
        settings = load_settings()
        if api:
            _check_open(settings, host)
        # without an index workers fail, and only their logs say so
        place = index_place(settings, index)
        require(place)
        folder = (home or Path(settings.home)).expanduser()
        console = Console(stderr=True)
        # files of a stack are for `posology logs`
        in_json = {"log_format": LogFormat.JSON}
        configure(
            settings.model_copy(update=in_json),
            handler=PrivateFile.of(folder / "log" / "stack.log"),
        )

        def tell(line: str) -> None:
            # a terminal that is gone, or a full disk behind it, ends no process; rich exits at a broken pipe
            with suppress(OSError, ValueError, SystemExit):
                console.print(Text(safe(line)), soft_wrap=True)

        def log(line: str) -> None:
            tell(line)
            note(line, logging.WARNING)

        def ready(info: StackInfo) -> None:
            if info.api_url:
                tell(f"console at {info.api_url}/console")
            tell(f"ready: Redis at {shown(info.redis_url)}, data and logs in {folder}")
            if info.api_url:
                tell(f"API at {info.api_url}")
            tell("Press Ctrl-C to stop. Unfinished jobs resume at the next start.")
            note("stack ready", api=info.api_url, version=info.version)

        count = workers or settings.workers or cores()
        # the workers share the cores
        threads = settings.embedder_threads or max(1, cores() // count)
        takes = {}
        if uploads:
            takes["POSOLOGY_UPLOADS"] = str((folder / "uploads").absolute())
            takes["POSOLOGY_OPEN_UPLOADS"] = "true"
        if home is not None:
            takes["POSOLOGY_HOME"] = str(folder.absolute())
            # what was measured of models bounds the calls of this stack, too
            measured.share(settings, settings.model_copy(update={"home": str(folder)}))
        options = StackOptions(
            environment={**environment(), **settings.environment()},
            folder=folder,
            redis_url=settings.redis_url.get_secret_value() if settings.redis_url else None,
            redis_memory=settings.redis_memory,
            workers=count,
            concurrency=concurrency or settings.worker_concurrency,
            api=api,
            host=host,
            port=port,
            index=str(place),
            answers=digest(settings, str(place)),
            uploads=uploads or settings.uploads is not None,
            overrides={"POSOLOGY_LOG_FORMAT": LogFormat.JSON.value, **takes},
            worker_overrides={"POSOLOGY_EMBEDDER_THREADS": str(threads)},
            # the worker's own timeout, then time to requeue
            worker_grace=settings.shutdown_grace + _REQUEUE,
        )
        tell("starting …")
        hear = Notices(tell)
        anyio.run(lambda: run_stack(options, ready=ready, tell=log, hear=hear))
        note("stack stopped")


def api(*, host: HostOption = "127.0.0.1", port: PortOption = 8000) -> None:
    """Serve only the HTTP API; Redis and workers run elsewhere."""
    with errors(as_json=False):
        import uvicorn
        from pydantic import SecretStr

        from orchestrator.api.app import create_app
        from orchestrator.jobs.place import store_url
        from orchestrator.logs.configuration import configure
        from orchestrator.stack.options import CONNECTIONS

        settings = load_settings()
        _check_open(settings, host)
        place = {"redis_url": SecretStr(store_url(settings))}
        settings = settings.model_copy(update=place)
        configure(settings)
        uvicorn.run(
            create_app(settings),
            host=host,
            port=port,
            access_log=False,
            limit_concurrency=CONNECTIONS,
            # ours, which has its lines as well
            log_config=None,
        )


def _check_open(settings: Settings, host: str) -> None:
    """Reject an API without authentication that other machines can reach.

    Raises:
        ConfigurationError: POSOLOGY_AUTH is not set, and the host is not a loopback address.
    """
    if settings.auth is None and not _is_loopback(host):
        raise ConfigurationError(
            f"other machines can reach the API on {host}, and POSOLOGY_AUTH is not set. Set POSOLOGY_AUTH=keys "
            "(docs/how-to/tenants.md), or POSOLOGY_AUTH=open to accept every caller."
        )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
