"""``posology eval``: price, ask, measure, report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from orchestrator.cli.common import (
    IndexOption,
    JsonOption,
    TenantOption,
    errors,
    print_json,
    run,
    tell_preparing,
)
from orchestrator.cli.ending import SOME_BAD
from orchestrator.cli.option_groups import Group, grouped
from orchestrator.cli.purchases import (
    DryRunOption,
    YesOption,
    buying,
    cost_lines,
    has_terminal,
    say,
)
from orchestrator.cli.question_options import RequestOptions
from orchestrator.rendering.words import money
from orchestrator.settings import Settings, load_settings
from posology.errors import InputError

if TYPE_CHECKING:
    from orchestrator.evaluation.folder import Folder
    from orchestrator.evaluation.forms import EvalEstimate, EvalOutput
    from orchestrator.evaluation.measures import Other
    from orchestrator.evaluation.plan import Plan
    from orchestrator.training.paid.run import Terms


class AskedOptions(RequestOptions):
    """How all questions are asked that do not say so themselves."""

    names = (
        "k",
        "mode",
        "max_tokens",
        "effort",
        "tier",
        "quotes",
        "support",
        "support_model",
        "compressor",
        "partition_size",
        "retracted",
        "filters",
        "index_version",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class RunOptions(Group):
    """Policies, models, size and payment of a run."""

    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="POLICY",
            help="Policy with its settings, or a fixed strategy, e.g. direct or compressed:keep=0.3. Repeat for several. "
            "Default: POSOLOGY_POLICY.",
        ),
    ] = None
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="Model that answers, provider:name, or simulated:PROFILE, which answers from the known answers as published "
            "models did. Repeat for several. Default: POSOLOGY_MODEL.",
        ),
    ] = None
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            min=1,
            metavar="N",
            help="Maximum number of questions of a suite: a random sample, the same in every run; a larger N adds to it. "
            "Default: all.",
        ),
    ] = None
    at_once: Annotated[
        int,
        typer.Option(
            "--at-once",
            min=1,
            max=1_000,
            metavar="N",
            help="Questions in work at the same time; 1 to measure durations. Default: 4.",
            show_default=False,
        ),
    ] = 4
    tenant: TenantOption = None
    max_cost: Annotated[
        str | None,
        typer.Option(
            "--max-cost",
            metavar="USD",
            help="Maximum cost of the folder's calls in dollars, earlier runs included. Required for paid models.",
        ),
    ] = None
    dry_run: DryRunOption = False
    yes: YesOption = False

    def terms(self, settings: Settings) -> Terms:
        """Return who pays.

        Raises:
            InvalidQuery: the maximum cost is no amount of dollars.
        """
        from orchestrator.models import Models
        from orchestrator.question.request import AskRequest
        from orchestrator.training.paid.run import Terms

        cap = AskRequest.parse({"question": "?", "max_cost_usd": self.max_cost}).max_cost_usd
        tenant = self.tenant or settings.tenant
        return Terms(
            tenant=tenant,
            cap=cap,
            settings=settings.model_copy(update={"tenant": tenant}),
            models=Models(settings.embedder, settings.embedding),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wanted:
    """Parsed command line, with the open folder."""

    plan: Plan
    folder: Folder
    terms: Terms
    index: str | None
    #: number of the index's version; ``None``: the newest, or that of the folder's rows
    version: int | None
    #: questions in work at the same time
    at_once: int
    #: whether only the price is asked for
    dry: bool
    #: whether a person may be asked to confirm
    confirm: bool
    #: earlier run to compare with; ``None``: none
    other: Other | None


@grouped
def evaluate(
    suites: Annotated[
        list[str],
        typer.Argument(
            metavar="SUITE",
            help="Questions with known answers: a file of your own (rows of a batch with gold), or FORMAT:FILE with a file "
            "that you have downloaded. FORMAT: pubmedqa, bioasq (its yes/no questions), mirage, scifact or squad.",
        ),
    ],
    *,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Folder of the rows, the paid calls and the reports."
        ),
    ],
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="DIR",
            help="Folder of an earlier run: report paired differences, question by question.",
        ),
    ] = None,
    index: IndexOption = None,
    own: Annotated[
        bool,
        typer.Option(
            "--own-passages",
            help="Answer from the passages in the suites' files (pubmedqa, bioasq, squad), which are indexed once in DIR.",
        ),
    ] = False,
    running: RunOptions,
    asked: AskedOptions,
    as_json: JsonOption = False,
) -> None:
    """Ask questions with known answers, and report how often each policy and model is right, and at what cost.

    Every question of every suite is asked once for each policy and model. The estimated cost is printed first, and at a
    terminal you are asked to confirm. Each answer becomes a row of DIR/rows.jsonl at once; the same command resumes an
    interrupted run and pays for no call twice. DIR/report.md and DIR/report.html show accuracy, refusals, wrong answers,
    citations, support, tokens, cost and time, with 95 % intervals (bootstrap over questions).

    Policies decide as if the budget had no limit; the run ends at the first call that --max-cost or the tenant's limits do not
    pay for. Exit status 1: some questions have no answer.
    """
    from orchestrator.cli.evaluation.view import show_evaluation
    from orchestrator.evaluation.folder import open_folder, read_folder
    from orchestrator.evaluation.forms import Outcome
    from orchestrator.evaluation.literature import own_index
    from orchestrator.evaluation.measures import Other
    from orchestrator.evaluation.plan import plan, ways_of
    from orchestrator.evaluation.suites import read_suites

    if own and index is not None:
        raise typer.BadParameter("--own-passages and --index exclude each other")
    with errors(as_json=as_json):
        settings = load_settings()
        tell_preparing()
        planned = plan(
            read_suites(suites),
            ways_of(running.policies or [settings.policy], running.models or [settings.model]),
            asked.given(),
            settings,
            limit=running.limit,
        )
        other = None if against is None else Other(path=against, rows=read_folder(against))
        with open_folder(out) as folder:
            if own:
                index = str(own_index(planned.suites, out, settings, Console(stderr=True)))
            wanted = _Wanted(
                plan=planned,
                folder=folder,
                terms=running.terms(settings),
                index=index,
                version=asked.given().get("index_version"),
                at_once=running.at_once,
                dry=running.dry_run,
                confirm=not (running.yes or as_json),
                other=other,
            )
            found = _run(wanted)
        if as_json:
            print_json(found)
        else:
            show_evaluation(Console(), found)
    if any(cell.missing or cell.outcomes[Outcome.FAILED] for cell in found.cells):
        raise typer.Exit(SOME_BAD)


def _run(wanted: _Wanted) -> EvalOutput:
    """Print the price, ask what is left, and write the reports."""
    from orchestrator.evaluation.report import write_reports
    from orchestrator.evaluation.run import output

    estimate, index = run(lambda: _price(wanted))
    say(_estimate_lines(estimate))

    def result() -> EvalOutput:
        return output(wanted.plan, wanted.folder, estimate, index, wanted.other)

    if wanted.dry:
        return result().model_copy(update={"cells": (), "differences": ()})
    if not estimate.free and wanted.terms.cap is None:
        raise InputError(
            "the run is not free: say with --max-cost how much it may cost. "
            f"Expected {money(estimate.expected_usd)}, maximum {money(estimate.worst_usd)}."
        )
    check = wanted.confirm and not estimate.free and has_terminal()
    try:
        with buying(estimate.questions, wanted.folder.path, check=check, unit="questions") as tick:
            run(lambda: _ask(wanted, tick))
    finally:
        found = result()
        if wanted.folder.rows.content:
            # of an interrupted run, too
            write_reports(found, wanted.folder.path)
    return found


async def _price(wanted: _Wanted) -> tuple[EvalEstimate, str]:
    from orchestrator.evaluation.run import estimate, opened

    async with opened(
        wanted.terms, wanted.index, wanted.folder, wanted.plan, wanted.version
    ) as found:
        return await estimate(wanted.plan, wanted.folder, wanted.terms, found), found.begun.index


async def _ask(wanted: _Wanted, tick: Callable[[int], None]) -> None:
    from orchestrator.evaluation.run import ask_all, opened

    async with opened(
        wanted.terms, wanted.index, wanted.folder, wanted.plan, wanted.version
    ) as found:
        await ask_all(
            wanted.plan, wanted.folder, wanted.terms, found, at_once=wanted.at_once, tick=tick
        )


def _estimate_lines(out: EvalEstimate) -> Iterator[str]:
    before = f"; {out.answered:,} already answered" if out.answered else ""
    yield f"{out.questions:,} questions to ask, for all policies and models{before}"
    if out.questions:
        yield from cost_lines(out)
