"""Trains a Q-table: explores, pays for it, and keeps what it paid for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from orchestrator.cli.question_options import KOption, MaxTokensOption, ModelOption, ModeOption
from orchestrator.settings import load_settings
from posology.errors import InputError

if TYPE_CHECKING:
    from orchestrator.training.qtable.learner import Recipe
    from orchestrator.training.qtable.run import Wanted
    from policies.qtable import QTable
    from posology.published.training import TrainingEstimate, TrainOutput

#: added to the name of the table's file
_RUN = ".run.jsonl"


def train(
    *,
    questions: Annotated[
        str | None,
        typer.Option(
            "--questions",
            metavar="FILE",
            help='JSON Lines, .gz too, each row {"question": …}, and "answer" or "answers" where right answers '
            "are known; - reads standard input.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the table goes.")],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="RUN",
            help="Make a table of the answers of an earlier training, and ask nothing.",
        ),
    ] = None,
    index: IndexOption = None,
    model: ModelOption = None,
    k: KOption = 8,
    mode: ModeOption = "fused",
    max_tokens: MaxTokensOption = None,
    tenant: TenantOption = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha",
            min=0,
            max=1,
            help="Weight of quality against tokens. A point of quality is worth 2α/(1−α) points of tokens. "
            "Default: 0.5.",
        ),
    ] = None,
    states: Annotated[
        int | None,
        typer.Option(
            "--states",
            min=1,
            help="Default: one for each 10 questions that were answered, at most 8.",
        ),
    ] = None,
    kind: Annotated[
        str, typer.Option("--state-kind", help="difference, cosine or concatenation.")
    ] = "difference",
    shares: Annotated[
        str | None,
        typer.Option(
            "--actions", metavar="SHARES", help="Of sentences kept whole, e.g. 0,0.1,0.4,1."
        ),
    ] = None,
    score: Annotated[
        str,
        typer.Option(
            "--score",
            help="rouge1, or containment: whether the answer holds all words of a reference.",
        ),
    ] = "rouge1",
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1, help="Of k-means.")] = 0,
    least_visits: Annotated[
        int | None,
        typer.Option(
            "--least-visits",
            min=1,
            help="Rewards of each action without which a state is unknown. Default: 5.",
        ),
    ] = None,
    fallback: Annotated[
        float | None,
        typer.Option(
            "--fallback", min=0, max=1, help="Share that is kept in an unknown state. Default: 1."
        ),
    ] = None,
    max_cost: RunCostOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Learn how much of its context a question needs, by asking each question with each share of it.

    It tells first what that will cost, and at a terminal asks whether to go on. Every answer is kept in OUT.run.jsonl
    as it comes: the same command goes on where it was interrupted, and pays for nothing twice. Without right
    answers in the file, an answer is as good as it is like the one from the whole context. The exit status is 1
    when lines are bad or calls failed.
    """
    if (questions is None) == (source is None):
        raise typer.BadParameter("say what to learn from: --questions FILE, or --from RUN")
    with errors(as_json=as_json):
        from orchestrator.cli.jobs.files import check_output
        from orchestrator.training.qtable.learner import ALPHA, Recipe
        from policies.qtable import FALLBACK, LEAST_VISITS

        recipe = Recipe(
            alpha=ALPHA if alpha is None else alpha,
            states=states,
            kind=kind,
            score=score,
            seed=seed,
            least_visits=LEAST_VISITS if least_visits is None else least_visits,
            fallback=FALLBACK if fallback is None else fallback,
        )
        chosen = None if shares is None else _shares(shares)
        check_output(out)
        if source is not None:
            done, table = _again(source, out, recipe, chosen)
        else:
            asked = {"model": model, "k": k, "mode": mode, "max_tokens": max_tokens}
            wanted = _wanted(
                questions or "", {**asked, "max_cost_usd": max_cost}, index, tenant, chosen
            )
            check = not (yes or as_json) and somebody_watches()
            done, table = _explored(wanted, out, recipe, chosen, check=check, ask=not dry_run)
        _tell(done, table, as_json=as_json)
    if done.left_out or done.failed:
        raise typer.Exit(SOME_BAD)


