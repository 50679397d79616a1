"""Fine-tune a summarization model on a data set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli.common import JsonOption, errors, fail, print_json
from orchestrator.cli.ending import INTERRUPTED
from orchestrator.cli.option_groups import Group, grouped
from orchestrator.cli.purchases import say
from posology.errors import DeviceUnavailable, InputError
from posology.hub import require

if TYPE_CHECKING:
    from orchestrator.training.forms import FinetuneOutput
    from orchestrator.training.summaries.finetuning import Epoch, Recipe
    from strategies.compression.summarization.card import Card


@dataclass(frozen=True, kw_only=True, slots=True)
class RecipeOptions(Group):
    """Hyperparameters of the fine-tuning."""

    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Passes over the data set.")] = 10
    batch: Annotated[int, typer.Option("--batch", min=1, help="Pairs in a step.")] = 2
    learning_rate: Annotated[
        float, typer.Option("--learning-rate", min=0, help="Initial learning rate.")
    ] = 2e-5
    tokens: Annotated[
        int, typer.Option("--tokens", min=8, help="Maximum input and output tokens.")
    ] = 512
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=2**32 - 1, help="Seed of order and dropout.")
    ] = 0

    def recipe(self) -> Recipe:
        """Return the recipe."""
        from orchestrator.training.summaries.finetuning import Recipe

        return Recipe(
            learning_rate=self.learning_rate,
            epochs=self.epochs,
            batch=self.batch,
            tokens=self.tokens,
            seed=self.seed,
        )


@grouped
def finetune(
    *,
    dataset: Annotated[
        Path,
        typer.Option(
            "--dataset", metavar="FILE", help="Data set of `posology compressor dataset`."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the new model.")],
    init: Annotated[
        str | None,
        typer.Option(
            "--init",
            metavar="MODEL",
            help="Initial sequence-to-sequence model: a folder, or a Hugging Face name in the local cache. "
            "Default: csebuetnlp/mT5_multilingual_XLSum.",
        ),
    ] = None,
    hyper: RecipeOptions,
    device: Annotated[
        str | None,
        typer.Option("--device", help="cpu, cuda or cuda:N. Default: cuda, if there is one."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fine-tune a model to write summaries of the data set's compression ratio.

    The epoch with the lowest validation loss is kept, in Hugging Face format. The same command resumes an interrupted
    training. Nothing is downloaded: fetch the initial model with `hf download`.
    """
    with errors(as_json=as_json):
        require("models", "posology compressor finetune")
        from strategies.compression.summarization.model import MT5

        card = _finetune(dataset, out, init or MT5, hyper.recipe(), _device(device))
        done = _output(card, out)
        if as_json:
            print_json(done)
        else:
            say(_report(done))


def _finetune(dataset: Path, out: Path, init: str, recipe: Recipe, device: str) -> Card:
    from orchestrator.training.summaries.finetuning import Finetuning
    from orchestrator.training.summaries.pairs import read_pairs

    def report(epoch: Epoch) -> None:
        best = ", the lowest so far" if epoch.best else ""
        losses = f"training loss {epoch.train:.4f}, validation loss {epoch.validation:.4f}"
        say([f"epoch {epoch.number} of {recipe.epochs}: {losses} nats per token{best}"])

    training = Finetuning(
        read_pairs(dataset), init=init, out=out, recipe=recipe, device=device, report=report
    )
    try:
        return training()
    except KeyboardInterrupt:
        fail(f"finished epochs are kept in {out}; run the same command again to resume")
        raise typer.Exit(INTERRUPTED) from None


def _device(wanted: str | None) -> str:
    from posology.devices import find_device

    kind, _, number = (wanted or "cpu").partition(":")
    if kind not in ("cpu", "cuda") or not (number.isdigit() or number == ""):
        raise InputError(f"--device must be cpu, cuda or cuda:N (got {wanted!r}).")
    try:
        return find_device(wanted)
    except DeviceUnavailable as error:
        raise InputError(f"this machine has no device {error.device}. Use --device cpu.") from error


def _output(card: Card, out: Path) -> FinetuneOutput:
    from orchestrator.training.forms import FinetuneOutput

    assert card.share is not None
    assert card.best is not None
    return FinetuneOutput(
        out=str(out),
        share=card.share,
        init=card.base,
        losses=card.losses,
        best=card.best,
        test_loss=card.test_loss,
        left=card.left,
        seconds=card.seconds,
        device=card.device,
    )


def _report(out: FinetuneOutput) -> Iterator[str]:
    loss = out.losses[out.best - 1]
    yield f"epoch {out.best} of {len(out.losses)} kept: validation loss {loss:.4f} nats per token"
    if out.left is not None and out.seconds is not None:
        yield (
            f"test loss {out.test_loss:.4f} nats per token; compression ratio {out.left:.1%} (target {out.share:.0%}); "
            f"{out.seconds:.2f} s per summary on {out.device}"
        )
    yield f"model written to {out.out}"
