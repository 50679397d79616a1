"""Train a pruner from labels."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from orchestrator.cli.common import JsonOption, errors, fail, print_json
from orchestrator.cli.ending import INTERRUPTED
from orchestrator.cli.option_groups import Group, grouped
from orchestrator.cli.purchases import say
from posology.errors import InputError
from posology.hub import require

if TYPE_CHECKING:
    from orchestrator.training.forms import Losses, PrunerOutput
    from orchestrator.training.pruner.fit import Wanted
    from orchestrator.training.pruner.trainer import Recipe

#: initial model of the published checkpoint
DEFAULT_INIT = "naver/trecdl22-crossencoder-debertav3"
#: seconds between two lines of progress without a terminal
_LINE = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RecipeOptions(Group):
    """Hyperparameters of the training."""

    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Passes over the labels.")] = 1
    rate: Annotated[float, typer.Option("--lr", help="Learning rate.")] = 3e-6
    batch: Annotated[
        int, typer.Option("--batch", min=1, help="Pairs of question and passage in a step.")
    ] = 48
    weight: Annotated[
        float,
        typer.Option(
            "--lambda",
            min=0,
            help="Weight λ of the ranking loss; 0 for an initial model that does not rank.",
        ),
    ] = 0.05
    loss: Annotated[
        Literal["sum", "mean"],
        typer.Option(
            "--loss",
            help="Labels' part of a pair's loss: sum over its tokens (equation 1) or mean over tokens.",
        ),
    ] = "sum"
    seed: Annotated[
        int,
        typer.Option("--seed", min=0, max=2**31 - 1, help="Seed of order, dropout and new heads."),
    ] = 0
    held: Annotated[
        float, typer.Option("--held", min=0, max=0.9, help="Held-out share of the questions.")
    ] = 0.05
    save_every: Annotated[
        int, typer.Option("--save-every", min=1, help="Steps between two checkpoints.")
    ] = 500

    def recipe(self) -> Recipe:
        """Return the validated recipe.

        Raises:
            InputError: a value is out of range.
        """
        require("models", "posology compressor train")
        from orchestrator.training.pruner.trainer import Recipe

        try:
            return Recipe(
                epochs=self.epochs,
                rate=self.rate,
                batch=self.batch,
                weight=self.weight,
                loss=self.loss,
                seed=self.seed,
            )
        except ValueError as error:
            raise InputError(str(error)) from None


@grouped
def train(
    *,
    labels: Annotated[
        Path,
        typer.Option(
            "--labels",
            metavar="FILE",
            help='Labels of `posology compressor label`, or your own rows {"question", "sentences", "relevant"}.',
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the new model.")],
    init: Annotated[
        str,
        typer.Option(
            "--init", metavar="NAME", help="Initial re-ranker: a folder or a Hugging Face name."
        ),
    ] = DEFAULT_INIT,
    hyper: RecipeOptions,
    device: Annotated[
        str | None,
        typer.Option("--device", help="cpu or cuda. Default: the accelerator, if there is one."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Train a re-ranker to prune passages and to keep its ranking (Provence).

    The same command resumes an interrupted training from the last checkpoint in DIR. A model of 400 million weights
    needs an accelerator.
    """
    if device not in (None, "cpu", "cuda"):
        raise typer.BadParameter(f"--device must be cpu or cuda (got {device!r})")
    with errors(as_json=as_json):
        from orchestrator.training.pruner.fit import Wanted

        wanted = Wanted(
            labels=labels,
            init=init,
            out=out,
            recipe=hyper.recipe(),
            held=hyper.held,
            device=device,
            save_every=hyper.save_every,
        )
        done = _train(wanted)
        if as_json:
            print_json(done)
        else:
            say(_report(done))


def _train(wanted: Wanted) -> PrunerOutput:
    from orchestrator.training.pruner.fit import train

    try:
        with _progress() as tick:
            return train(wanted, tick)
    except KeyboardInterrupt:
        fail(f"run the same command again to resume from the last checkpoint in {wanted.out}")
        raise typer.Exit(INTERRUPTED) from None


def _report(done: PrunerOutput) -> Iterator[str]:
    resumed = f", resumed after {done.resumed_at:,}" if done.resumed_at else ""
    yield f"{done.learned:,} pairs, {done.steps:,} steps{resumed}"
    yield f"first steps: {_losses(done.first)}; last steps: {_losses(done.last)}"
    if done.held_before is not None and done.held_after is not None:
        yield (
            f"{done.held:,} held-out pairs: {_losses(done.held_before)} before, {_losses(done.held_after)} after"
        )
    yield f"Model written to {done.out}. To use it: POSOLOGY_COMPRESSOR_MODEL=provence={done.out}"


def _losses(loss: Losses) -> str:
    return f"pruning loss {loss.pruning:.4f}, ranking loss {loss.ranking:.4f}"


@contextmanager
def _progress() -> Iterator[Callable[[int, int, Losses | None], None]]:
    """Show the last losses: with a bar at a terminal, else in a line every 30 seconds."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    printed = time.monotonic()

    def tick(done: int, total: int, losses: Losses | None) -> None:
        nonlocal printed
        text = "" if losses is None else f"{losses.pruning:.4f} + {losses.ranking:.4f}"
        bar.update(task, completed=done, total=total, description=text)
        if not console.is_terminal and time.monotonic() - printed > _LINE:
            printed = time.monotonic()
            say([f"step {done:,} of {total:,}: loss {text}"])

    with bar:
        task = bar.add_task("", total=None)
        yield tick
