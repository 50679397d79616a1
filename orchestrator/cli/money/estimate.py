"""The ``estimate`` command: cost of a file of questions, before anything is spent."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from orchestrator.cli.common import (
    IndexOption,
    JsonOption,
    TenantOption,
    errors,
    fail,
    print_json,
    run,
)
from orchestrator.cli.ending import SOME_BAD
from orchestrator.cli.option_groups import grouped
from orchestrator.cli.question_options import RowOptions
from orchestrator.settings import Settings, load_settings
from posology.errors import StoreUnavailable

if TYPE_CHECKING:
    from orchestrator.cli.jobs.files import Questions
    from orchestrator.question.estimates.rows import Standing
    from posology.published.estimates import EstimateOutput

#: attempts for each Redis command: an estimate does not wait for a store that is down
_TRIES = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wanted:
    """Parsed command line."""

    questions: Questions
    #: earlier answers to compare with; ``None``: none
    answers: Questions | None
    #: file of the answers
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
            help='Questions as for batch, JSON Lines (.gz allowed): {"question": …}. -: standard input.',
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
            help="Answers to these questions, written by batch: report the accuracy of the estimate.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate the cost of questions by each strategy: minimum, expected, maximum. No model is called.

    Passages are retrieved and their tokens counted. Exit status 1: some rows are invalid.
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
        # once for all rows
        estimator.check(wanted.defaults.get("model", settings.model))
        standing = await _standing(settings, wanted.tenant)
        service = await make_service(settings, models, connections, wanted.index)
        # with the loaded models
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
    """Return the tenant's balances; ``None``: no ledger is configured or reachable."""
    from orchestrator.jobs.place import known_store
    from orchestrator.question.estimates.rows import read_standing
    from posology.store.connection import connect

    url = known_store(settings)
    if url is None:
        return None
    redis = connect(url, tries=_TRIES)
    try:
        return await read_standing(redis, url, tenant)
    except StoreUnavailable as error:
        fail(f"{error}. The estimate omits remaining budgets and statistics of earlier calls.")
        return None
    finally:
        await redis.aclose()
