"""The ``policy calibrate`` command: calibrate preflight for an index and an order of passages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from orchestrator.cli.common import IndexOption, JsonOption, TenantOption, errors, print_json, run
from orchestrator.cli.ending import SOME_BAD
from orchestrator.cli.option_groups import grouped
from orchestrator.cli.purchases import progress, say, show_left_out
from orchestrator.cli.question_options import RequestOptions
from orchestrator.settings import Settings, load_settings
from posology.hub import require

if TYPE_CHECKING:
    from orchestrator.training.calibration.run import Made, Wanted
    from policies.calibration import Calibration

#: suffix of the run's file, after the name of the calibration's file
_RUN = ".run.jsonl"


class RetrievalOptions(RequestOptions):
    """How all questions are retrieved."""

    names = ("k", "mode")


@grouped
def calibrate(
    *,
    questions: Annotated[
        str,
        typer.Option(
            "--questions",
            metavar="FILE",
            help='Questions, JSON Lines (.gz allowed): {"question": …}, with "gold", the ids of the passages that answer '
            "it, if they are known. -: standard input.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File of the calibration.")],
    index: IndexOption = None,
    retrieval: RetrievalOptions,
    issue_rate: Annotated[
        float | None,
        typer.Option(
            "--issue-rate",
            min=0.001,
            max=0.999,
            help="Expected share of questions whose key passage is not among the first three, where no gold is known. "
            "Default: 0.09.",
        ),
    ] = None,
    tenant: TenantOption = None,
    as_json: JsonOption = False,
) -> None:
    """Calibrate preflight: the probability that the key passage is not among the first three.

    It is learned for the order of --mode and POSOLOGY_RERANKER; other orders in FILE are kept. Without gold, the first
    passage of a held ranking stands for the key passage. Features are kept in OUT.run.jsonl, so the same command
    resumes. No model is called, except a paid embedder. Exit status 1: some lines were left out.
    """
    with errors(as_json=as_json):
        from orchestrator.cli.jobs.files import check_output, read_questions
        from orchestrator.cli.policy.calibration_view import show_calibration
        from orchestrator.question.qtables import load_calibration, save_calibration
        from orchestrator.question.request import AskRequest
        from orchestrator.training.calibration.forms import CalibratedOutput
        from orchestrator.training.calibration.learning import ISSUE_RATE
        from orchestrator.training.calibration.run import Wanted, describe
        from orchestrator.training.qtable.questions import read_examples
        from orchestrator.training.qtable.run import left_out
        from policies.specs import at_once

        require("train", "posology policy calibrate")
        settings = load_settings()
        check_output(out)
        request = AskRequest.parse({"question": "?", **retrieval.given()}).to_request(settings)
        wanted = Wanted(
            examples=read_examples(read_questions(questions).lines, settings),
            k=request.k,
            mode=request.mode,
            rate=ISSUE_RATE if issue_rate is None else issue_rate,
        )
        path = out.with_name(out.name + _RUN)
        before = load_calibration(out) if out.exists() else None
        made = run(lambda: _calibrate(wanted, settings, index, tenant, before, path))
        save_calibration(made.calibration, out)
        done = CalibratedOutput(
            run=str(path),
            out=str(out),
            order=made.order,
            retrieved=made.retrieved,
            left_out=left_out(made.left_out),
            calibration=describe(made.calibration, at_once(settings.policy)),
        )
        if as_json:
            print_json(done)
        else:
            show_left_out(done.left_out)
            show_calibration(Console(), done.calibration)
            say([f"Calibration written to {out}. To use it: POSOLOGY_CALIBRATION={out}"])
    if done.left_out:
        raise typer.Exit(SOME_BAD)


async def _calibrate(
    wanted: Wanted,
    settings: Settings,
    index: str | None,
    tenant: str | None,
    before: Calibration | None,
    path: Path,
) -> Made:
    from orchestrator.budget import open_budget
    from orchestrator.service import open_service
    from orchestrator.training.calibration.rows import open_run
    from orchestrator.training.calibration.run import calibrate
    from posology.budget.ledger.journal import LedgerJournal
    from posology.llm.accounting import Account

    payer = tenant or settings.tenant
    # what is calibrated must not decide whether the service opens
    plain = settings.model_copy(update={"calibration": None})
    with open_run(path) as file, progress(len(wanted.asked)) as tick:
        async with (
            open_budget(plain, payer) as budget,
            open_service(plain, index, meter=budget.meter) as service,
        ):
            spend = service.pipeline.spend(LedgerJournal(budget.ledger, Account()), payer)
            return await calibrate(wanted, file, service, spend, before=before, tick=tick)
