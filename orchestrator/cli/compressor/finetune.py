"""Fine-tunes a summarization model on a data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from orchestrator.cli.common import INTERRUPTED, JsonOption, errors, fail, print_json
from posology.errors import DeviceUnavailable, InputError

if TYPE_CHECKING:
    from orchestrator.training.summaries.finetuning import Epoch, Recipe
    from strategies.compression.summarization.card import Card


def finetune(
    *,
    dataset: Annotated[
        Path,
        typer.Option("--dataset", metavar="FILE", help="Made by `posology compressor dataset`."),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the model goes.")],
    init: Annotated[
        str | None,
        typer.Option(
            "--init",
            metavar="MODEL",
            help="A sequence-to-sequence model of Hugging Face, by folder, or by a name whose files are here. "
            "Default: csebuetnlp/mT5_multilingual_XLSum.",
        ),
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", min=1)] = 10,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Pairs a step.")] = 2,
    learning_rate: Annotated[float, typer.Option("--learning-rate", min=0)] = 2e-5,
    tokens: Annotated[
        int, typer.Option("--tokens", min=8, help="That go in and come out at most.")
    ] = 512,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**32 - 1)] = 0,
    device: Annotated[
        str | None,
        typer.Option("--device", help="cpu, cuda or cuda:1. Default: cuda where there is one."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fine-tune a model to write summaries of the share that a data set was made for.

    The best epoch by the validation set is kept, in the hub's own format. The same command goes on where it was
    interrupted. Nothing is downloaded: fetch the model to start from with `hf download`.
    """
    with errors(as_json=as_json):
        from orchestrator.training.summaries.finetuning import Recipe
        from strategies.compression.summarization.model import MT5

        recipe = Recipe(
            learning_rate=learning_rate, epochs=epochs, batch=batch, tokens=tokens, seed=seed
        )
        card = _card(dataset, out, init or MT5, recipe, _device(device))
        _tell(card, out, as_json=as_json)


def _card(dataset: Path, out: Path, init: str, recipe: Recipe, device: str) -> Card:
    from orchestrator.training.summaries.finetuning import Finetuning
    from orchestrator.training.summaries.pairs import read_pairs

    console = Console(stderr=True)

    def tell(epoch: Epoch) -> None:
        line = (
            f"epoch {epoch.number} of {recipe.epochs}: {epoch.train:.4f} nats a token in training, "
            f"{epoch.validation:.4f} on the validation set{', the best so far' if epoch.best else ''}"
        )
        console.print(Text(line), soft_wrap=True)

    training = Finetuning(
        read_pairs(dataset), init=init, out=out, recipe=recipe, device=device, tell=tell
    )
    try:
        return training()
    except KeyboardInterrupt:
        fail(f"the epochs that are done are kept in {out}: run this command again to go on")
        raise typer.Exit(INTERRUPTED) from None


def _device(wanted: str | None) -> str:
    from posology.devices import find_device

    kind, _, number = (wanted or "cpu").partition(":")
    if kind not in ("cpu", "cuda") or not (number.isdigit() or number == ""):
        raise InputError(f"--device {wanted!r} is none of cpu, cuda and cuda:N")
    try:
        return find_device(wanted)
    except DeviceUnavailable as error:
        raise InputError(f"there is no {error.device} on this machine: use --device cpu") from error


def _tell(card: Card, out: Path, *, as_json: bool) -> None:
    from posology.published.training import FinetuneOutput

    assert card.share is not None
    assert card.best is not None
    said = FinetuneOutput(
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
    if as_json:
        print_json(said)
        return
    from orchestrator.cli.terminal import safe
    from orchestrator.training.summaries.report import finetune_lines

    for line in finetune_lines(said):
        Console(stderr=True).print(Text(safe(line)), soft_wrap=True)
