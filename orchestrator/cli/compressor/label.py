"""Labels passages for a pruner: a model answers from numbered sentences, and cites."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from orchestrator.cli.common import (
    SOME_BAD,
    IndexOption,
    JsonOption,
    TenantOption,
    errors,
    print_json,
    run,
)
from orchestrator.cli.purchases import (
    DryRunOption,
    RunCostOption,
    YesOption,
    buying,
    somebody_watches,
)
from orchestrator.cli.question_options import MaxTokensOption, ModelOption, ModeOption
from orchestrator.settings import load_settings
from posology.errors import InputError

if TYPE_CHECKING:
    from orchestrator.training.pruner.labels import Wanted
    from posology.published.training import LabelOutput


def label(
    *,
    questions: Annotated[
        str,
        typer.Option(
            "--questions",
            metavar="FILE",
            help='JSON Lines, .gz too, each row {"question": …}; - reads standard input.',
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the labels go.")],
    index: IndexOption = None,
    model: ModelOption = None,
    k: Annotated[int, typer.Option("--k", min=1, max=200, help="Passages a question.")] = 5,
    mode: ModeOption = "fused",
    max_tokens: MaxTokensOption = None,
    tenant: TenantOption = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=2**32 - 1, help="Of the passages' lengths.")
    ] = 0,
    max_cost: RunCostOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Label passages for `posology compressor train`: which of their sentences does an answer rest on?

    Some consecutive sentences of each retrieved passage are shown to a model, which answers from them and cites
    those that it used, or says that there is no answer. It tells first what that will cost, and at a terminal asks
    whether to go on. Every reply is kept in OUT as it comes: the same command goes on where it was interrupted, and
    pays for nothing twice. The exit status is 1 when lines are bad or calls failed.
    """
    with errors(as_json=as_json):
        from orchestrator.cli.jobs.files import check_output, read_questions
        from orchestrator.question.request import AskRequest
        from orchestrator.training.pruner.labels import Wanted
        from orchestrator.training.qtable.questions import read_examples

        settings = load_settings()
        check_output(out)
        # a question like all, to check what they are asked with
        like = AskRequest.parse(
            {
                "question": "?",
                "model": model,
                "k": k,
                "mode": mode,
                "max_tokens": max_tokens,
                "max_cost_usd": max_cost,
            }
        )
        wanted = Wanted(
            examples=read_examples(read_questions(questions).lines, settings),
            index=index,
            request=like.to_request(settings),
            seed=seed,
            tenant=tenant or settings.tenant,
            cap=like.max_cost_usd,
            settings=settings,
        )
        check = not (yes or as_json) and somebody_watches()
        done = _labelled(wanted, out, check=check, ask=not dry_run)
        _tell(done, as_json=as_json)
    if done.left_out or done.failed:
        raise typer.Exit(SOME_BAD)


def _labelled(wanted: Wanted, out: Path, *, check: bool, ask: bool) -> LabelOutput:
    """Label what is not labelled yet.

    Args:
        wanted: what.
        out: the file of labels.
        check: whether somebody is asked before anything is spent.
        ask: whether anything is spent at all.
    """
    from orchestrator.models import Models
    from orchestrator.training.pruner.labels import conclude, prepare
    from orchestrator.training.pruner.labels import label as label_all
    from orchestrator.training.pruner.rows import open_labels
    from orchestrator.training.qtable.report import estimate_lines
    from posology.llm.models import parse

    if not wanted.examples.good:
        raise InputError("there is not one question to label passages for")
    if parse(wanted.request.model).provider == "offline":
        raise InputError(
            "the offline reader quotes and does not cite sentences by number: choose an openai: or anthropic: model"
        )
    models = Models(wanted.settings.embedder, wanted.settings.embedding)
    with open_labels(out) as file:
        prepared = run(lambda: prepare(wanted, models, file))
        console = Console(stderr=True)
        for line in estimate_lines(prepared.estimate):
            console.print(Text(line), soft_wrap=True)
        if not ask:
            return conclude(wanted, prepared, file)
        with buying(prepared.estimate.calls, out, check=check) as tick:
            run(lambda: label_all(wanted, prepared, models, file, tick))
        return conclude(wanted, prepared, file)


def _tell(done: LabelOutput, *, as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    from orchestrator.cli.terminal import money
    from orchestrator.training.qtable.report import show_left_out

    console = Console(stderr=True)
    show_left_out(console, done.left_out)
    found = f"{done.labelled:,} labels, {done.empty:,} of them of passages without an answer"
    lost = f"{done.filtered:,} replies tell nothing, {done.failed:,} calls failed"
    line = f"{done.out}: {found}; {lost}; {money(done.spent_usd)} spent"
    console.print(Text(line), soft_wrap=True)
