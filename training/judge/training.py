"""Training of the judge of support: the general sets once, then the claims that people wrote several times.

An interrupted training goes on from its last saved state.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from posology.errors import InputError
from posology.reading.pairs import Pair, claimed
from training.judge.cases import (
    GENERAL,
    SUPPORTS,
    UNKNOWN,
    UNSUPPORTED,
    Lesson,
)
from training.reader.model import layers, pair_vectors, read_pair
from training.reader.training import rate, save

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: lessons of a step
ROWS = 32
#: lessons among which lengths are sorted
SORTED = 640
#: how much of the label is spread over the other stances
SMOOTHING = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """Settings of a training."""

    #: passes over the written claims
    passes: int = 3
    #: learning rates of layers and head, at their highest
    rate: float = 2e-4
    head_rate: float = 1e-3
    seed: int = 0
    #: steps between two saved states
    save_every: int = 100


class JudgeModel(nn.Module):
    """The packaged layers and a head on the whole input."""

    def __init__(self, encoder: Any) -> None:
        super().__init__()
        self.encoder = encoder
        size = int(encoder.config.hidden_size)
        self.pooled = nn.Linear(4 * size, size)
        self.stances = nn.Linear(size, UNSUPPORTED)

    def forward(self, embeddings: Tensor, mask: Tensor, segments: Tensor) -> Tensor:
        """Return logits of the stances, shape ``(rows, 3)``."""
        hidden = self.read(embeddings, mask, segments)
        found: Tensor = self.stances(torch.tanh(self.pooled(pair_vectors(hidden, mask, segments))))
        return found

    def read(self, embeddings: Tensor, mask: Tensor, segments: Tensor) -> Tensor:
        """Return the vectors of tokens, shape ``(rows, width, dim)``."""
        return read_pair(self.encoder, embeddings, mask, segments)


def make(seed: int, config: Any = None) -> JudgeModel:
    """Return the untrained model: packaged layers and a new head; its vectors of words stay as they are.

    Args:
        seed: of the head.
        config: see :func:`~training.reader.model.layers`.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = layers(config, dropout=0.1)
        model = JudgeModel(encoder)
    encoder.embeddings.word_embeddings.weight.requires_grad = False
    # on a CPU, the gradients of torch's fused attention take a third of a step
    encoder.set_attn_implementation("eager")
    return model


def read(one: Lesson) -> Pair:
    """Return a lesson as model input: the claim, then the text."""
    return claimed(one.claim, one.text)


def loss(logits: Tensor, learned: Sequence[Lesson]) -> Tensor:
    """Return the mean loss.

    Of what is only known not to be supported it is that of its support; of what a teacher judged, that of its probabilities, or
    the mean of both.
    """
    wanted = torch.tensor([one.stance for one in learned])
    total = logits.new_zeros(len(learned))
    if (known := wanted < UNSUPPORTED).any():
        total[known] = functional.cross_entropy(
            logits[known], wanted[known], reduction="none", label_smoothing=SMOOTHING
        )
    if (unsupported := wanted == UNSUPPORTED).any():
        likely = functional.log_softmax(logits[unsupported], dim=1)
        others = [k for k in range(UNSUPPORTED) if k != SUPPORTS]
        total[unsupported] = -torch.logsumexp(likely[:, others], dim=1)
    if (taught := torch.tensor([one.taught is not None for one in learned])).any():
        said = torch.tensor([one.taught for one in learned if one.taught is not None])
        soft = functional.cross_entropy(logits[taught], said, reduction="none")
        total[taught] = torch.where(wanted[taught] == UNKNOWN, soft, (soft + total[taught]) / 2)
    return total.mean()


def stages(
    learned: Sequence[Lesson], recipe: Recipe
) -> dict[str, tuple[Sequence[Lesson], list[list[int]]]]:
    """Return the stages of a training by name: their lessons, and the places of those of each step."""
    general = [one for one in learned if one.origin in GENERAL]
    written = [one for one in learned if one.origin not in GENERAL]
    return {
        name: (
            some,
            [
                one
                for turn in range(turns if some else 0)
                for one in _batches(some, random.Random(f"{recipe.seed}:{name}:{turn}"))
            ],
        )
        for name, some, turns in (("general", general, 1), ("written", written, recipe.passes))
    }


