"""The ``posology`` command.

Exit status: 0 done; 1 done, but some records or rows were bad; 2 the command line is wrong; 3 what was
handed in is wrong; 4 what Posology was set up with is wrong; 5 the index cannot serve; 6 the provider
failed; 7 the time was over; 8 a job cannot be worked on as asked; 9 Redis is out of reach; 10 the HTTP API
answered with something unknown; 11 the limits of tenant or job do not allow it; 12 a tenant or its ledger is
not as it has to be; 13 the API key is refused; 14 a provider's account does not agree with the ledger; 15 a
policy decides otherwise from the same records; 70 a defect of Posology; 130 interrupted. A refusal is an answer: 0.
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
    help="Answers questions over the medical literature; every quote is checked against its source.",
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
            help="ask, search, ingest, sync, index, versions, error, job, jobs, batch, estimate, spend, ledger, rebuild, export, "
            "archive, tenant, tenants, reconcile, qtable, promotion, train, replay, compare, dataset, finetune, "
            "label or pruner."
        ),
    ],
) -> None:
    """Print the JSON schema of what a command prints with --json."""
    from orchestrator.question.report import SCHEMAS

    if what not in SCHEMAS:
        raise typer.BadParameter(f"choose one of {', '.join(SCHEMAS)}")
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
        typer.Option("--version", is_eager=True, callback=lambda v: _version(wanted=v)),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command."""
    prepare_libraries()
    guard(app)


def guard(command: Callable[[], object]) -> None:
    """Run a command so that no traceback reaches a user, unless ``POSOLOGY_DEBUG`` asks for it."""
    try:
        command()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception as error:
        if debug_wanted():
            raise
        fail(
            f"a defect of Posology: {type(error).__name__}: {error}. "
            "Set POSOLOGY_DEBUG=1 for the traceback and report it."
        )
        sys.exit(DEFECT)
