"""The ``posology`` command.

Exit status:

- 0 success; a refusal is an answer
- 1 success, but some records or rows were invalid
- 2 invalid command line
- 3 invalid input
- 4 invalid configuration
- 5 index error
- 6 provider error
- 7 deadline exceeded
- 8 invalid job state
- 9 Redis unreachable
- 10 unexpected API response
- 11 budget or limit exceeded
- 12 tenant error
- 13 invalid API key
- 14 reconciliation found drift
- 15 a replayed decision differs
- 70 internal error
- 130 interrupted
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from orchestrator.cli import stack
from orchestrator.cli.ask import command as asking
from orchestrator.cli.common import DEFECT, INTERRUPTED, errors, fail
from orchestrator.cli.compressor import group as compressor
from orchestrator.cli.index import ingest
from orchestrator.cli.index.sync import sync
from orchestrator.cli.jobs import commands as jobs
from orchestrator.cli.jobs.batch import batch
from orchestrator.cli.jobs.submit import submit
from orchestrator.cli.money import ledger, tenants
from orchestrator.cli.money.estimate import estimate
from orchestrator.cli.money.reconcile import reconcile
from orchestrator.cli.money.spend import spend
from orchestrator.cli.policy import group as policy
from orchestrator.settings import debug_wanted, prepare_libraries
from posology import __version__

app = typer.Typer(
    name="posology",
    help="Answer questions over the medical literature. Every quote is checked against its source.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(asking.ask)
app.command()(asking.search)
app.command()(ingest.ingest)
app.command()(sync)
app.command()(submit)
app.command()(batch)
app.command()(estimate)
app.add_typer(jobs.app, name="jobs")
app.command()(spend)
app.add_typer(ledger.app, name="ledger")
app.command()(reconcile)
app.add_typer(tenants.app, name="tenants")
app.add_typer(policy.app, name="policy")
app.add_typer(compressor.app, name="compressor")
app.command()(stack.up)
app.command()(stack.api)
app.add_typer(ingest.app, name="index")
app.command()(asking.demo)


@app.command()
def schema(
    what: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name of an output: ask, search, ingest, sync, index, versions, error, job, jobs, batch, estimate, "
            "spend, ledger, rebuild, export, archive, tenant, tenants, reconcile, qtable, promotion, train, replay, "
            "compare, dataset, finetune, label or pruner.",
        ),
    ],
) -> None:
    """Print the JSON schema of a command's --json output."""
    from orchestrator.cli.schemas import SCHEMAS

    if what not in SCHEMAS:
        raise typer.BadParameter(f"NAME must be one of {', '.join(SCHEMAS)} (got {what!r})")
    with errors(as_json=False):
        sys.stdout.write(json.dumps(SCHEMAS[what].model_json_schema(), indent=2) + "\n")
        sys.stdout.flush()


def _version(*, wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"posology {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=lambda v: _version(wanted=v),
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command."""
    prepare_libraries()
    guard(app)


def guard(command: Callable[[], object]) -> None:
    """Run a command without tracebacks, unless ``POSOLOGY_DEBUG`` is set."""
    try:
        command()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        if debug_wanted():
            raise
        fail(
            f"internal error: {type(error).__name__}: {error}. "
            "Set POSOLOGY_DEBUG=1 for the traceback and report it."
        )
        sys.exit(DEFECT)
