"""Training of a re-ranker to prune and to keep its ranking: equation 1 of Provence.

This module imports torch. Import it inside functions only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch.nn import functional

from orchestrator.training.forms import Losses
from orchestrator.training.pruner.examples import Example
from strategies.compression.provence.checkpoint import Checkpoint
from strategies.compression.provence.windows import HEADING, Reading, Window

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

#: tokens of one backward pass, padding included; a batch takes as many passes as it needs
TOKENS_A_PASS = 8_192
#: label that cross-entropy ignores: question, heading, special tokens, padding
_UNTAUGHT = -100


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """Hyperparameters of a pruner. Defaults are the paper's (section 4.1).

    Raises:
        ValueError: a value is out of range.
    """

    epochs: int = 1
    #: learning rate
    rate: float = 3e-6
    #: pairs of question and passage
    batch: int = 48
    #: λ of equation 1: weight of the teacher's scores against the labels; 0: the score is not trained
    weight: float = 0.05
    #: the labels' part of a pair's loss: the sum over its tokens, as printed, or the mean over those of the batch
    loss: Literal["sum", "mean"] = "sum"
    #: of the order of examples, of dropout and of new heads
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1:
            raise ValueError(f"epochs and batch must be >= 1 (got {self.epochs} and {self.batch}).")
        if not (self.rate > 0 and self.weight >= 0):
            raise ValueError(
                f"learning_rate must be > 0 and ranking_weight >= 0 (got {self.rate:g} and {self.weight:g})."
            )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Lesson:
    """An example as model input: its first window."""

    window: Window
    #: label of each token of the window: 1 kept, 0 dropped, -100 ignored; shape ``(w,)``, int64
    labels: NDArray[np.int64]


class Trainer:
    """Trains a model in place.

    Equation 1 minimises, over pairs, the sum of the cross-entropies of the passage's tokens (the paper omits the minus
    sign) plus λ times the squared distance between the score and the teacher's. A batch takes the mean over its pairs,
    which leaves both terms' weights as printed. With the recipe's ``mean``, the first term is a mean over the batch's
    tokens: λ then weighs as many times more as a pair has tokens, and does not depend on their number. The teacher is
    the initial model: take its scores by :meth:`scores` before the first step.

    Args:
        checkpoint: the model, changed by :meth:`step`.
        recipe: hyperparameters.
        device: of the model.
        tokens_a_pass: maximum tokens of one backward pass.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        recipe: Recipe,
        *,
        device: str = "cpu",
        tokens_a_pass: int = TOKENS_A_PASS,
    ) -> None:
        self.checkpoint = checkpoint
        self.recipe = recipe
        self._reading = Reading.of(checkpoint)
        self._device = device
        self._tokens = tokens_a_pass
        # the paper gives neither a schedule nor a weight decay
        self.optimizer = torch.optim.AdamW(
            checkpoint.model.parameters(), lr=recipe.rate, weight_decay=0.0
        )

    def lesson(self, example: Example) -> Lesson:
        """Encode an example; tokens after the first window are ignored."""
        from posology.index.embedders.sentence_transformer import heading
        from posology.types import Passage

        head = heading(Passage(id="", title=example.title, text=example.text))
        text = self._reading.text(head, example.text, example.spans)
        window = self._reading.windows(example.question, text)[0]
        shown = text.sentence[: window.owned]
        labels = np.full(len(window.ids), _UNTAUGHT, np.int64)
        taught = np.isin(shown, np.array(example.relevant, np.int64)).astype(np.int64)
        labels[window.first : window.first + window.owned] = np.where(
            shown == HEADING, _UNTAUGHT, taught
        )
        return Lesson(window=window, labels=labels)

    def order(self, count: int, epoch: int) -> list[list[int]]:
        """Return the batches of an epoch (from 0): places of all examples, shuffled by the seed."""
        places = np.random.default_rng((self.recipe.seed, epoch)).permutation(count).tolist()
        size = self.recipe.batch
        return [places[at : at + size] for at in range(0, count, size)]

    def scores(self, lessons: Sequence[Lesson]) -> NDArray[np.float32]:
        """Return the model's current scores of lessons, shape ``(len(lessons),)``."""
        model = self.checkpoint.model.eval()
        found = np.zeros(len(lessons), np.float32)
        for places in self._passes(lessons):
            inputs = self._reading.tensors([lessons[i].window for i in places], device=self._device)
            scores, _ = model.tokens_kept(inputs)
            found[places] = scores.cpu().numpy()
        return found

    def step(
        self, lessons: Sequence[Lesson], teacher: NDArray[np.float32], *, number: int
    ) -> Losses:
        """Train the model on one batch.

        Args:
            lessons: the batch.
            teacher: their scores by the initial model.
            number: of the step, from 0; with the seed it determines dropout.
        """
        torch.manual_seed(self.recipe.seed * 1_000_003 + number)
        self.checkpoint.model.train()
        self.optimizer.zero_grad()
        losses = self._losses(lessons, teacher, learn=True)
        self.optimizer.step()
        self.checkpoint.model.eval()
        return losses

    def look(self, lessons: Sequence[Lesson], teacher: NDArray[np.float32]) -> Losses:
        """Return the losses of lessons without training on them."""
        self.checkpoint.model.eval()
        with torch.inference_mode():
            return self._losses(lessons, teacher, learn=False)

    def _losses(
        self, lessons: Sequence[Lesson], teacher: NDArray[np.float32], *, learn: bool
    ) -> Losses:
        among = len(lessons)
        if self.recipe.loss == "mean":
            among = max(1, sum(int((one.labels != _UNTAUGHT).sum()) for one in lessons))
        pruning = ranking = 0.0
        for places in self._passes(lessons):
            batch = [lessons[i] for i in places]
            inputs = self._reading.tensors([one.window for one in batch], device=self._device)
            seen = self.checkpoint.model(inputs)
            labels = _padded(batch, seen.logits.shape[1]).to(self._device)
            aims = torch.from_numpy(teacher[places]).to(self._device)
            entropy = (
                functional.cross_entropy(
                    seen.logits.flatten(0, 1).float(),
                    labels.flatten(),
                    ignore_index=_UNTAUGHT,
                    reduction="sum",
                )
                / among
            )
            distance = (seen.scores.float() - aims).square().sum() / len(lessons)
            if learn:
                # gradients of several passes add up
                (entropy + self.recipe.weight * distance).backward()
            pruning += float(entropy.detach())
            ranking += float(distance.detach())
        return Losses(pruning=pruning, ranking=ranking)

    def _passes(self, lessons: Sequence[Lesson]) -> Iterator[list[int]]:
        """Yield the lessons of each pass, as places, sorted by length."""
        order = sorted(range(len(lessons)), key=lambda i: -len(lessons[i].window.ids))
        at = 0
        while at < len(order):
            size = max(1, self._tokens // len(lessons[order[at]].window.ids))
            yield order[at : at + size]
            at += size


def _padded(lessons: Sequence[Lesson], width: int) -> Tensor:
    labels = torch.full((len(lessons), width), _UNTAUGHT, dtype=torch.long)
    for row, lesson in enumerate(lessons):
        labels[row, : len(lesson.labels)] = torch.from_numpy(lesson.labels)
    return labels
