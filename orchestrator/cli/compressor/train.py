"""Trains a pruner from labels."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from orchestrator.cli.common import INTERRUPTED, JsonOption, errors, fail, print_json
from posology.errors import InputError

if TYPE_CHECKING:
    from orchestrator.training.pruner.trainer import Losses
    from posology.published.training import Loss, PrunerOutput

#: what the published checkpoint began with
DEFAULT_INIT = "naver/trecdl22-crossencoder-debertav3"
#: seconds between lines where there is no terminal to draw a bar on
_LINE = 30.0


def train(
    *,
    labels: Annotated[
        Path,
        typer.Option(
            "--labels",
            metavar="FILE",
            help='Of `posology compressor label`, or rows {"question", "sentences", "relevant"} of your own.',
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the model goes.")],
    init: Annotated[
        str,
        typer.Option(
            "--init", metavar="NAME", help="The re-ranker to begin with: a folder or a hub name."
        ),
    ] = DEFAULT_INIT,
    epochs: Annotated[int, typer.Option("--epochs", min=1)] = 1,
    rate: Annotated[float, typer.Option("--lr", help="Learning rate.")] = 3e-6,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Pairs in a step.")] = 48,
    weight: Annotated[
        float,
        typer.Option(
            "--lambda",
            min=0,
            help="How much keeping the ranking weighs; 0 to begin with what does not rank.",
        ),
    ] = 0.05,
    held: Annotated[
        float,
        typer.Option("--held", min=0, max=0.9, help="Share of the questions that is kept aside."),
    ] = 0.05,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**31 - 1)] = 0,
    device: Annotated[
        str | None,
        typer.Option("--device", help="cpu or cuda. Default: the accelerator, if there is one."),
    ] = None,
    save_every: Annotated[
        int, typer.Option("--save-every", min=1, help="Steps between two kept states.")
    ] = 500,
    as_json: JsonOption = False,
) -> None:
    """Teach a re-ranker to prune passages, and to rank them as it did (Provence).

    The same command goes on where it was interrupted, from the last state that was kept in DIR. A model of 400
    million weights needs an accelerator.
    """
    if device not in (None, "cpu", "cuda"):
        raise typer.BadParameter("--device is cpu or cuda")
    with errors(as_json=as_json):
        from orchestrator.training.pruner.fit import Wanted
        from orchestrator.training.pruner.fit import train as train_all
        from orchestrator.training.pruner.trainer import Recipe

        try:
            recipe = Recipe(epochs=epochs, rate=rate, batch=batch, weight=weight, seed=seed)
        except ValueError as error:
            raise InputError(str(error)) from None
        wanted = Wanted(
            labels=labels,
            init=init,
            out=out,
            recipe=recipe,
            held=held,
            device=device,
            save_every=save_every,
        )
        try:
            with _progress() as tell:
                done = train_all(wanted, tell)
        except KeyboardInterrupt:
            fail(f"run this command again to go on from the last state in {out}")
            raise typer.Exit(INTERRUPTED) from None
        _tell(done, as_json=as_json)


def _tell(done: PrunerOutput, *, as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    console = Console(stderr=True)
    resumed = f", {done.resumed_at:,} of them before" if done.resumed_at else ""
    console.print(Text(f"{done.learned:,} pairs, {done.steps:,} steps{resumed}"))
    console.print(Text(f"first steps: {_said(done.first)}; last steps: {_said(done.last)}"))
    if done.held_before is not None and done.held_after is not None:
        console.print(
            Text(
                f"{done.held:,} pairs aside: {_said(done.held_before)} before, {_said(done.held_after)} after"
            ),
            soft_wrap=True,
        )
    line = f"written to {done.out}: POSOLOGY_COMPRESSOR_MODEL=provence={done.out}"
    console.print(Text(line), soft_wrap=True)


def _said(loss: Loss) -> str:
    return f"pruning {loss.pruning:.4f}, ranking {loss.ranking:.4f}"


@contextmanager
def _progress() -> Iterator[Callable[[int, int, Losses | None], None]]:
    """A bar with the last losses, or a line now and then where there is no terminal."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    told = time.monotonic()

    def tell(done: int, total: int, losses: Losses | None) -> None:
        nonlocal told
        said = "" if losses is None else f"{losses.pruning:.4f} + {losses.ranking:.4f}"
        bar.update(task, completed=done, total=total, description=said)
        if not console.is_terminal and time.monotonic() - told > _LINE:
            told = time.monotonic()
            sys.stderr.write(f"step {done:,} of {total:,}: {said}\n")
            sys.stderr.flush()

    with bar:
        task = bar.add_task("", total=None)
        yield tell
