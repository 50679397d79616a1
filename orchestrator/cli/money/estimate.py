"""``posology estimate``: what a file of questions will cost, before anything is spent."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from orchestrator.cli.common import (
    SOME_BAD,
    IndexOption,
    JsonOption,
    TenantOption,
    errors,
    fail,
    print_json,
    run,
)
from orchestrator.cli.option_groups import grouped
from orchestrator.cli.question_options import RowOptions
from orchestrator.settings import Settings, load_settings
from posology.errors import StoreUnavailable

if TYPE_CHECKING:
    from orchestrator.cli.jobs.files import Questions
    from orchestrator.question.estimates.rows import Standing
    from posology.published.estimates import EstimateOutput

#: tries at a command: whoever wants a number need not wait for a store that is away
_TRIES = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wanted:
    """What the command line asks for."""

    questions: Questions
    #: ``None``: nothing to compare with
    answers: Questions | None
    #: where the answers stand
    path: str
    index: str | None
    tenant: str
    defaults: Mapping[str, Any]
    settings: Settings


@grouped
def estimate(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help='JSON Lines, .gz too, each row {"question": …}, as for batch; - reads standard input.',
        ),
    ],
    *,
    index: IndexOption = None,
    tenant: TenantOption = None,
    rows: RowOptions,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="FILE",
            help="Answers to these questions that batch wrote: tells how far off the estimate is.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate what questions will cost, by each strategy: low, expected and worst. No model is called.

    What is told comes from what is retrieved and from counting tokens. The exit status is 1 when rows
    are bad.
    """
    from orchestrator.cli.jobs.files import read_questions
    from orchestrator.cli.money.estimate_view import show_bad, show_estimate

    with errors(as_json=as_json):
        settings = load_settings()
        wanted = _Wanted(
            questions=read_questions(source),
            answers=read_questions(against) if against else None,
            path=against or "",
            index=index,
            tenant=tenant or settings.tenant,
            defaults=rows.given(),
            settings=settings,
        )
        out = run(lambda: _run(wanted))
        if as_json:
            print_json(out)
        else:
            show_bad(Console(stderr=True), out)
            show_estimate(Console(), out)
    if out.bad:
        raise typer.Exit(SOME_BAD)


async def _run(wanted: _Wanted) -> EstimateOutput:
    from orchestrator.jobs.rows import check_defaults
    from orchestrator.models import Models
    from orchestrator.question.estimates.accuracy import compare, read_answers
    from orchestrator.question.estimates.costs import make_estimator
    from orchestrator.question.estimates.rows import Estimates, read_rows
    from orchestrator.service import make_service, open_connections

    started, settings = time.perf_counter(), wanted.settings
    check_defaults(wanted.defaults, settings)
    models = Models(settings.embedder, settings.embedding)
    async with open_connections(settings, models) as connections:
        estimator = make_estimator(settings, connections)
        # once, instead of for every row
        estimator.check(wanted.defaults.get("model", settings.model))
        standing = await _standing(settings, wanted.tenant)
        service = await make_service(settings, models, connections, wanted.index)
        # with the models that are loaded already
        estimator = make_estimator(settings, connections, service.compressors)
        estimates = Estimates(service=service, estimator=estimator, settings=settings)
        rows = list(read_rows(wanted.questions.lines, wanted.defaults, settings))
        found = await estimates(rows, standing=standing)
        accuracy = None
        if wanted.answers is not None:
            answers = read_answers(wanted.answers.lines, wanted.path)
            accuracy = compare(found, answers, wanted.path)
        return estimates.output(found, started=started, standing=standing, accuracy=accuracy)


async def _standing(settings: Settings, tenant: str) -> Standing | None:
    """What the tenant has left; ``None`` where no ledger is configured or it is out of reach."""
    from orchestrator.jobs.place import known_store
    from orchestrator.question.estimates.rows import read_standing
    from posology.store.connection import connect

    url = known_store(settings)
    if url is None:
        return None
    redis = connect(url, patience=_TRIES)
    try:
        return await read_standing(redis, url, tenant)
    except StoreUnavailable as error:
        fail(f"{error}; the estimate goes on without what is left and what earlier calls took")
        return None
    finally:
        await redis.aclose()