def _batches(learned: Sequence[Lesson], rng: random.Random) -> list[list[int]]:
    """Return the batches of a pass, each of lessons of like length."""
    mixed = rng.sample(range(len(learned)), len(learned))
    made = []
    for at in range(0, len(mixed), SORTED):
        part = sorted(mixed[at : at + SORTED], key=lambda i: _length(learned[i]))
        made += [part[k : k + ROWS] for k in range(0, len(part), ROWS)]
    rng.shuffle(made)
    return made


def _length(one: Lesson) -> int:
    return len(one.claim) + len(one.text)


def train(
    model: JudgeModel,
    learned: Sequence[Lesson],
    inputs: Callable[[Sequence[Lesson]], tuple[Tensor, ...]],
    recipe: Recipe,
    folder: Path,
) -> None:
    """Train to the end, from the last saved states in ``folder``, one for each stage. Blocking.

    Args:
        model: untrained.
        learned: its lessons.
        inputs: what the model is given of lessons.
        recipe: settings.
        folder: of the states.

    Raises:
        InputError: a saved state is of another training.
    """
    about = hashlib.sha256(repr((recipe.seed, recipe.rate, recipe.head_rate)).encode())
    for name, (some, steps) in stages(learned, recipe).items():
        about.update(repr((some, steps)).encode())
        state = folder / f"{name}.pt"
        _learn(model, some, steps, inputs, recipe, state, about=about.hexdigest()[:16])


def _learn(
    model: JudgeModel,
    learned: Sequence[Lesson],
    steps: Sequence[Sequence[int]],
    inputs: Callable[[Sequence[Lesson]], tuple[Tensor, ...]],
    recipe: Recipe,
    state: Path,
    *,
    about: str,
) -> None:
    """Train by the steps of a stage that were not taken yet."""
    head = [*model.pooled.parameters(), *model.stances.parameters()]
    layers = [one for one in model.encoder.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(
        [{"params": layers, "lr": recipe.rate}, {"params": head, "lr": recipe.head_rate}],
        weight_decay=0.01,
        fused=True,
    )
    highest = [group["lr"] for group in optimizer.param_groups]
    done = 0
    if state.exists():
        kept = torch.load(state, weights_only=True)
        if kept["about"] != about:
            raise InputError(f"{state} is of another training. Repeat that, or remove it.")
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        done = int(kept["done"])
    model.train()
    started, mean = time.monotonic(), 0.0
    for step in range(done, len(steps)):
        for group, top in zip(optimizer.param_groups, highest, strict=True):
            group["lr"] = top * rate(step, len(steps))
        some = [learned[i] for i in steps[step]]
        # the same dropout, whether it was interrupted or not
        torch.manual_seed(recipe.seed + step)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(*inputs(some))
        lost = loss(logits.float(), some)
        optimizer.zero_grad()
        lost.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        mean = 0.98 * mean + 0.02 * float(lost.detach())
        made = step + 1 - done
        if made % 20 == 0:
            seconds = (time.monotonic() - started) / made
            print(
                f"{state.stem}: step {step + 1} of {len(steps)}, loss {mean / (1 - 0.98**made):.3f}, "
                f"{seconds:.2f} s",
                flush=True,
            )
        if (step + 1) % recipe.save_every == 0 or step + 1 == len(steps):
            save(
                state,
                {
                    "about": about,
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "done": step + 1,
                },
            )


def measures(asked: Sequence[Lesson], probabilities: NDArray[np.floating[Any]]) -> dict[str, float]:
    """Return how well lessons are judged: *supported* against the rest, and all three stances."""
    stances = np.array([one.stance for one in asked])
    right, said = stances == SUPPORTS, probabilities[:, SUPPORTS] >= 0.5
    recall, specificity = float(said[right].mean()), float(1 - said[~right].mean())
    known = stances < UNSUPPORTED
    return {
        "n": len(asked),
        "balanced": (recall + specificity) / 2,
        "recall": recall,
        "specificity": specificity,
        "precision": float(right[said].mean()) if said.any() else 0.0,
        "right called contradicted": float((probabilities[right].argmax(axis=1) == 1).mean()),
        "accuracy": float((probabilities[known].argmax(axis=1) == stances[known]).mean()),
    }


def aside(found: Iterable[Lesson], part: str) -> dict[str, list[Lesson]]:
    """Return the written lessons of a part by set."""
    sets: dict[str, list[Lesson]] = {}
    for one in found:
        if one.part == part and one.written:
            sets.setdefault(one.origin, []).append(one)
    return sets
