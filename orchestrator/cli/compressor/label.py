"""Label passages for a pruner: a model answers from numbered sentences and cites them."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.common import IndexOption, JsonOption, errors, print_json, run
from orchestrator.cli.ending import SOME_BAD
from orchestrator.cli.option_groups import grouped
from orchestrator.cli.purchases import (
    AskingOptions,
    PaymentOptions,
    carry_out,
    check_request,
    estimate_lines,
    say,
    show_left_out,
)
from orchestrator.settings import load_settings
from posology.errors import InputError

if TYPE_CHECKING:
    from orchestrator.training.forms import LabelOutput
    from orchestrator.training.paid.run import Terms
    from orchestrator.training.pruner.labels import Wanted


class LabelOptions(AskingOptions):
    """How the passages to label are retrieved and shown to a model."""

    defaults = MappingProxyType({"k": 5})


@grouped
def label(
    *,
    questions: Annotated[
        str,
        typer.Option(
            "--questions",
            metavar="FILE",
            help='Questions, JSON Lines (.gz allowed): {"question": …}. -: standard input.',
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File of the labels.")],
    index: IndexOption = None,
    asking: LabelOptions,
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=2**32 - 1, help="Seed of the excerpts' lengths.")
    ] = 0,
    payment: PaymentOptions,
    as_json: JsonOption = False,
) -> None:
    """Label passages for `posology compressor train`: the sentences that an answer rests on.

    A model gets some consecutive sentences of each retrieved passage. It answers from them and cites those that it
    used, or replies that there is no answer. The estimated cost is printed first, and at a terminal you are asked to
    confirm. Each reply is kept in OUT: the same command resumes an interrupted run and pays for no call twice. Exit
    status 1: some lines were invalid or some calls failed.
    """
    with errors(as_json=as_json):
        from orchestrator.cli.jobs.files import check_output, read_questions
        from orchestrator.training.pruner.labels import Wanted
        from orchestrator.training.qtable.questions import read_examples

        settings = load_settings()
        check_output(out)
        request, cap = check_request(asking, payment.max_cost, settings)
        wanted = Wanted(
            examples=read_examples(read_questions(questions).lines, settings),
            index=index,
            request=request,
            seed=seed,
        )
        done = _label(wanted, payment.terms(settings, cap), payment, out, as_json=as_json)
        _report(done, as_json=as_json)
    if done.left_out or done.failed:
        raise typer.Exit(SOME_BAD)


def _label(
    wanted: Wanted, terms: Terms, payment: PaymentOptions, out: Path, *, as_json: bool
) -> LabelOutput:
    """Label the pairs that have no label."""
    from orchestrator.training.paid.run import prepare
    from orchestrator.training.pruner.labels import conclude
    from orchestrator.training.pruner.rows import open_labels
    from orchestrator.training.qtable.run import training_estimate
    from posology.llm.models.names import parse

    model = wanted.request.model
    if not wanted.examples.good:
        raise InputError("the file has no valid question")
    if parse(model).provider == "offline":
        raise InputError(
            f"{model} quotes passages and cannot cite numbered sentences. Choose an openai: or anthropic: model."
        )
    with open_labels(out) as file:
        paid, quote = run(lambda: prepare(terms, model, lambda _: wanted.plan(terms, file)))
        estimate = training_estimate(
            quote,
            questions=len(wanted.examples.good) - len(paid.without),
            answered=len(paid.pairs) - len(paid.todo),
        )
        say(estimate_lines(estimate))
        carry_out(paid, terms, payment, as_json=as_json)
        return conclude(wanted, paid, estimate)


def _report(done: LabelOutput, *, as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    from orchestrator.rendering.words import money

    show_left_out(done.left_out)
    found = f"{done.labelled:,} labels, {done.empty:,} of them without an answer in the passage"
    bad = f"{done.filtered:,} unclear replies, {done.failed:,} failed calls"
    say([f"{done.out}: {found}; {bad}; {money(done.spent_usd)} spent"])
