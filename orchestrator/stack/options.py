"""What a stack is asked to be, and the commands that come of it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.stack.child import Child, Command
from orchestrator.stack.folder import DEFAULT_FOLDER, StackInfo

#: whether these processes of that stack serve; asked again and again until they do
Ready = Callable[[StackInfo, tuple[Child, ...]], Awaitable[bool]]

WORKER = (
    sys.executable, "-m", "celery", "-A", "workers.app", "worker",
    "-Q", "posology.jobs,posology.calls", "--concurrency", "{concurrency}", "--loglevel", "WARNING",
    "--without-gossip", "--without-mingle", "-n", "worker{number}@%h",
)  # fmt: skip
API = (
    sys.executable, "-m", "uvicorn", "--factory", "orchestrator.api.app:from_environment",
    "--host", "{host}", "--port", "{port}", "--no-access-log",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class StackOptions:
    """One stack."""

    #: the environment that the processes start from
    environment: Mapping[str, str] = field(repr=False)
    folder: Path = Path(DEFAULT_FOLDER)
    #: a Redis that runs already; ``None`` starts one
    redis_url: str | None = field(default=None, repr=False)
    #: worker processes
    workers: int = 1
    #: threads of each
    concurrency: int = 4
    #: whether to serve HTTP
    api: bool = True
    host: str = "127.0.0.1"
    #: 0 takes any that is free
    port: int = 8000
    #: ``None`` leaves it to the environment
    index: str | None = None
    #: on top of the environment
    overrides: Mapping[str, str] = field(default_factory=dict, repr=False)
    #: seconds for each part to be ready; a worker loads its models first
    start_timeout: float = 120.0
    #: seconds for a worker to finish what it is at
    worker_grace: float = 30.0
    #: seconds for the API to finish its requests
    api_grace: float = 10.0
    #: with the fields ``{number}`` and ``{concurrency}``
    worker_argv: tuple[str, ...] = WORKER
    #: with the fields ``{host}`` and ``{port}``
    api_argv: tuple[str, ...] = API
    #: ``None`` waits until every worker has announced itself in Redis
    workers_ready: Ready | None = None
    #: ``None`` waits until the port accepts connections
    api_ready: Ready | None = None

    @property
    def numbers(self) -> range:
        """Of the workers."""
        return range(1, self.workers + 1)


def worker_command(options: StackOptions, redis_url: str, number: int) -> Command:
    """The command of a worker."""
    fields = {"{number}": str(number), "{concurrency}": str(options.concurrency)}
    # at SIGQUIT a worker hands back what it has not finished; after SIGKILL its leases would have to end
    return _command(
        options,
        f"worker{number}",
        options.worker_argv,
        fields,
        redis_url,
        options.worker_grace,
        signal.SIGQUIT,
    )


def api_command(options: StackOptions, redis_url: str, port: int) -> Command:
    """The command of the API."""
    fields = {"{host}": options.host, "{port}": str(port)}
    return _command(options, "api", options.api_argv, fields, redis_url, options.api_grace)


def _command(
    options: StackOptions,
    name: str,
    argv: tuple[str, ...],
    fields: Mapping[str, str],
    redis_url: str,
    grace: float,
    insist: signal.Signals | None = None,
) -> Command:
    index = {"POSOLOGY_INDEX": options.index} if options.index else {}
    # in the environment and not among the arguments, which every user of the machine can read
    redis = {"POSOLOGY_REDIS_URL": redis_url}
    return Command(
        name=name,
        argv=tuple(_filled(part, fields) for part in argv),
        environment={**options.environment, **index, **redis, **options.overrides},
        log=options.folder.absolute() / "log" / f"{name}.log",
        grace=grace,
        insist=insist,
    )


def _filled(part: str, fields: Mapping[str, str]) -> str:
    for name, value in fields.items():
        part = part.replace(name, value)
    return part