def _shares(text: str) -> tuple[float, ...]:
    try:
        found = tuple(sorted({float(part) for part in text.split(",")}))
    except ValueError:
        raise InputError(f"--actions {text!r} is no list of shares, such as 0,0.1,0.4,1") from None
    if not all(0 <= share <= 1 for share in found):
        raise InputError("--actions are shares from 0 to 1")
    return found


def _wanted(
    questions: str,
    asked: Mapping[str, Any],
    index: str | None,
    tenant: str | None,
    shares: tuple[float, ...] | None,
) -> Wanted:
    from orchestrator.cli.jobs.files import read_questions
    from orchestrator.question.request import AskRequest
    from orchestrator.training.qtable.questions import read_examples
    from orchestrator.training.qtable.run import Wanted
    from policies.qtable import ACTIONS

    settings = load_settings()
    # a question like all, to check what they are asked with
    like = AskRequest.parse({"question": "?", **asked})
    return Wanted(
        examples=read_examples(read_questions(questions).lines, settings),
        index=index,
        request=like.to_request(settings),
        shares=shares or ACTIONS,
        tenant=tenant or settings.tenant,
        cap=like.max_cost_usd,
        settings=settings,
    )


def _again(
    source: Path, out: Path, recipe: Recipe, shares: tuple[float, ...] | None
) -> tuple[TrainOutput, QTable | None]:
    """A table of what was explored before."""
    from orchestrator.question.qtables import save
    from orchestrator.training.qtable.rows import read_run
    from orchestrator.training.qtable.run import conclude

    answers = read_run(source)
    said, table = conclude(answers, recipe, shares=shares, run=source, out=out, bad={})
    save(table, out)
    return said, table


def _explored(
    wanted: Wanted,
    out: Path,
    recipe: Recipe,
    shares: tuple[float, ...] | None,
    *,
    check: bool,
    ask: bool,
) -> tuple[TrainOutput, QTable | None]:
    """Explore what is not explored yet, and make a table of it.

    Args:
        wanted: what.
        out: the table's file.
        recipe: how the table is made.
        shares: its actions; ``None``: all that are explored.
        check: whether somebody is asked before anything is spent.
        ask: whether anything is spent at all.
    """
    from orchestrator.models import Models
    from orchestrator.question.qtables import save
    from orchestrator.training.qtable.report import left_out, show_left_out
    from orchestrator.training.qtable.rows import open_run
    from orchestrator.training.qtable.run import bad_lines, conclude, explore, planned, prepare

    if not wanted.examples.good:
        show_left_out(Console(stderr=True), left_out(bad_lines(wanted)))
        raise InputError("there is not one question to learn from")
    models, path = (
        Models(wanted.settings.embedder, wanted.settings.embedding),
        out.with_name(out.name + _RUN),
    )
    with open_run(path) as file:
        prepared = run(lambda: prepare(wanted, models, file))
        _announce(prepared.estimate, annotated=prepared.annotated)
        if not ask:
            return planned(wanted, prepared, file.content, path), None
        with buying(prepared.estimate.calls, path, check=check) as tick:
            run(lambda: explore(wanted, prepared, models, file, tick))
        said, table = conclude(
            file.content,
            recipe,
            shares=shares,
            run=path,
            out=out,
            bad=bad_lines(wanted, prepared),
            estimate=prepared.estimate,
        )
    save(table, out)
    return said, table


def _announce(estimate: TrainingEstimate, *, annotated: bool) -> None:
    from orchestrator.training.qtable.report import estimate_lines

    console = Console(stderr=True)
    for line in estimate_lines(estimate):
        console.print(Text(line), soft_wrap=True)
    if not annotated:
        line = (
            "the index has no phrases: sentences that are not kept whole are left out, not reduced"
        )
        console.print(Text(line, style="yellow"), soft_wrap=True)


def _tell(done: TrainOutput, table: QTable | None, *, as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    from orchestrator.training.qtable.report import show_left_out, show_training
    from orchestrator.training.qtable.view import show_table

    show_left_out(Console(stderr=True), done.left_out)
    if table is None:
        return
    show_training(Console(), done)
    show_table(Console(), table)
    line = f"written to {done.out}: POSOLOGY_QTABLE={done.out}"
    Console(stderr=True).print(Text(line), soft_wrap=True)
