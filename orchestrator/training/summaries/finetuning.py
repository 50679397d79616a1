"""Fine-tunes a sequence-to-sequence model for one share of the length (TCRA-LLM, sections 4.2.1 and 5.1).

The defaults are the paper's settings. Settings that it omits are those of transformers' trainer: AdamW without
weight decay, a learning rate that falls linearly to 0, gradients clipped to a norm of 1.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from orchestrator.training.summaries.pairs import Pair, Pairs
from posology.errors import InputError
from posology.hub import loading, locate
from strategies.compression.summarization.card import TOKENS, Card, write_card
from strategies.compression.summarization.model import (
    Loaded,
    Summarizer,
    encode,
    limit,
    read,
    targets,
)

#: checkpoint in the model's folder while it is trained
STATE = "training.pt"
#: texts of one evaluation pass
_EVALUATED = 8
#: summaries of the test set for measuring length and time
_MEASURED = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """Hyperparameters of a fine-tuning."""

    learning_rate: float = 2e-5
    epochs: int = 10
    #: pairs in a step
    batch: int = 2
    #: maximum input and output tokens
    tokens: int = TOKENS
    #: of the order of pairs and of dropout; on a CPU, equal seeds give equal weights
    seed: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Epoch:
    """Losses of an epoch."""

    #: from 1
    number: int
    #: mean training loss of its steps, nats per token
    train: float
    #: validation loss, nats per token
    validation: float
    #: whether it has the lowest validation loss so far, so that its model is kept
    best: bool


class Finetuning:
    """Trains epoch by epoch, keeps the best model, and resumes an interrupted training.

    From the first epoch on, the folder holds the best model in Hugging Face format; until the last epoch it also
    holds the checkpoint :data:`STATE`.

    Args:
        pairs: data set of one compression ratio.
        init: initial model: a folder, or a Hugging Face name in the local cache.
        out: folder of the new model.
        recipe: hyperparameters.
        device: ``cpu``, ``cuda`` or ``cuda:N``.
        report: called after every epoch.

    Raises:
        ModelUnavailable: the initial model cannot be loaded.
        InputError: the folder holds another training or other files.
    """

    def __init__(
        self,
        pairs: Pairs,
        *,
        init: str,
        out: Path,
        recipe: Recipe,
        device: str = "cpu",
        report: Callable[[Epoch], None] = lambda _: None,
    ) -> None:
        self._pairs = pairs
        self._init = init
        self._out = out
        self._recipe = recipe
        self._device = device
        self._report = report
        #: of this training; a checkpoint of another one is rejected
        self._identity = json.dumps(
            {"dataset": pairs.digest, "init": init, **asdict(recipe)}, sort_keys=True
        )
        self._losses: list[float] = []
        self._loaded = self._start()

    def __call__(self) -> Card:
        """Train to the last epoch; epochs before an interruption are not repeated. Blocking."""
        import torch

        recipe = self._recipe
        model = self._loaded.model.to(self._device)
        steps = math.ceil(len(self._pairs.train) / recipe.batch)
        optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.learning_rate, weight_decay=0.0)
        total = max(1, steps * recipe.epochs)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: max(0.0, 1 - step / total)
        )
        done = self._resume(model, optimizer, schedule)
        for number in range(done + 1, recipe.epochs + 1):
            train = self._epoch(model, optimizer, schedule, number)
            validation = self._loss(model, self._pairs.validation)
            best = not self._losses or validation < min(self._losses)
            self._losses.append(validation)
            if best:
                self._keep(model)
            self._save(model, optimizer, schedule, number)
            self._report(Epoch(number=number, train=train, validation=validation, best=best))
        return self._finish()

    def _start(self) -> Loaded:
        state = self._out / STATE
        if self._out.exists() and any(self._out.iterdir()) and not state.exists():
            raise InputError(
                f"{self._out} is not empty and holds no checkpoint. Choose another folder."
            )
        loaded = read(str(locate(self._init, kind="summarization model")))
        self._out.mkdir(parents=True, exist_ok=True)
        return loaded

    def _resume(self, model: Any, optimizer: Any, schedule: Any) -> int:
        """Restore the checkpoint; return the number of finished epochs."""
        import torch

        path = self._out / STATE
        if not path.exists():
            return 0
        state = torch.load(path, map_location=self._device, weights_only=True)
        if state["identity"] != self._identity:
            raise InputError(
                f"{path} belongs to a training with other data or settings. Repeat those settings or choose another folder."
            )
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        self._losses = list(state["losses"])
        return int(state["epoch"])

    def _epoch(self, model: Any, optimizer: Any, schedule: Any, number: int) -> float:
        import torch

        # one seed for each epoch, so that a resumed training equals an uninterrupted one
        torch.manual_seed(self._recipe.seed * 1_000_003 + number)
        drawn = np.random.default_rng((self._recipe.seed, number)).permutation(
            len(self._pairs.train)
        )
        order = [self._pairs.train[i] for i in drawn]
        model.train()
        total = 0.0
        steps = 0
        for batch in _batches(order, self._recipe.batch):
            optimizer.zero_grad()
            loss = self._forward(model, batch)[0]
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += float(loss.detach())
            steps += 1
        return total / steps

    def _forward(self, model: Any, batch: Sequence[Pair]) -> tuple[Any, int]:
        """Return the mean loss of a batch's tokens and their number."""
        tokens = limit(model.config, self._recipe.tokens)
        tokenizer = self._loaded.tokenizer
        given = encode(tokenizer, [" ".join(one.text.split()) for one in batch], tokens)
        labels = targets(tokenizer, [" ".join(one.summary.split()) for one in batch], tokens)
        loss = model(**given.to(self._device), labels=labels.to(self._device)).loss
        return loss, int((labels != -100).sum())

    def _loss(self, model: Any, pairs: Sequence[Pair]) -> float:
        import torch

        model.eval()
        total = count = 0.0
        with torch.inference_mode():
            for batch in _batches(pairs, _EVALUATED):
                loss, tokens = self._forward(model, batch)
                total += float(loss) * tokens
                count += tokens
        return total / count

    def _keep(self, model: Any) -> None:
        """Write the model to the folder. If this is interrupted, the epoch is repeated."""
        part = self._out.with_name(self._out.name + ".part")
        shutil.rmtree(part, ignore_errors=True)
        with loading():
            model.save_pretrained(part)
        self._loaded.tokenizer.save_pretrained(part)
        write_card(self._card(), part)
        for path in part.iterdir():
            path.replace(self._out / path.name)
        part.rmdir()

    def _save(self, model: Any, optimizer: Any, schedule: Any, number: int) -> None:
        import torch

        part = self._out / f"{STATE}.part"
        torch.save(
            {
                "identity": self._identity,
                "epoch": number,
                "losses": list(self._losses),
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "schedule": schedule.state_dict(),
            },
            part,
        )
        part.replace(self._out / STATE)

    def _card(self) -> Card:
        return Card(
            share=self._pairs.share,
            tokens=limit(self._loaded.model.config, self._recipe.tokens),
            base=self._init,
            dataset=self._pairs.digest,
            losses=tuple(self._losses),
            best=1 + self._losses.index(min(self._losses)),
            device=self._device,
        )

    def _finish(self) -> Card:
        """Measure the best model on the test set and remove the checkpoint."""
        kept = read(str(self._out))
        card = self._card()
        test = self._pairs.test
        if test:
            loss = self._loss(kept.model.to(self._device), test)
            left, seconds = self._measure(kept, test[:_MEASURED])
            card = card.model_copy(update={"test_loss": loss, "left": left, "seconds": seconds})
        write_card(card, self._out)
        (self._out / STATE).unlink()
        return card

    def _measure(self, kept: Loaded, pairs: Sequence[Pair]) -> tuple[float, float]:
        """Return the compression ratio of the summaries and the seconds for each."""
        summarize = Summarizer(kept, device=self._device)
        texts = [one.text for one in pairs]
        began = time.perf_counter()
        written = summarize(texts)
        seconds = (time.perf_counter() - began) / len(texts)
        words = sum(len(text.split()) for text in texts)
        return min(1.0, sum(len(one.split()) for one in written) / words), seconds


def _batches(pairs: Sequence[Pair], size: int) -> Iterator[Sequence[Pair]]:
    for start in range(0, len(pairs), size):
        yield pairs[start : start + size]
