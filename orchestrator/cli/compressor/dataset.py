"""Makes a data set of passages and their summaries: by a model that is paid for, and keeps what it paid for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from orchestrator.cli.common import (
    SOME_BAD,
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
from orchestrator.cli.question_options import MaxTokensOption, ModelOption
from orchestrator.settings import load_settings
from posology.errors import InputError

if TYPE_CHECKING:
    from orchestrator.training.summaries.run import Wanted
    from orchestrator.training.summaries.sample import Drawn, Wish
    from posology.published.training import DatasetOutput

#: added to the name of the data set's file
_RUN = ".run.jsonl"


def dataset(
    *,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the data set goes.")],
    corpus: Annotated[
        list[Path] | None,
        typer.Option(
            "--corpus",
            metavar="FILE",
            help="Passages, JSON Lines as `posology ingest` reads; repeat for each.",
        ),
    ] = None,
    index: Annotated[
        str | None,
        typer.Option("--index", metavar="DIR", help="An index whose passages are taken instead."),
    ] = None,
    share: Annotated[
        float,
        typer.Option("--share", min=0.05, max=0.95, help="Of the words that are to be left."),
    ] = 0.3,
    count: Annotated[int, typer.Option("--count", min=1, help="Passages to shorten.")] = 500,
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance",
            min=0,
            max=0.5,
            help="By how much of a passage's words a summary may be off.",
        ),
    ] = 0.1,
    rounds: Annotated[
        int, typer.Option("--rounds", min=1, max=20, help="Replies for a passage, at most.")
    ] = 4,
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=2**32 - 1, help="Of which passages, and of parts.")
    ] = 0,
    least_words: Annotated[
        int, typer.Option("--least-words", min=1, help="Of the shortest passage that is taken.")
    ] = 60,
    most_words: Annotated[
        int,
        typer.Option(
            "--most-words",
            min=1,
            help="Of the longest: a model of 512 tokens takes about 340.",
        ),
    ] = 340,
    model: ModelOption = None,
    max_tokens: MaxTokensOption = None,
    tenant: TenantOption = None,
    max_cost: RunCostOption = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Have passages shortened to a share of their length, to fine-tune a model of one's own on.

    A reply of another length, or with a number, denial or drug that the passage does not have, is asked for again.
    It tells first what that will cost, and at a terminal asks whether to go on. Every reply is kept in OUT.run.jsonl
    as it comes: the same command goes on where it was interrupted, and pays for nothing twice. The exit status is 1
    when calls failed.
    """
    if (not corpus) == (index is None):
        raise typer.BadParameter("say where passages are: --corpus FILE, or --index DIR")
    if tolerance >= share:
        raise typer.BadParameter("--tolerance is less than --share: else nothing would be enough")
    with errors(as_json=as_json):
        from orchestrator.cli.jobs.files import check_output
        from orchestrator.question.request import AskRequest
        from orchestrator.training.summaries.run import Wanted
        from orchestrator.training.summaries.sample import Wish
        from orchestrator.training.summaries.shortener import Shortener

        check_output(out)
        settings = load_settings()
        # a question like all, to check what calls are made with
        asked = {"model": model, "max_tokens": max_tokens, "max_cost_usd": max_cost}
        like = AskRequest.parse({"question": "?", **asked})
        request = like.to_request(settings)
        wish = Wish(count=count, seed=seed, least=least_words, most=most_words)
        wanted = Wanted(
            drawn=_drawn(corpus or (), index, wish),
            wish=wish,
            shortener=Shortener(
                model=request.model,
                share=share,
                tolerance=tolerance,
                rounds=rounds,
                max_tokens=request.max_tokens,
            ),
            tenant=tenant or settings.tenant,
            cap=like.max_cost_usd,
            settings=settings,
        )
        check = not (yes or as_json) and somebody_watches()
        done = _made(wanted, out, check=check, ask=not dry_run)
        if as_json:
            print_json(done)
        else:
            _tell(done)
    if any(one.reason == "failed" for one in done.left_out):
        raise typer.Exit(SOME_BAD)


def _drawn(corpus: Iterable[Path], index: str | None, wish: Wish) -> Drawn:
    from orchestrator.training.summaries.sample import draw, of_files, of_index

    if index is None:
        return draw(of_files(tuple(corpus)), wish)
    from orchestrator.service import index_place
    from posology.index.store import Index

    return draw(of_index(Index.open(index_place(load_settings(), index)), wish), wish)


def _made(wanted: Wanted, out: Path, *, check: bool, ask: bool) -> DatasetOutput:
    """Shorten what is not shortened yet, and write the data set.

    Args:
        wanted: what.
        out: the data set's file.
        check: whether somebody is asked before anything is spent.
        ask: whether anything is spent at all.
    """
    from orchestrator.models import Models
    from orchestrator.training.summaries.report import estimate_lines
    from orchestrator.training.summaries.rows import open_run
    from orchestrator.training.summaries.run import conclude, make, planned, prepare

    if not wanted.drawn.passages:
        raise InputError("there is not one passage to shorten")
    models, path = (
        Models(wanted.settings.embedder, wanted.settings.embedding),
        out.with_name(out.name + _RUN),
    )
    with open_run(path) as file:
        prepared = run(lambda: prepare(wanted, models, file))
        _say(estimate_lines(prepared.estimate))
        if not ask:
            return planned(wanted, prepared, file)
        if prepared.todo:
            with buying(len(prepared.todo), path, check=check) as tick:
                run(lambda: make(wanted, prepared, models, file, tick))
        return run(lambda: conclude(wanted, prepared, file, out))


def _tell(done: DatasetOutput) -> None:
    from orchestrator.training.summaries.report import dataset_lines

    _say(dataset_lines(done))


def _say(lines: Iterable[str]) -> None:
    from orchestrator.cli.terminal import safe

    console = Console(stderr=True)
    for line in lines:
        console.print(Text(safe(line)), soft_wrap=True)
