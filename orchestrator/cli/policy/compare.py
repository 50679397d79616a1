"""Two policies beside each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from orchestrator.cli.common import (
    SOME_BAD,
    IndexOption,
    JsonOption,
    errors,
    fail,
    print_json,
    run,
)
from orchestrator.cli.option_groups import grouped
from orchestrator.cli.question_options import RequestOptions
from orchestrator.settings import Settings, load_settings

if TYPE_CHECKING:
    from orchestrator.cli.jobs.files import Questions
    from orchestrator.question.comparison import Side
    from orchestrator.question.policy_forms import CompareOutput

SideArgument = Annotated[
    str,
    typer.Argument(
        metavar="POLICY",
        help="A policy with its settings, e.g. router:qtable=off; or direct, compressed:keep=0.2,compressor=NAME, briefcontext.",
    ),
]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wanted:
    """What the command line asks for."""

    first: Side
    second: Side
    questions: Questions
    index: str | None
    left: Decimal | None
    show: int
    defaults: Mapping[str, Any]
    settings: Settings


class CompareOptions(RequestOptions):
    """Defaults for rows that are decided and not answered."""

    names = (
        "model",
        "k",
        "mode",
        "max_tokens",
        "compressor",
        "partition_size",
        "retracted",
        "filters",
    )


@grouped
def compare(
    first: SideArgument,
    second: SideArgument,
    *,
    questions: Annotated[
        str,
        typer.Option(
            "--questions",
            metavar="FILE",
            help='JSON Lines, .gz too, each row {"question": …}; - reads standard input.',
        ),
    ],
    index: IndexOption = None,
    left: Annotated[
        str | None,
        typer.Option(
            "--left", metavar="USD", help="What each question may cost. Default: no limit."
        ),
    ] = None,
    rows: CompareOptions,
    qtable: Annotated[
        Path | None,
        typer.Option("--qtable", metavar="FILE", help="The Q-table. Default: POSOLOGY_QTABLE."),
    ] = None,
    show: Annotated[
        int, typer.Option("--show", min=0, max=10_000, help="Questions to tell of that differ.")
    ] = 20,
    as_json: JsonOption = False,
) -> None:
    """Show where two policies decide differently, and what each costs by estimate. No model is called.

    The exit status is 1 when rows are bad.
    """
    from orchestrator.cli.jobs.files import read_questions
    from orchestrator.cli.policy.replay_view import show_compare
    from orchestrator.question.comparison import Side

    with errors(as_json=as_json):
        settings = load_settings()
        if qtable is not None:
            settings = settings.model_copy(update={"qtable": str(qtable)})
        wanted = _Wanted(
            first=Side.parse(first),
            second=Side.parse(second),
            questions=read_questions(questions),
            index=index,
            left=_dollars(left),
            show=show,
            defaults=rows.given(),
            settings=settings,
        )
        out = run(lambda: _run(wanted))
        if as_json:
            print_json(out)
        else:
            show_compare(Console(), out)
    if out.bad:
        raise typer.Exit(SOME_BAD)


async def _run(wanted: _Wanted) -> CompareOutput:
    from anyio import to_thread

    from orchestrator.jobs.rows import check_defaults
    from orchestrator.models import Models
    from orchestrator.question.comparison import Comparison
    from orchestrator.question.estimates.costs import make_estimator
    from orchestrator.question.estimates.rows import read_rows
    from orchestrator.service import make_decider, make_service, open_connections

    settings = wanted.settings
    check_defaults(wanted.defaults, settings)
    models = Models(settings.embedder, settings.embedding)
    async with open_connections(settings, models) as connections:
        estimator = make_estimator(settings, connections)
        name = wanted.defaults.get("model", settings.model)
        # once, instead of for every row
        estimator.check(name)
        if wanted.left is not None and estimator.free(name):
            fail(f"{name} costs nothing, so --left limits nothing: name another with --model")
        service = await make_service(settings, models, connections, wanted.index)
        # with the models that are loaded already
        estimator = make_estimator(settings, connections, service.compressors)
        decider = await to_thread.run_sync(
            make_decider, settings, connections, service.index, service.compressors
        )
        comparison = Comparison(
            service=service,
            decider=decider,
            estimator=estimator,
            settings=settings,
            left=wanted.left,
        )
        rows = list(read_rows(wanted.questions.lines, wanted.defaults, settings))
        return await comparison(wanted.first, wanted.second, rows, show=wanted.show)


def _dollars(text: str | None) -> Decimal | None:
    if text is None:
        return None
    try:
        dollars = Decimal(text)
    except InvalidOperation:
        dollars = Decimal("NaN")
    if not dollars.is_finite() or dollars < 0:
        raise typer.BadParameter(f"--left is an amount of dollars, such as 0.01, not {text!r}")
    return dollars
