"""Teaches a re-ranker to prune and keeps its ranking: equation 1 of Provence.

It imports torch: import it inside functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

from orchestrator.training.pruner.examples import Example
from strategies.compression.provence.checkpoint import Checkpoint
from strategies.compression.provence.windows import HEADING, Reading, Window

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

#: tokens of one backward pass, padding included; a batch is taught in as many as it needs
TOKENS_A_PASS = 8_192
#: what cross-entropy takes no account of: the question, the heading, special tokens, padding
_UNTAUGHT = -100


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """How a pruner is taught. Defaults are the paper's (section 4.1)."""

    epochs: int = 1
    #: learning rate
    rate: float = 3e-6
    #: pairs of question and passage
    batch: int = 48
    #: λ of equation 1: how much the teacher's scores weigh against labels; 0: the score is not taught
    weight: float = 0.05
    #: of the order of examples, of dropout and of fresh heads
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1:
            raise ValueError("there is at least one epoch, and at least one example in a batch")
        if not (self.rate > 0 and self.weight >= 0):
            raise ValueError("the learning rate is above 0, and the weight of ranking not below")


@dataclass(frozen=True, kw_only=True, slots=True)
class Losses:
    """What a batch, or several, came to."""

    #: mean cross-entropy of the passages' tokens, nats
    pruning: float
    #: mean squared distance of scores to the teacher's
    ranking: float

    def total(self, weight: float) -> float:
        """Equation 1."""
        return self.pruning + weight * self.ranking


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Lesson:
    """An example as the model reads it: its first window."""

    window: Window
    #: of each of the window's tokens, whether it is kept, or that it is not taught; shape ``(w,)``, int64
    labels: NDArray[np.int64]


class Trainer:
    """Teaches a model in place.

    Equation 1 minimises, over pairs, the cross-entropy of the passage's tokens (in the paper it stands without
    its minus) plus λ times the squared distance of the score to the teacher's. Here the first is a mean over
    the tokens of a batch and the second one over its pairs, so that λ means the same whatever their lengths.
    The teacher is the model as it was before: take its scores by :meth:`scores` first.

    Args:
        checkpoint: the model, changed by :meth:`step`.
        recipe: how.
        device: where the model is.
        tokens_a_pass: of one backward pass.
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
        # the paper states neither a schedule nor a decay of weights
        self.optimizer = torch.optim.AdamW(
            checkpoint.model.parameters(), lr=recipe.rate, weight_decay=0.0
        )

    def lesson(self, example: Example) -> Lesson:
        """Read an example; what does not fit one window is not taught."""
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
        """The batches of an epoch, from 0: places of examples, each once, in an order of the seed's."""
        places = np.random.default_rng((self.recipe.seed, epoch)).permutation(count).tolist()
        size = self.recipe.batch
        return [places[at : at + size] for at in range(0, count, size)]

    def scores(self, lessons: Sequence[Lesson]) -> NDArray[np.float32]:
        """What the model scores lessons now, shape ``(len(lessons),)``."""
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
        """Change the model by one batch.

        Args:
            lessons: of the batch.
            teacher: their scores before any step.
            number: of the step, from 0; with the seed it decides what dropout drops.
        """
        torch.manual_seed(self.recipe.seed * 1_000_003 + number)
        self.checkpoint.model.train()
        self.optimizer.zero_grad()
        losses = self._losses(lessons, teacher, learn=True)
        self.optimizer.step()
        self.checkpoint.model.eval()
        return losses

    def look(self, lessons: Sequence[Lesson], teacher: NDArray[np.float32]) -> Losses:
        """The losses of lessons, without learning from them."""
        self.checkpoint.model.eval()
        with torch.inference_mode():
            return self._losses(lessons, teacher, learn=False)

    def _losses(
        self, lessons: Sequence[Lesson], teacher: NDArray[np.float32], *, learn: bool
    ) -> Losses:
        tokens = sum(int((one.labels != _UNTAUGHT).sum()) for one in lessons)
        pruning = ranking = 0.0
        for places in self._passes(lessons):
            batch = [lessons[i] for i in places]
            inputs = self._reading.tensors([one.window for one in batch], device=self._device)
            seen = self.checkpoint.model(inputs)
            labels = _padded(batch, seen.logits.shape[1]).to(self._device)
            aims = torch.from_numpy(teacher[places]).to(self._device)
            entropy = functional.cross_entropy(
                seen.logits.flatten(0, 1).float(),
                labels.flatten(),
                ignore_index=_UNTAUGHT,
                reduction="sum",
            ) / max(tokens, 1)
            distance = (seen.scores.float() - aims).square().sum() / len(lessons)
            if learn:
                # of a batch in several passes the gradients add up
                (entropy + self.recipe.weight * distance).backward()
            pruning += float(entropy.detach())
            ranking += float(distance.detach())
        return Losses(pruning=pruning, ranking=ranking)

    def _passes(self, lessons: Sequence[Lesson]) -> Iterator[list[int]]:
        """Places of lessons of like length, as many as a pass takes."""
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
