"""Commands that pay for many calls: shared options, price, confirmation and progress."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from orchestrator.cli.common import TenantOption, fail, run
from orchestrator.cli.ending import INTERRUPTED
from orchestrator.cli.option_groups import Group
from orchestrator.cli.output.tables import print_line
from orchestrator.cli.question_options import RequestOptions
from orchestrator.rendering.forms.money import cover
from orchestrator.rendering.words import money
from orchestrator.settings import Settings
from orchestrator.training.forms import LeftOut, RunTier, TrainingEstimate

if TYPE_CHECKING:
    from orchestrator.question.request import Request
    from orchestrator.training.paid.run import PaidRun, Terms
    from posology.published.money import RunCost

#: seconds between two lines of progress without a terminal
_LINE = 30.0
#: rows without a result that are listed one by one
LISTED = 20

DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Print the estimated cost and make no calls.")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


@dataclass(frozen=True, kw_only=True, slots=True)
class PaymentOptions(Group):
    """Payment of a run: tenant, maximum cost and confirmation."""

    tenant: TenantOption = None
    max_cost: Annotated[
        str | None,
        typer.Option(
            "--max-cost",
            metavar="USD",
            help="Maximum cost of the whole run in dollars, all documents or questions together, earlier parts of an interrupted run included. "
            "Default: the tenant's limits alone.",
        ),
    ] = None
    tier: Annotated[
        RunTier,
        typer.Option(
            help="Service tier: standard, or batch, in which the provider answers within a day for each step, at half "
            "the price."
        ),
    ] = "standard"
    dry_run: DryRunOption = False
    yes: YesOption = False

    def terms(self, settings: Settings, cap: Decimal | None) -> Terms:
        """Return who pays, with the models of the settings."""
        from orchestrator.models import Models
        from orchestrator.training.paid.run import Terms

        return Terms(
            tenant=self.tenant or settings.tenant,
            cap=cap,
            settings=settings,
            models=Models(settings.embedder, settings.embedding),
            tier=self.tier,
        )


class AskingOptions(RequestOptions):
    """How all questions of a run are asked."""

    names = ("model", "k", "mode", "max_tokens", "effort")


def check_request(
    options: RequestOptions, max_cost: str | None, settings: Settings
) -> tuple[Request, Decimal | None]:
    """Validate the options that all calls of a run share.

    Returns:
        An example of a request, and the maximum cost.

    Raises:
        InvalidQuery: a field is invalid.
    """
    from orchestrator.question.request import AskRequest

    example = AskRequest.parse({"question": "?", **options.given(), "max_cost_usd": max_cost})
    return example.to_request(settings), example.max_cost_usd


def carry_out(
    paid: PaidRun[Any, Any], terms: Terms, payment: PaymentOptions, *, as_json: bool
) -> bool:
    """Ask for confirmation and make the calls of a planned run.

    Returns:
        Whether calls were made: ``False`` for a dry run.

    Raises:
        typer.Exit: the user declined, or interrupted the run.
        PosologyError: an error that concerns all calls, such as a spent budget.
    """
    from orchestrator.training.paid.run import buy

    if payment.dry_run:
        return False
    assert paid.file.path is not None, "a command keeps replies in a file"
    check = not (payment.yes or as_json) and has_terminal()
    with buying(len(paid.todo), paid.file.path, check=check) as tick:
        run(lambda: buy(terms, paid, tick))
    return True


def estimate_lines(out: TrainingEstimate) -> Iterator[str]:
    """Yield the size and the estimated cost of a run over questions."""
    before = f"; {out.answered:,} already answered" if out.answered else ""
    yield f"{out.questions:,} questions, {out.calls:,} calls to make{before}"
    if out.calls:
        yield from cost_lines(out)


def show_left_out(found: Sequence[LeftOut]) -> None:
    """Print the lines that were skipped, with their reasons, to standard error."""
    say(listed([f"line {one.line}: {one.reason}" for one in found]), "yellow")


def cost_lines(out: RunCost, whole: str = "run") -> Iterator[str]:
    """Yield the estimated cost and whether the remaining budgets cover it.

    Args:
        out: the estimate.
        whole: what ``--max-cost`` is for.
    """
    if out.free:
        yield "The model is free: $0."
        return
    yield (
        f"Expected cost {money(out.expected_usd)} (minimum {money(out.low_usd)}, maximum {money(out.worst_usd)}), "
        f"{out.input_tokens:,} input and {out.output_tokens:,} output tokens"
    )
    remaining = [(f"{one.scope} budget of {one.tenant}", one.left_usd) for one in out.balances]
    if out.cap_usd is not None:
        remaining.append(
            (f"--max-cost for the whole {whole}", max(Decimal(0), out.cap_usd - out.spent_usd))
        )
    for name, amount in remaining:
        if amount is not None:
            yield f"{name}: {money(amount)} remaining{_cover(out, amount)}"


def _cover(out: RunCost, amount: Decimal) -> str:
    fits = cover(expected=amount >= out.expected_usd, maximum=amount >= out.worst_usd)
    return f", {fits}{'' if amount >= out.expected_usd else '; replies that it pays for are kept'}"


def say(lines: Iterable[str], style: str = "") -> None:
    """Print lines to standard error."""
    console = Console(stderr=True)
    for line in lines:
        print_line(console, line, style)


def listed(lines: Sequence[str], what: str = "") -> Iterator[str]:
    """Yield the first lines, and how many more there are of what they are about."""
    yield from lines[:LISTED]
    if len(lines) > LISTED:
        yield f"… and {len(lines) - LISTED:,} more {what}".rstrip()


def has_terminal() -> bool:
    """Return whether a user can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


@contextmanager
def buying(
    calls: int, path: Path, *, check: bool, unit: str = "calls"
) -> Iterator[Callable[[int], None]]:
    """Ask for confirmation, show progress, and name the file of the replies if the run ends early.

    Args:
        calls: number of calls or conversations to make.
        path: file of the replies.
        check: whether to ask for confirmation.
        unit: noun of what is counted.

    Yields:
        A function that adds a number of ended calls to the progress.

    Raises:
        typer.Exit: the user declined or interrupted.
    """
    if check and calls and not typer.confirm("Proceed?", err=True):
        raise typer.Exit
    try:
        with progress(calls, unit) as tick:
            yield tick
    except BaseException as error:
        fail(f"replies so far are kept in {path}; run the same command again to resume")
        if isinstance(error, KeyboardInterrupt):
            raise typer.Exit(INTERRUPTED) from None
        raise


@contextmanager
def progress(calls: int, unit: str = "calls") -> Iterator[Callable[[int], None]]:
    """Show progress: a bar at a terminal, else a line every 30 seconds.

    Args:
        calls: total number of calls.
        unit: noun of what is counted.

    Yields:
        A function that adds a number of ended calls.
    """
    console = Console(stderr=True)
    bar = Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    done, printed = 0, time.monotonic()

    def tick(more: int) -> None:
        nonlocal done, printed
        done += more
        bar.update(task, completed=done)
        if not console.is_terminal and time.monotonic() - printed > _LINE:
            printed = time.monotonic()
            print_line(console, f"{done:,} of {calls:,} {unit} done")

    with bar:
        task = bar.add_task("", total=calls)
        yield tick
