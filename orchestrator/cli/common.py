"""Shared parts of all commands: options, errors, exit statuses, JSON."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeVar

import anyio
import typer
from pydantic import BaseModel
from rich.console import Console

from orchestrator.cli.output.streams import discard, has_left, write_json
from posology.errors import PosologyError, StoreUnavailable

if TYPE_CHECKING:
    from posology.llm.accounting import Account

_Found = TypeVar("_Found")

IndexOption = Annotated[
    str | None,
    typer.Option(
        "--index",
        metavar="DIR",
        help="Folder or address of the index, or name of a collection. Default: POSOLOGY_INDEX, else ./index.",
    ),
]
EmbedderOption = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        help="Embedding model: a name, a folder, medcpt, or openai:MODEL (paid). Default: POSOLOGY_EMBEDDER.",
    ),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        metavar="URL",
        help="Base URL of the model's server. Default: its variable, e.g. LLAMACPP_BASE_URL.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
TenantOption = Annotated[
    str | None,
    typer.Option("--tenant", help="Tenant that owns the jobs and pays. Default: POSOLOGY_TENANT."),
]
AllOption = Annotated[bool, typer.Option("--all", help="All tenants.")]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="DAY", help="First day (UTC), e.g. 2026-01-15.")
]
UntilOption = Annotated[
    str | None, typer.Option("--until", metavar="DAY", help="Last day (UTC), inclusive.")
]


def run(work: Callable[[], Awaitable[_Found]]) -> _Found:
    """Run an asynchronous function to its end, or until Ctrl-C.

    asyncio cancels only once at Ctrl-C, and Python 3.11's ``wait_for``, which redis-py uses, may swallow that
    cancellation. A cancel scope repeats it.

    Raises:
        KeyboardInterrupt: Ctrl-C; open resources are closed first.
    """
    results: list[_Found] = []
    failed: list[BaseException] = []

    async def main() -> None:
        with anyio.open_signal_receiver(signal.SIGINT) as signals:
            async with anyio.create_task_group() as listening:
                working = anyio.CancelScope()

                async def listen() -> None:
                    async for _ in signals:
                        working.cancel()

                listening.start_soon(listen)
                with working:
                    try:
                        results.append(await work())
                    # rich ends the process so where its reader has closed the pipe
                    except (Exception, SystemExit) as error:  # noqa: BLE001 - a task group would wrap it
                        failed.append(error)
                listening.cancel_scope.cancel()

    anyio.run(main)
    if failed:
        raise failed[0]
    if not results:
        raise KeyboardInterrupt
    return results[0]


@contextmanager
def errors(*, as_json: bool, account: Account | None = None) -> Iterator[None]:
    """Turn an error into one line or one JSON object, and into its exit status.

    Attempts that were made are printed, however the work ends.
    """
    try:
        yield
    except PosologyError as error:
        from orchestrator.question.report import error_output

        if isinstance(error, StoreUnavailable):
            error = _advised(error)
        if as_json:
            print_json(error_output(error, account))
        else:
            fail(str(error))
            _print_attempts(account)
        raise typer.Exit(error.exit_code) from None
    except BaseException as error:
        if has_left(error):
            # what was paid is in the ledger
            discard()
            raise typer.Exit(0) from None
        _print_attempts(account)
        raise


def _advised(error: StoreUnavailable) -> StoreUnavailable:
    """Return the error with its notes and, of the Redis of the stack that runs here, what to do about it."""
    from orchestrator.jobs.place import outage
    from orchestrator.settings import load_settings
    from posology.store.connection import unanswered

    advice = outage(load_settings(), error.address) if unanswered(error) else None
    said = ". ".join((advice or error.message, *getattr(error, "__notes__", ())))
    return StoreUnavailable(said, address=error.address)


def _print_attempts(account: Account | None) -> None:
    if account is not None and account.attempts:
        from orchestrator.cli.terminal import show_attempts
        from orchestrator.question.report import spending

        show_attempts(Console(stderr=True), spending(account))


class _Told(logging.Handler):
    """Prints the messages of a logger on stderr, where a progress bar may stand."""

    def emit(self, record: logging.LogRecord) -> None:
        typer.echo(record.getMessage(), err=True)


def tell_preparing() -> None:
    """Say on stderr when the encoder is prepared: the first use takes a minute, and nothing else would say why."""
    logger = logging.getLogger("posology.index.embedders.onnx.files")
    if not any(isinstance(handler, _Told) for handler in logger.handlers):
        logger.addHandler(_Told())
        logger.setLevel(logging.INFO)


def fail(message: str) -> None:
    """Print one line to standard error."""
    from orchestrator.rendering.words import safe

    sys.stderr.write(f"posology: {' '.join(safe(message).split())}\n")
    sys.stderr.flush()


def print_json(out: BaseModel, *, indent: int | None = 2) -> None:
    """Print one JSON object to standard output, with the version that made it as the last member.

    Args:
        out: the object.
        indent: spaces of a level; ``None``: one line.
    """
    from pydantic_core import to_json

    from posology.version import MEMBER, __version__

    made = {**out.model_dump(mode="json"), MEMBER: __version__}
    write_json(to_json(made, indent=indent, inf_nan_mode="null").decode())
