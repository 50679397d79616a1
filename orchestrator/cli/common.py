"""What the commands share: options, errors, exit statuses, JSON."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeVar

import anyio
import typer
from pydantic import BaseModel
from rich.console import Console

from posology.errors import PosologyError
from posology.llm.models import model_forms

if TYPE_CHECKING:
    from posology.llm.accounting import Account

_Found = TypeVar("_Found")
SOME_BAD, DEFECT, INTERRUPTED = 1, 70, 130
#: seconds
_DAY = 86_400

IndexOption = Annotated[
    str | None,
    typer.Option("--index", metavar="DIR", help="The index. Default: POSOLOGY_INDEX."),
]
EmbedderOption = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        help="A name or folder, medcpt, or openai:MODEL, which is paid for. Default: POSOLOGY_EMBEDDER.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]
KOption = Annotated[int, typer.Option("--k", min=1, max=200, help="Passages to retrieve.")]
ModeOption = Annotated[
    str, typer.Option("--mode", help="dense, bm25, fused, 'dense>bm25' or 'bm25>dense'.")
]
RetractedOption = Annotated[
    bool, typer.Option("--retracted", help="Let retracted passages be evidence, too.")
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        help=f"{model_forms()}. Default: POSOLOGY_MODEL.",
    ),
]
MaxTokensOption = Annotated[
    int | None,
    typer.Option(
        "--max-tokens",
        min=64,
        max=200_000,
        help="Bound on output tokens of a call. Default: POSOLOGY_MAX_TOKENS, or else one for each stage.",
    ),
]
VersionOption = Annotated[
    int | None,
    typer.Option(
        "--index-version",
        metavar="N",
        min=1,
        help="Read that version of the index, 17 for index@17: see posology index versions. Default: the newest.",
    ),
]
MaxCostOption = Annotated[
    str | None,
    typer.Option(
        "--max-cost", metavar="USD", help="What all model calls of a question may cost together."
    ),
]
StrategyOption = Annotated[
    str | None,
    typer.Option(
        "--strategy", help="direct, compressed or briefcontext. Default: the policy decides."
    ),
]
KeepOption = Annotated[
    float | None,
    typer.Option("--keep", min=0, max=1, help="Share of the sentences kept whole, for compressed."),
]
CompressorOption = Annotated[
    str | None,
    typer.Option(
        "--compressor",
        metavar="NAME",
        help="What compresses, for compressed or for whichever policy decides, e.g. leancontext_top. Default: the "
        "policy's, or POSOLOGY_COMPRESSOR.",
    ),
]
PolicyOption = Annotated[
    str | None,
    typer.Option(
        "--policy",
        help="Which policy decides, with its settings, e.g. router:preflight=published,qtable=off; not with "
        "--strategy. Default: POSOLOGY_POLICY.",
    ),
]
PartitionOption = Annotated[
    int | None,
    typer.Option(
        "--partition-size", min=1, max=200, help="Passages a partition, for briefcontext."
    ),
]
TenantOption = Annotated[
    str | None, typer.Option("--tenant", help="Whose jobs and money. Default: POSOLOGY_TENANT.")
]
AllOption = Annotated[bool, typer.Option("--all", help="All tenants instead of one.")]
SinceOption = Annotated[
    str | None, typer.Option("--since", metavar="DAY", help="E.g. 2026-01-15, UTC.")
]
UntilOption = Annotated[str | None, typer.Option("--until", metavar="DAY", help="Inclusive.")]
DeadlineOption = Annotated[
    float | None,
    typer.Option(
        "--deadline",
        metavar="SECONDS",
        min=1,
        max=_DAY,
        help="From submission; after it nothing more is done.",
    ),
]


def run(work: Callable[[], Awaitable[_Found]]) -> _Found:
    """Run to the end, or until Ctrl-C.

    asyncio's own Ctrl-C cancels once, and Python 3.11's ``wait_for``, through which redis-py sends
    everything, may lose that. A cancel scope goes on until it is heard.

    Raises:
        KeyboardInterrupt: Ctrl-C, after what was open is closed.
    """
    found: list[_Found] = []
    failed: list[Exception] = []

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
                        found.append(await work())
                    except Exception as error:  # noqa: BLE001 - a task group would wrap it
                        failed.append(error)
                listening.cancel_scope.cancel()

    anyio.run(main)
    if failed:
        raise failed[0]
    if not found:
        raise KeyboardInterrupt
    return found[0]


@contextmanager
def errors(*, as_json: bool, account: Account | None = None) -> Iterator[None]:
    """One line that says what to do, or one JSON object; and the exit status of the error's kind.

    Whatever ends the work, the attempts that it made are told.
    """
    try:
        yield
    except PosologyError as error:
        from orchestrator.question.report import error_output

        if as_json:
            print_json(error_output(error, account))
        else:
            fail(str(error))
            _tell_attempts(account)
        raise typer.Exit(error.exit_code) from None
    except BrokenPipeError:
        # the reader has gone, which is its right; Python would complain once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except BaseException:
        _tell_attempts(account)
        raise


def _tell_attempts(account: Account | None) -> None:
    if account is not None and account.attempts:
        from orchestrator.cli.terminal import show_attempts
        from orchestrator.question.report import spending

        show_attempts(Console(stderr=True), spending(account))


def fail(message: str) -> None:
    """Tell one line on standard error."""
    from orchestrator.cli.terminal import safe

    sys.stderr.write(f"posology: {' '.join(safe(message).split())}\n")
    sys.stderr.flush()


def print_json(out: BaseModel) -> None:
    """Print one object on standard output, for a program."""
    sys.stdout.write(out.model_dump_json(indent=2) + "\n")
    sys.stdout.flush()
