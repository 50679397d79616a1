"""Train a Q-table: a paid exploration, then the table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from orchestrator.cli.common import IndexOption, JsonOption, errors, print_json, run
from orchestrator.cli.ending import SOME_BAD
from orchestrator.cli.option_groups import Group, grouped
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
from posology.hub import require

if TYPE_CHECKING:
    from orchestrator.training.forms import TrainOutput
    from orchestrator.training.paid.run import Terms
    from orchestrator.training.qtable.learner import Recipe
    from orchestrator.training.qtable.run import Wanted
    from policies.qtable import QTable

#: suffix of the run's file, after the name of the table's file
_RUN = ".run.jsonl"


@dataclass(frozen=True, kw_only=True, slots=True)
class TableOptions(Group):
    """How the table is computed."""

    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha",
            min=0,
            max=1,
            help="Weight α of quality against tokens. One point of quality is worth 2α/(1−α) points of tokens. "
            "Default: 0.5.",
        ),
    ] = None
    states: Annotated[
        int | None,
        typer.Option(
            "--states",
            min=1,
            help="Number of states. Default: one for each 10 answered questions, at most 8.",
        ),
    ] = None
    kind: Annotated[
        str,
        typer.Option(
            "--state-kind", help="Features of a state: difference, cosine or concatenation."
        ),
    ] = "difference"
    shares: Annotated[
        str | None,
        typer.Option(
            "--actions",
            metavar="SHARES",
            help="Shares of sentences kept whole, separated by commas, e.g. 0,0.1,0.4,1.",
        ),
    ] = None
    score: Annotated[
        str,
        typer.Option(
            "--score",
            help="Quality measure: rouge1, or containment (the answer has all words of a reference).",
        ),
    ] = "rouge1"
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Seed of k-means.")] = 0
    least_visits: Annotated[
        int | None,
        typer.Option(
            "--least-visits",
            min=1,
            help="Minimum rewards of each action; a state with fewer uses the fallback. Default: 5.",
        ),
    ] = None
    fallback: Annotated[
        float | None,
        typer.Option(
            "--fallback",
            min=0,
            max=1,
            help="Share kept in a state with too few rewards. Default: 1.",
        ),
    ] = None

    def recipe(self) -> Recipe:
        """Return the validated recipe of a table."""
        from orchestrator.training.qtable.learner import ALPHA, Recipe
        from policies.qtable import FALLBACK, LEAST_VISITS

        return Recipe(
            alpha=ALPHA if self.alpha is None else self.alpha,
            states=self.states,
            kind=self.kind,
            score=self.score,
            seed=self.seed,
            least_visits=LEAST_VISITS if self.least_visits is None else self.least_visits,
            fallback=FALLBACK if self.fallback is None else self.fallback,
        )

    def actions(self) -> tuple[float, ...] | None:
        """Return the shares in ascending order; ``None``: not given."""
        if self.shares is None:
            return None
        try:
            found = tuple(sorted({float(part) for part in self.shares.split(",")}))
        except ValueError:
            raise InputError(
                f"--actions must be numbers separated by commas, e.g. 0,0.1,0.4,1 (got {self.shares!r})."
            ) from None
        if not all(0 <= share <= 1 for share in found):
            raise InputError(f"--actions must be shares from 0 to 1 (got {self.shares!r}).")
        return found


@grouped
def train(
    *,
    questions: Annotated[
        str | None,
        typer.Option(
            "--questions",
            metavar="FILE",
            help='Questions, JSON Lines (.gz allowed): {"question": …}, with "answer" or "answers" if correct answers '
            "are known. -: standard input.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File of the new Q-table.")],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="RUN",
            help="Run file of an earlier training; the table is computed from it without calls.",
        ),
    ] = None,
    index: IndexOption = None,
    asking: AskingOptions,
    table: TableOptions,
    payment: PaymentOptions,
    as_json: JsonOption = False,
) -> None:
    """Train a Q-table: which share of its context a question needs.

    Every question is asked with every share. The estimated cost is printed first, and at a terminal you are asked to
    confirm. Each answer is kept in OUT.run.jsonl: the same command resumes an interrupted run and pays for no call
    twice. Without correct answers in the file, answers are compared with the one from the whole context. Exit status
    1: some lines were invalid or some calls failed.
    """
    if (questions is None) == (source is None):
        raise typer.BadParameter("give either --questions FILE or --from RUN")
    with errors(as_json=as_json):
        from orchestrator.cli.jobs.files import check_output

        recipe, shares = table.recipe(), table.actions()
        check_output(out)
        if source is not None:
            done, learned = _from_run(source, out, recipe, shares)
        else:
            wanted, terms = _wanted(questions or "", index, asking, payment, shares)
            done, learned = _explore(wanted, terms, payment, out, recipe, shares, as_json=as_json)
        _report(done, learned, as_json=as_json)
    if done.left_out or done.failed:
        raise typer.Exit(SOME_BAD)


def _wanted(
    questions: str,
    index: str | None,
    asking: AskingOptions,
    payment: PaymentOptions,
    shares: tuple[float, ...] | None,
) -> tuple[Wanted, Terms]:
    from orchestrator.cli.jobs.files import read_questions
    from orchestrator.training.qtable.questions import read_examples
    from orchestrator.training.qtable.run import Wanted
    from policies.qtable import ACTIONS

    require("train", "posology policy train")
    settings = load_settings()
    request, cap = check_request(asking, payment.max_cost, settings)
    wanted = Wanted(
        examples=read_examples(read_questions(questions).lines, settings),
        index=index,
        request=request,
        shares=shares or ACTIONS,
    )
    return wanted, payment.terms(settings, cap)


def _from_run(
    source: Path, out: Path, recipe: Recipe, shares: tuple[float, ...] | None
) -> tuple[TrainOutput, QTable | None]:
    """Compute a table from an earlier run."""
    from orchestrator.question.qtables import save
    from orchestrator.training.qtable.rows import read_run
    from orchestrator.training.qtable.run import conclude

    done, table = conclude(read_run(source), recipe, shares=shares, run=source, out=out, bad={})
    save(table, out)
    return done, table


def _explore(
    wanted: Wanted,
    terms: Terms,
    payment: PaymentOptions,
    out: Path,
    recipe: Recipe,
    shares: tuple[float, ...] | None,
    *,
    as_json: bool,
) -> tuple[TrainOutput, QTable | None]:
    """Explore the rest, and compute the table; a dry run has no table."""
    from orchestrator.question.qtables import save
    from orchestrator.training.paid.run import prepare
    from orchestrator.training.qtable.rows import open_run
    from orchestrator.training.qtable.run import conclude, left_out, planned, training_estimate

    if not wanted.examples.good:
        show_left_out(left_out(wanted.bad_lines()))
        raise InputError("the file has no valid question")
    path = out.with_name(out.name + _RUN)
    with open_run(path) as file:
        paid, quote = run(
            lambda: prepare(terms, wanted.request.model, lambda _: wanted.plan(terms, file))
        )
        answered = paid.plan.calls - len(paid.todo)
        estimate = training_estimate(quote, questions=len(paid.plan.grounds), answered=answered)
        say(estimate_lines(estimate))
        if not paid.annotated:
            say(["The index has no phrases: sentences are dropped, not shortened."], "yellow")
        if not carry_out(paid, terms, payment, as_json=as_json):
            return planned(wanted, paid, estimate), None
        done, table = conclude(
            file.content,
            recipe,
            shares=shares,
            run=path,
            out=out,
            bad=wanted.bad_lines(paid.plan),
            estimate=estimate,
        )
    save(table, out)
    return done, table


def _report(done: TrainOutput, table: QTable | None, *, as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    from orchestrator.cli.policy.table_view import show_table, show_training

    show_left_out(done.left_out)
    if table is None:
        return
    show_training(Console(), done)
    show_table(Console(), table)
    say([f"Q-table written to {done.out}. To use it: POSOLOGY_QTABLE={done.out}"])
