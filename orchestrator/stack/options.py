"""Options of a stack, and the commands of its processes."""

from __future__ import annotations

import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import MappingProxyType

from orchestrator.environment import FOR_SERVICES
from orchestrator.stack.child import Child, Command
from orchestrator.stack.folder import DEFAULT_FOLDER, StackInfo
from posology.llm.providers.table import PROVIDERS

#: returns whether the processes serve; polled until it returns true
Ready = Callable[[StackInfo, tuple[Child, ...]], Awaitable[bool]]

WORKER = (
    sys.executable, "-m", "celery", "-A", "workers.app", "worker",
    "-Q", "posology.jobs,posology.calls", "--concurrency", "{concurrency}", "--loglevel", "WARNING",
    "--without-gossip", "--without-mingle", "-n", "worker{number}@%h",
)  # fmt: skip
#: connections of the API, idle ones included; beyond, it answers 503
CONNECTIONS = 1_000
API = (
    sys.executable, "-m", "uvicorn", "--factory", "orchestrator.api.app:from_environment",
    "--host", "{host}", "--port", "{port}", "--no-access-log",
    "--limit-concurrency", str(CONNECTIONS),
)  # fmt: skip


#: ingests uploaded files; a file that is being read resumes at the next start
INGEST = (sys.executable, "-m", "orchestrator.ingest.uploads.process")


#: open the console and the metrics, which the API alone serves
_DOORS = frozenset({"POSOLOGY_CONSOLE_KEY", "POSOLOGY_METRICS_KEY", "POSOLOGY_OIDC_CLIENT_SECRET"})
#: of providers; the API calls none but that of a paid embedder
_PROVIDERS = frozenset(row.key_variable for row in PROVIDERS.values() if row.key_variable)
#: of the literature services, which the process that ingests asks
_LITERATURE = frozenset({"NCBI_API_KEY"})
#: all, and that of a client of another service, which none needs
_ALL = _DOORS | _PROVIDERS | _LITERATURE | {"POSOLOGY_API_KEY"}


class Part(Enum):
    """A process of a stack, with its keys: one that a hostile file or reply takes over has no others."""

    REDIS = frozenset[str]()
    API = _DOORS
    WORKER = _PROVIDERS
    INGEST = _PROVIDERS | _LITERATURE


@dataclass(frozen=True, kw_only=True, slots=True)
class StackOptions:
    """Options of a stack."""

    #: environment of the processes; each gets of its keys those that it needs
    environment: Mapping[str, str] = field(repr=False)
    folder: Path = Path(DEFAULT_FOLDER)
    #: a running Redis; ``None``: one is started
    redis_url: str | None = field(default=None, repr=False)
    #: maximum memory of a started Redis, MiB; ``None``: half of the machine's
    redis_memory: int | None = None
    #: number of worker processes
    workers: int = 1
    #: threads of each worker
    concurrency: int = 4
    #: whether to serve HTTP
    api: bool = True
    #: whether to ingest the files that tenants upload
    uploads: bool = False
    host: str = "127.0.0.1"
    #: 0: any free port
    port: int = 8000
    #: ``None``: by the environment
    index: str | None = None
    #: digest for :attr:`StackInfo.answers`
    answers: str | None = None
    #: added to the environment
    overrides: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: added to the environment of the workers
    worker_overrides: Mapping[str, str] = field(default_factory=dict)
    #: seconds until each part must be ready; workers load their models first
    start_timeout: float = 120.0
    #: graceful-shutdown timeout of a worker in seconds
    worker_grace: float = 30.0
    #: graceful-shutdown timeout of the API, and of the process that ingests uploads, in seconds
    api_grace: float = 10.0
    #: command, with the fields ``{number}`` and ``{concurrency}``
    worker_argv: tuple[str, ...] = WORKER
    #: command, with the fields ``{host}`` and ``{port}``
    api_argv: tuple[str, ...] = API
    #: ``None``: wait for the heartbeat of every worker in Redis
    workers_ready: Ready | None = None
    #: ``None``: wait until the port accepts connections
    api_ready: Ready | None = None

    @property
    def numbers(self) -> range:
        """Return the numbers of the workers."""
        return range(1, self.workers + 1)


def worker_command(options: StackOptions, redis_url: str, number: int) -> Command:
    """Return the command of a worker."""
    fields = {"{number}": str(number), "{concurrency}": str(options.concurrency)}
    # at SIGQUIT a worker requeues unfinished work; after SIGKILL its leases must expire first
    return _command(
        options,
        Part.WORKER,
        f"worker{number}",
        options.worker_argv,
        fields,
        redis_url,
        options.worker_grace,
        signal.SIGQUIT,
        options.worker_overrides,
    )


def api_command(options: StackOptions, redis_url: str, port: int) -> Command:
    """Return the command of the API."""
    fields = {"{host}": options.host, "{port}": str(port)}
    return _command(
        options, Part.API, "api", options.api_argv, fields, redis_url, options.api_grace
    )


def ingest_command(options: StackOptions, redis_url: str) -> Command:
    """Return the command of the process that ingests uploads."""
    return _command(options, Part.INGEST, "ingest", INGEST, {}, redis_url, options.api_grace)


def fitting(environment: Mapping[str, str], part: Part) -> dict[str, str]:
    """Return an environment without the keys that a process does not need."""
    needed: frozenset[str] = part.value
    if part is Part.API:
        row = PROVIDERS.get(environment.get("POSOLOGY_EMBEDDER", "").partition(":")[0])
        needed |= {row.key_variable} if row and row.key_variable else set()
    return {name: value for name, value in environment.items() if name not in _ALL - needed}


def _command(
    options: StackOptions,
    part: Part,
    name: str,
    argv: tuple[str, ...],
    fields: Mapping[str, str],
    redis_url: str,
    grace: float,
    insist: signal.Signals | None = None,
    more: Mapping[str, str] = MappingProxyType({}),
) -> Command:
    index = {"POSOLOGY_INDEX": options.index} if options.index else {}
    # not an argument: every user of the machine can read arguments
    redis = {"POSOLOGY_REDIS_URL": redis_url}
    return Command(
        name=name,
        argv=tuple(_filled(one, fields) for one in argv),
        environment=fitting(
            {
                **FOR_SERVICES,
                **options.environment,
                **index,
                **redis,
                **options.overrides,
                **more,
            },
            part,
        ),
        log=options.folder.absolute() / "log" / f"{name}.log",
        grace=grace,
        insist=insist,
    )


def _filled(part: str, fields: Mapping[str, str]) -> str:
    for name, value in fields.items():
        part = part.replace(name, value)
    return part
