"""The ``policy compare`` command: two policies on the same questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from orchestrator.cli.common import IndexOption, JsonOption, errors, fail, print_json, run
from orchestrator.cli.ending import SOME_BAD
from orchestrator.cli.option_groups import grouped
from orchestrator.cli.policy.options import QTableOption, with_qtable
from orchestrator.cli.question_options import RequestOptions
from orchestrator.settings import Settings, load_settings

if TYPE_CHECKING:
    from orchestrator.cli.jobs.files import Questions
    from orchestrator.question.decisions.comparison import Side
    from orchestrator.question.decisions.forms import CompareOutput

SideArgument = Annotated[
    str,
    typer.Argument(
        metavar="POLICY",
        help="Policy with its settings, e.g. router:qtable=off, or a fixed strategy, e.g. direct, "
        "compressed:keep=0.2,compressor=NAME or briefcontext.",
    ),
]


LeftOption = Annotated[
    str | None,
    typer.Option(
        "--left",
        metavar="USD",
        help="Remaining budget for each question in dollars. Default: no limit.",
    ),
]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wanted:
    """Parsed command line."""

    first: Side
    second: Side
    questions: Questions
    index: str | None
    #: dollars for each question; ``None``: no limit
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
        "effort",
        "quotes",
        "compressor",
        "partition_size",
        "partitions",
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
            help='Questions, JSON Lines (.gz allowed): {"question": …}. -: standard input.',
        ),
    ],
    index: IndexOption = None,
    left: LeftOption = None,
    rows: CompareOptions,
    qtable: QTableOption = None,
    show: Annotated[
        int,
        typer.Option(
            "--show", min=0, max=10_000, help="Maximum number of differing questions to list."
        ),
    ] = 20,
    as_json: JsonOption = False,
) -> None:
    """Compare the decisions and the estimated costs of two policies. No model is called.

    Exit status 1: some rows are invalid.
    """
    from orchestrator.cli.jobs.files import read_questions
    from orchestrator.cli.policy.replay_view import show_compare
    from orchestrator.question.decisions.comparison import Side

    with errors(as_json=as_json):
        wanted = _Wanted(
            first=Side.parse(first),
            second=Side.parse(second),
            questions=read_questions(questions),
            index=index,
            left=_dollars(left),
            show=show,
            defaults=rows.given(),
            settings=with_qtable(load_settings(), qtable),
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
    from orchestrator.question.decisions.comparison import Comparison
    from orchestrator.question.estimates.costs import make_estimator
    from orchestrator.question.estimates.rows import read_rows
    from orchestrator.service import make_decider, make_service, open_connections

    settings = wanted.settings
    check_defaults(wanted.defaults, settings)
    models = Models(settings.embedder, settings.embedding)
    async with open_connections(settings, models) as connections:
        estimator = make_estimator(settings, connections)
        name = wanted.defaults.get("model", settings.model)
        # once for all rows
        estimator.check(name)
        if wanted.left is not None and estimator.free(name):
            fail(f"{name} is free, so --left has no effect. Choose another model with --model.")
        service = await make_service(settings, models, connections, wanted.index)
        # with the loaded models
        estimator = make_estimator(settings, connections, service.compressors)
        decider = await to_thread.run_sync(
            make_decider, settings, estimator, service.index, service.compressors
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
        raise typer.BadParameter(f"--left must be an amount of dollars, e.g. 0.01 (got {text!r})")
    return dollars
