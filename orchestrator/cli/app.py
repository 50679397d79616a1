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
- 16 database of the ledger's mirror unreachable
- 70 internal error
- 74 the output cannot be written
- 130 interrupted
"""

from __future__ import annotations

import errno
import gc
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from orchestrator.cli.ending import DEFECT, INTERRUPTED, UNWRITTEN, Ending, ended, say
from orchestrator.cli.lazy import Entry, Section, lazy_group
from orchestrator.cli.output.streams import discard, has_left, prepare_streams
from orchestrator.environment import debug_wanted, prepare_libraries

SECTIONS = (
    Section(
        title="Ask",
        entries=(
            Entry(
                name="ask",
                help="Answer a question from the index, with verified quotes, or refuse.",
                target="orchestrator.cli.ask.command:ask",
            ),
            Entry(
                name="chat",
                help="Answer the questions of a conversation, one a line.",
                target="orchestrator.cli.ask.chat:chat",
                long=True,
            ),
            Entry(
                name="search",
                help="Show the passages that a question would be answered from, with their places in every ranking.",
                target="orchestrator.cli.ask.command:search",
            ),
            Entry(
                name="table",
                help="Fill in an evidence table from documents, each value with verified quotes, or not reported.",
                target="orchestrator.cli.tables.command:table",
                long=True,
            ),
            Entry(
                name="screen",
                help="Put search results in reading order, and take the decisions of one or two readers from their sheets.",
                target="orchestrator.cli.tables.screening:screen",
                long=True,
            ),
            Entry(
                name="show",
                help="Print a passage in full, with its metadata and a link.",
                target="orchestrator.cli.ask.passage:show",
            ),
            Entry(
                name="quote",
                help="Find the passages that contain a quote, word for word or nearly, and say what differs.",
                target="orchestrator.cli.ask.passage:quote",
            ),
            Entry(
                name="demo",
                help="Ingest the sample notes of Posology and answer questions about them through a queue.",
                target="orchestrator.cli.ask.command:demo",
                long=True,
            ),
        ),
    ),
    Section(
        title="Literature",
        entries=(
            Entry(
                name="ingest",
                help="Read literature into an index; an interrupted run resumes.",
                target="orchestrator.cli.index.ingest:ingest",
                long=True,
            ),
            Entry(
                name="fetch",
                help="Fetch literature from PubMed or Europe PMC, or study records from ClinicalTrials.gov, and index them.",
                target="orchestrator.cli.live.fetch:fetch",
                long=True,
            ),
            Entry(
                name="ingest-uploads",
                help="Ingest the files that tenants upload over HTTP, one after the other, and read their tables, until Ctrl-C.",
                target="orchestrator.cli.index.uploads:ingest_uploads",
            ),
            Entry(
                name="uploads",
                help="List and cancel ingests of uploaded files, of all tenants.",
                target="orchestrator.cli.index.uploads:app",
            ),
            Entry(
                name="sync",
                help="Apply new files of a folder to an index, in NLM's order, once each.",
                target="orchestrator.cli.index.sync:sync",
                long=True,
            ),
            Entry(
                name="index",
                help="Inspect an index, and flag its passages by files of notices.",
                target="orchestrator.cli.index.ingest:app",
            ),
        ),
    ),
    Section(
        title="Queue",
        entries=(
            Entry(
                name="submit",
                help="Put a question into the queue and print the job id.",
                target="orchestrator.cli.jobs.submit:submit",
            ),
            Entry(
                name="batch",
                help="Answer a file of questions through the queue, one output row for each input row, in order.",
                target="orchestrator.cli.jobs.batch:batch",
                long=True,
            ),
            Entry(
                name="batches",
                help="List, inspect and cancel batches in the queue.",
                target="orchestrator.cli.jobs.batches:app",
            ),
            Entry(
                name="jobs",
                help="List, inspect, cancel and retry jobs in the queue.",
                target="orchestrator.cli.jobs.commands:app",
            ),
            Entry(
                name="watch",
                help="Ask a question now, and again when its evidence in the index has changed; tell only of changes.",
                target="orchestrator.cli.jobs.watches:watch",
            ),
            Entry(
                name="watches",
                help="List, inspect, pause, resume and end watches.",
                target="orchestrator.cli.jobs.watches:app",
            ),
            Entry(
                name="webhook",
                help="Manage webhook endpoints, and list and resend failed messages.",
                target="orchestrator.cli.jobs.webhooks:app",
            ),
            Entry(
                name="answers",
                help="Check stored answers against the present literature, and write them into libraries.",
                target="orchestrator.cli.answers.commands:app",
            ),
        ),
    ),
    Section(
        title="Money",
        entries=(
            Entry(
                name="estimate",
                help="Estimate the cost of questions by each strategy: minimum, expected, maximum.",
                target="orchestrator.cli.money.estimate:estimate",
            ),
            Entry(
                name="spend",
                help="Show spending and remaining budgets.",
                target="orchestrator.cli.money.spend:spend",
            ),
            Entry(
                name="ledger",
                help="Check, repair, export, archive and mirror the ledger of model calls.",
                target="orchestrator.cli.money.ledger:app",
            ),
            Entry(
                name="reconcile",
                help="Compare the ledger with a provider's usage and cost exports.",
                target="orchestrator.cli.money.reconcile:reconcile",
            ),
        ),
    ),
    Section(
        title="Policies",
        entries=(
            Entry(
                name="policy",
                help="Train, inspect and compare policies.",
                target="orchestrator.cli.policy.group:app",
                long=True,
            ),
            Entry(
                name="eval",
                help="Ask questions with known answers, and report how often each policy and model is right, and at what cost.",
                target="orchestrator.cli.evaluation.command:evaluate",
                long=True,
            ),
            Entry(
                name="compressor",
                help="Train compressors: labels and pruners, data sets and summarization models.",
                target="orchestrator.cli.compressor.group:app",
                long=True,
            ),
        ),
    ),
    Section(
        title="Administration",
        entries=(
            Entry(
                name="init",
                help="Write a commented configuration file with every setting at its default.",
                target="orchestrator.cli.setup.config:init",
            ),
            Entry(
                name="config",
                help="Show the configuration.",
                target="orchestrator.cli.setup.config:app",
            ),
            Entry(
                name="keys",
                help="Store API keys of providers for this user.",
                target="orchestrator.cli.setup.keys:app",
            ),
            Entry(
                name="models",
                help="Show what language models can do and cost, and check them.",
                target="orchestrator.cli.models.commands:app",
            ),
            Entry(
                name="doctor",
                help="Check Python, configuration, Redis, disk, memory, encoder, index, keys, model, model servers, network and ports, each with its remedy.",
                target="orchestrator.cli.setup.doctor:doctor",
            ),
            Entry(
                name="up",
                help="Run Redis, workers and the HTTP API on this machine until Ctrl-C.",
                target="orchestrator.cli.stack:up",
                long=True,
            ),
            Entry(
                name="api",
                help="Serve only the HTTP API; Redis and workers run elsewhere.",
                target="orchestrator.cli.stack:api",
                long=True,
            ),
            Entry(
                name="mcp",
                help="Serve the tools for assistants (MCP) on standard input and output, until the client ends.",
                target="orchestrator.cli.ask.assistant:mcp",
                long=True,
            ),
            Entry(
                name="logs",
                help="Print the log lines of the stack that `posology up` runs or ran, oldest first.",
                target="orchestrator.cli.logs:logs",
            ),
            Entry(
                name="backup",
                help="Copy a running service: Redis, the ledger as rows, the index and the memory.",
                target="orchestrator.cli.setup.backup:backup",
            ),
            Entry(
                name="tenants",
                help="Manage tenants, their limits and their API keys.",
                target="orchestrator.cli.money.tenants:app",
            ),
            Entry(
                name="schema",
                help="Print the JSON schema of a command's --json output.",
                target="orchestrator.cli.schemas:schema",
            ),
        ),
    ),
)

#: commands that write much, or run other processes: they end as the interpreter does
_LONG = frozenset(entry.name for section in SECTIONS for entry in section.entries if entry.long)
#: objects more, after which Python looks for garbage; its own default is 700
_GARBAGE = 50_000
_FREE = "Free some space and repeat the command."
#: errors of what takes no more → what to do
_UNWRITABLE = {
    errno.ENOSPC: _FREE,
    errno.EDQUOT: _FREE,
    errno.EFBIG: _FREE,
    errno.EIO: "Check the terminal or the disk.",
    # nothing else is written without being opened
    errno.EBADF: "Standard output is closed: use > /dev/null to throw it away.",
}

app = typer.Typer(
    name="posology",
    cls=lazy_group(SECTIONS),
    help="Answer questions over the medical literature. Every quote is checked against its source.",
    epilog='Example: posology ask "Does aspirin lower the risk of pre-eclampsia?" --index ./index',
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(*, wanted: bool) -> None:
    if wanted:
        from posology.version import __version__

        sys.stdout.write(f"posology {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    *,
    version: Annotated[  # noqa: ARG001 - its callback prints it
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=lambda v: _version(wanted=v),
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    if isinstance(context.obj, Ending) and context.invoked_subcommand in _LONG:
        context.obj.at_once = False
    # what a newcomer types first is no mistake
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")


def main() -> None:
    """Run the command, and end the process."""
    # imports make many objects and little garbage: looking for it takes a tenth of a short command's time
    gc.set_threshold(_GARBAGE)
    prepare_streams()
    prepare_libraries()
    ended(lambda ending: guard(lambda: app(obj=ending)))


def guard(command: Callable[[], object]) -> None:
    """Run a command without tracebacks, unless ``POSOLOGY_DEBUG`` is set."""
    try:
        command()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except SystemExit as end:
        if not has_left(end):
            raise
        discard()
        sys.exit(0)
    except Exception as error:
        if debug_wanted():
            raise
        if isinstance(error, OSError) and error.errno in _UNWRITABLE:
            discard()
            say(f"cannot write: {error.strerror}. {_UNWRITABLE[error.errno]}")
            sys.exit(UNWRITTEN)
        from orchestrator.cli.common import fail

        fail(
            f"internal error: {type(error).__name__}: {error}. "
            "Set POSOLOGY_DEBUG=1 for the traceback and report it."
        )
        sys.exit(DEFECT)
