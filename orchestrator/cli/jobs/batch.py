"""``posology batch``: a file of questions in, a file of answers out."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from orchestrator.cli.common import JsonOption, TenantOption, errors, fail, print_json, run
from orchestrator.cli.ending import INTERRUPTED, SOME_BAD
from orchestrator.cli.option_groups import grouped
from orchestrator.cli.question_options import BatchOptions
from orchestrator.settings import DEFAULT_POLICY, Settings, load_settings
from posology.errors import BadFile, BatchNotFound
from posology.types import QUOTE_FORMS, SUPPORT_MODES

if TYPE_CHECKING:
    from orchestrator.cli.jobs.files import Questions, Sink
    from orchestrator.jobs.batches import Batches
    from posology.published.jobs import BatchOutput


#: defaults that are hashed even if they are not given, so that batches of earlier versions are found again
_HASHED: Mapping[str, Any] = MappingProxyType({"k": 8, "mode": "fused"})


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wanted:
    """Parsed command line."""

    questions: Questions
    #: ``None``: nowhere, or standard output
    output: Path | None
    tenant: str
    defaults: Mapping[str, Any]
    fresh: bool
    watch: bool
    patience: float
    settings: Settings

    @property
    def content(self) -> str:
        """Stands for these questions, asked in this way.

        Raises:
            BadFile: the configured templates cannot be read or used.
        """
        from orchestrator.question.checks import own_prompts

        settled = [self.settings.model, self.settings.max_tokens]
        if self.settings.effort is not None:
            settled.append(self.settings.effort)
        if self.settings.quotes != QUOTE_FORMS[0]:
            settled.append(self.settings.quotes)
        if self.settings.support != SUPPORT_MODES[0]:
            settled.append(f"{self.settings.support} {self.settings.support_model}")
        if self.settings.policy != DEFAULT_POLICY:
            settled.append(f"policy {self.settings.policy}")
        if self.settings.tier != "standard":
            settled.append(f"tier {self.settings.tier}")
        if (prompts := own_prompts(self.settings)) is not None:
            settled.append(f"prompts {prompts}")
        asked = json.dumps(
            [self.questions.digest, {**_HASHED, **self.defaults}, settled], sort_keys=True
        )
        return f"content:{hashlib.sha256(asked.encode()).hexdigest()}"


@grouped
def batch(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help='JSON Lines, .gz too, each row {"question": …} with an id of its own and any '
            "option of a question; - reads standard input. Blank lines are ignored.",
        ),
    ],
    *,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Output file. -: standard output."),
    ] = None,
    tenant: TenantOption = None,
    rows: BatchOptions,
    watch: Annotated[
        bool, typer.Option("--watch/--no-watch", help="Wait for the answers, or only submit.")
    ] = True,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Ask all questions again, and pay again.")
    ] = False,
    patience: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="Seconds to wait for an unreachable Redis."),
    ] = 600.0,
    as_json: JsonOption = False,
) -> None:
    """Answer a file of questions through the queue, one output row for each input row, in order.

    The same command goes on where it was interrupted, and collects what was only submitted: the same
    questions and options are the same batch. The output file has its name when it is complete; until
    then its name ends in .part. The exit status is 1 when rows have failed.

    --max-cost is per question. The cap for a whole batch is the tenant's budget: posology tenants set NAME --total USD.
    """
    from orchestrator.cli.jobs.files import STREAM, check_output, read_questions

    if watch and output is None:
        raise typer.BadParameter("name the output: -o FILE, or -o - for standard output")
    if as_json and output == STREAM:
        raise typer.BadParameter("--json and -o - would both write standard output")
    with errors(as_json=as_json):
        settings = load_settings()
        path = None if output is None or output == STREAM else Path(output)
        if path is not None:
            # before anything is spent
            check_output(path)
        wanted = _Wanted(
            questions=read_questions(source),
            output=path,
            tenant=tenant or settings.tenant,
            defaults=rows.given(),
            fresh=fresh,
            watch=watch,
            patience=patience,
            settings=settings,
        )
        try:
            out, failed = run(lambda: _run(wanted))
        except KeyboardInterrupt:
            fail(
                "interrupted. Workers continue with the submitted questions; to collect the answers, "
                f"run this command again{' without --fresh' if fresh else ''}"
            )
            raise typer.Exit(INTERRUPTED) from None
        if as_json:
            print_json(out)
        elif not watch:
            sys.stdout.write(f"{out.id}\n")
    if failed:
        raise typer.Exit(SOME_BAD)


async def _run(wanted: _Wanted) -> tuple[BatchOutput, int]:
    """The batch, and how many rows of the output have failed."""
    from orchestrator.cli.jobs.collection import Patience, open_again
    from orchestrator.cli.jobs.files import StreamSink
    from orchestrator.cli.jobs.progress import BatchProgress, summary
    from orchestrator.jobs.batches import Batches

    with BatchProgress(Console(stderr=True)) as progress:
        patience = Patience(wanted.patience, progress.tell)
        if (cap := wanted.defaults.get("max_cost_usd")) is not None:
            progress.tell(f"--max-cost {cap} is per question, not for the whole batch")
        stream = StreamSink(sys.stdout.buffer)
        fresh = wanted.fresh

        def show(now: BatchOutput) -> None:
            patience.reached()
            progress.show(now)

        async def attempt() -> tuple[BatchOutput, int]:
            nonlocal fresh
            async with open_again(wanted.settings, patience) as store:
                batches = Batches(store, wanted.settings)
                key = await batches.generation(wanted.content, tenant=wanted.tenant, fresh=fresh)
                # a new one once, however often the rest is tried
                fresh = False
                patience.reached()
                return await _answer(wanted, batches, key, stream, show)

        out, failed = await patience(attempt)
        if wanted.watch:
            for line in summary(out, failed, str(wanted.output or "standard output")):
                progress.tell(line)
        return out, failed


async def _answer(
    wanted: _Wanted,
    batches: Batches,
    key: str,
    stream: Sink,
    show: Callable[[BatchOutput], None],
) -> tuple[BatchOutput, int]:
    from orchestrator.cli.jobs.collection import collect
    from orchestrator.cli.jobs.files import file_sink
    from orchestrator.jobs.batches import batch_id

    path, name = wanted.output, batch_id(wanted.tenant, key)
    if path is not None and wanted.watch:
        done = await _done(wanted, batches, name, path)
        if done is not None:
            return done
    out = await batches.submit(
        wanted.questions.lines, tenant=wanted.tenant, key=key, defaults=wanted.defaults
    )
    show(out)
    if not wanted.watch:
        return out, 0
    if path is None:
        out = await collect(batches, name, tenant=wanted.tenant, sink=stream, show=show)
        return out, stream.failed
    with file_sink(path, name) as sink:
        out = await collect(batches, name, tenant=wanted.tenant, sink=sink, show=show)
        sink.complete(path)
        return out, sink.failed


async def _done(
    wanted: _Wanted, batches: Batches, name: str, path: Path
) -> tuple[BatchOutput, int] | None:
    """Return the result of a batch whose output is already complete.

    Raises:
        BadFile: the output is of another batch, or its batch is no longer stored. Paid results are neither
            overwritten nor paid for again.
    """
    from orchestrator.cli.jobs.files import part_of, read_written, size

    part = part_of(path, name)
    begun = size(part) > 0
    try:
        out = await batches.get(name, tenant=wanted.tenant)
    except BatchNotFound:
        if begun:
            raise BadFile(
                "it has rows of a batch whose record has expired: move it away, or ask all questions "
                "again with --fresh",
                path=str(part),
            ) from None
        out = None
    if size(path) == 0:
        return None
    if out is not None:
        written = read_written(path)
        if written is not None and written.rows == out.total:
            at = out.total - 1 if written.last is None else written.last.row
            found = await batches.rows(name, tenant=wanted.tenant, after=at - 1, limit=1)
            if [row.job for row in found] == [written.last.job if written.last else None]:
                return out, written.failed
    if begun or wanted.fresh:
        return None
    raise BadFile(
        "it exists, and is not an output of this batch: move it away, choose another file with -o, or "
        "overwrite it with --fresh",
        path=str(path),
    )
