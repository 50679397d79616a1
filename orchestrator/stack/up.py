"""The complete stack: Redis, workers and API."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime

import anyio

from orchestrator.stack.child import Child
from orchestrator.stack.folder import StackInfo, own_folder, write_stack
from orchestrator.stack.options import (
    Part,
    StackOptions,
    api_command,
    fitting,
    ingest_command,
    worker_command,
)
from orchestrator.stack.output import Hear
from orchestrator.stack.ping import Ping, ping
from orchestrator.stack.ports import free_port, port_is_free
from orchestrator.stack.ready import api_answers, unfinished_jobs, workers_announced
from orchestrator.stack.redis_server import own_redis
from orchestrator.stack.supervisor import Tell, failure, kept, silent, single_errors
from posology.errors import ConfigurationError, StoreUnavailable
from posology.llm.providers.local.process import stop as stop_models
from posology.store.connection import shown
from posology.version import __version__


async def run_stack(
    options: StackOptions,
    *,
    ready: Callable[[StackInfo], None] | None = None,
    tell: Tell = silent,
    hear: Hear | None = None,
) -> signal.Signals | None:
    """Run a stack until SIGINT, SIGTERM or SIGHUP; a second signal skips the grace.

    Call it in the main thread.

    Args:
        options: of the stack.
        ready: called once, when all parts serve.
        tell: called with a line for each restarted process, and when the stack stops.
        hear: called with the name of a process and each line of its output, on threads of their own.

    Returns:
        The signal that stopped the stack.

    Raises:
        ConfigurationError: see :func:`running_stack`.
        StoreUnavailable: see :func:`running_stack`.
    """
    hurry, running = anyio.Event(), anyio.CancelScope()
    received: list[signal.Signals] = []
    started: list[StackInfo] = []

    async def listen() -> None:
        async for number in signals:
            received.append(number)
            if len(received) == 1:
                tell(await _stopping(options, started[0] if started else None))
            else:
                tell("hurrying: unfinished jobs are requeued")
                hurry.set()
            running.cancel()

    ending = [signal.SIGINT, signal.SIGTERM]
    # under nohup, the stack outlives its terminal
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        ending.append(signal.SIGHUP)
    # before anything is started: else a signal could leave processes behind
    with single_errors(), anyio.open_signal_receiver(*ending) as signals:
        async with anyio.create_task_group() as listening:
            listening.start_soon(listen)
            with running:
                async with running_stack(options, hurry=hurry, tell=tell, hear=hear) as info:
                    started.append(info)
                    if ready:
                        ready(info)
                    await anyio.sleep_forever()
            listening.cancel_scope.cancel()
    return received[0] if received else None


@asynccontextmanager
async def running_stack(
    options: StackOptions,
    *,
    hurry: anyio.Event | None = None,
    tell: Tell = silent,
    hear: Hear | None = None,
) -> AsyncIterator[StackInfo]:
    """Run a stack during the block. It stops the API first, then the workers, then Redis.

    Errors and cancellation stop it the same way. Enter and leave the block in one task.

    Raises:
        StackRuns: another stack uses the folder.
        ChildFailed: a process keeps ending, or is not ready in time.
        StoreUnavailable: the Redis of ``options.redis_url`` does not reply.
        ConfigurationError: there is no ``redis-server``, or the API's port is in use.
    """
    hurry = hurry or anyio.Event()
    folder = options.folder.absolute()
    with single_errors(), own_folder(folder):
        async with AsyncExitStack() as stack:
            # after the workers, whose questions they answer
            stack.callback(stop_models, folder / "gguf")
            if options.redis_url is None:
                redis = own_redis(
                    folder / "redis",
                    environment=fitting(options.environment, Part.REDIS),
                    log=folder / "log" / "redis.log",
                    hurry=hurry,
                    seconds=options.start_timeout,
                    tell=tell,
                    hear=hear,
                    memory=options.redis_memory,
                )
                url = await stack.enter_async_context(redis)
            else:
                url = await _answering(options.redis_url)
            commands = [worker_command(options, url, number) for number in options.numbers]
            workers = await stack.enter_async_context(
                kept(commands, hurry=hurry, tell=tell, hear=hear)
            )
            if options.uploads:
                ingest = [ingest_command(options, url)]
                await stack.enter_async_context(kept(ingest, hurry=hurry, tell=tell, hear=hear))
            servers: tuple[Child, ...] = ()
            if options.api:
                port = _api_port(options)
                api = api_command(options, url, port)
                servers = await stack.enter_async_context(
                    kept([api], hurry=hurry, tell=tell, hear=hear)
                )
                api_url: str | None = _api_url(options.host, port)
            else:
                api_url = None
            info = StackInfo(
                pid=os.getpid(),
                redis_url=url,
                api_url=api_url,
                started=datetime.now(UTC).isoformat(timespec="seconds"),
                version=__version__,
                answers=options.answers,
            )
            workers_ready = options.workers_ready or workers_announced
            api_ready = options.api_ready or api_answers
            if workers:
                await _until_ready(options, workers, lambda: workers_ready(info, workers))
            if servers:
                await _until_ready(options, servers, lambda: api_ready(info, servers))
            write_stack(folder, info)
            yield info


async def _stopping(options: StackOptions, info: StackInfo | None) -> str:
    """Return the line about a stop: what it waits for, and for how long at most."""
    jobs = 0 if info is None else await unfinished_jobs(info)
    if jobs == 0:
        return "stopping"
    what = "unfinished jobs" if jobs is None else f"{jobs} unfinished job{'s'[: jobs != 1]}"
    return (
        f"stopping: waiting up to {options.worker_grace:g} s for {what}; "
        "press Ctrl-C again to hurry"
    )


async def _until_ready(
    options: StackOptions, children: tuple[Child, ...], check: Callable[[], Awaitable[bool]]
) -> None:
    seconds = options.start_timeout
    with anyio.move_on_after(seconds):
        while not await check():  # noqa: ASYNC110 - state of another process
            await anyio.sleep(0.05)
        return
    names = ", ".join(child.command.name for child in children)
    raise failure(children[-1], f"not ready after {seconds:g} s: {names}")


async def _answering(url: str) -> str:
    if await ping(url) is Ping.SILENT:
        place = shown(url)
        raise StoreUnavailable(
            f"no Redis replies at {place}. Start it, or unset POSOLOGY_REDIS_URL to let Posology "
            "start one.",
            address=place,
        )
    return url


def _api_port(options: StackOptions) -> int:
    if options.port == 0:
        return free_port(options.host)
    if not port_is_free(options.host, options.port):
        raise ConfigurationError(
            f"{options.host}:{options.port} is in use or not an address of this machine. "
            "Choose another --port, or 0 for any free one."
        )
    return options.port


def _api_url(host: str, port: int) -> str:
    # on this machine, a server on all addresses is reached by the loopback address
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not bound here
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
