"""Trains the packaged cross-encoder.

``python -m training.reader --data DIR --work DIR [--write]``. An interrupted training goes on from
its last saved state. Without ``--write`` the packaged file stays. About two hours on two cores; what it reaches:
``posology/reading/models/MODEL_CARD.md`` and ``python -m evals.reader``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from posology.errors import InputError
from posology.index.embedders.onnx.forward import WordVectors
from posology.index.embedders.packaged import words as word_vectors
from posology.reading.crossencoder import FILE, MODELS
from posology.reading.pairs import Pair, padded
from training.gold import DATA, WORK
from training.reader.abstracts import lessons, strangers
from training.reader.calibration import calibrated
from training.reader.cases import Lesson
from training.reader.model import (
    Example,
    ReaderModel,
    example,
    export,
    loss,
    make,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: padded tokens of a step
STEP_TOKENS = 4_096
#: learning rates of layers and heads, at their highest
RATE, HEAD_RATE = 1.5e-4, 1e-3
#: share of the steps until then
WARM = 0.06
#: lessons among which lengths are sorted
SORTED = 640
#: lessons by which the scales of integers are chosen, at most
_OBSERVED = 256
#: how often lessons of small sets are learned, others once
TIMES = {"scifact": 2, "pubmedqa": 2, "written": 3}


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """Settings of a training."""

    #: steps of the first cycle, over lessons whose texts are near their questions; a step takes about 20 lessons
    near_steps: int = 1_500
    #: epochs of the second cycle, over all lessons; the learning rate rises and falls again
    epochs: int = 1
    #: steps at most of the second cycle
    all_steps: int = 3_000
    #: share of the second cycle's end in the weights; the rest is the end of the first, which knows the training texts less
    last: float = 0.6
    seed: int = 0
    #: steps between two saved states
    save_every: int = 200


def order(lengths: Sequence[int], seed: tuple[int, int]) -> list[list[int]]:
    """Return the batches of an epoch: places of examples of like length, in a seeded order."""
    rng = np.random.default_rng(seed)
    places = rng.permutation(len(lengths)).tolist()
    made: list[list[int]] = []
    for at in range(0, len(places), SORTED):
        part = sorted(places[at : at + SORTED], key=lambda i: -lengths[i])
        while part:
            size = max(1, STEP_TOKENS // lengths[part[0]])
            made.append(part[:size])
            part = part[size:]
    rng.shuffle(made)
    return made


def rate(step: int, steps: int) -> float:
    """Return the share of the highest learning rate at a step of a cycle: it rises, then falls to nothing."""
    warm = max(1, int(WARM * steps))
    return (step + 1) / warm if step < warm else (steps - step) / (steps - warm + 1)


def train(
    model: ReaderModel,
    examples: Sequence[Example],
    words: WordVectors | NDArray[np.float32],
    recipe: Recipe,
    folder: Path,
) -> None:
    """Train to the end, from the last saved state in ``folder``; the weights are a mean of both cycles' ends. Blocking.

    Args:
        model: what is trained.
        examples: those of far texts last.
        words: vectors of the words.
        recipe: settings.
        folder: of the saved states.

    Raises:
        InputError: the saved state is of another training.
    """
    heads = [*model.tokens.parameters(), *model.pooled.parameters(), *model.texts.parameters()]
    own = {id(one) for one in heads}
    layers = [p for p in model.parameters() if p.requires_grad and id(p) not in own]
    optimizer = torch.optim.AdamW(
        [{"params": layers, "lr": RATE}, {"params": heads, "lr": HEAD_RATE}],
        weight_decay=0.01,
        fused=True,
    )
    lengths = [len(one.pair.ids) for one in examples]
    near = sum(not one.lesson.far for one in examples)
    first = order(lengths[:near], (recipe.seed, 0))[: recipe.near_steps]
    epochs = range(1, 1 + recipe.epochs)
    second = [one for epoch in epochs for one in order(lengths, (recipe.seed, epoch))]
    second = second[: recipe.all_steps]
    batches = first + second
    rates = [rate(step, len(part)) for part in (first, second) for step in range(len(part))]
    about = _about(examples, recipe)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        # asked once more after the last step
        optimizer,
        lambda step: [*rates, 0.0][step],
    )
    state, middle = folder / "state.pt", folder / "middle.pt"
    done = 0
    if state.exists():
        kept = torch.load(state, weights_only=True)
        if kept["about"] != about:
            raise InputError(
                f"{state} is of other lessons or other settings. Repeat those, or remove it."
            )
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        schedule.load_state_dict(kept["schedule"])
        done = int(kept["done"])
    model.train()
    started, mean = time.monotonic(), 0.0
    for step in range(done, len(batches)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            lost = loss(model, [examples[i] for i in batches[step]], words)
        optimizer.zero_grad()
        lost.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step + 1 == len(first):
            save(middle, model.state_dict())
        mean = 0.98 * mean + 0.02 * float(lost.detach())
        made = step + 1 - done
        if made % 20 == 0:
            weight = 1 - 0.98**made
            print(
                f"step {step + 1} of {len(batches)}, loss {mean / weight:.3f}, "
                f"{(time.monotonic() - started) / made:.2f} s a step",
                flush=True,
            )
        if (step + 1) % recipe.save_every == 0 or step + 1 == len(batches):
            save(
                state,
                {
                    "about": about,
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "schedule": schedule.state_dict(),
                    "done": step + 1,
                },
            )
    if first and second:
        early, late = torch.load(middle, weights_only=True), model.state_dict()
        shares = {name: torch.lerp(early[name], late[name], recipe.last) for name in late}
        model.load_state_dict(shares)


def _about(examples: Sequence[Example], recipe: Recipe) -> str:
    """Return a digest of what a training learns, in which order."""
    found = hashlib.sha256(repr(recipe).encode())
    for one in examples:
        found.update(one.pair.ids.tobytes())
    return found.hexdigest()[:16]


def save(path: Path, state: dict[str, Any]) -> None:
    """Write a state; a kill leaves the one before or this one."""
    new = path.with_suffix(".new")
    torch.save(state, new)
    new.replace(path)


def observable(lessons: int) -> NDArray[np.int64]:
    """Return the places of those lessons by which the scales of integers are chosen."""
    return np.random.default_rng(0).choice(lessons, min(_OBSERVED, lessons), replace=False)


def quantised(
    exact: bytes, inputs: Sequence[Pair], words: WordVectors | NDArray[np.float32], bits: int
) -> bytes:
    """Return an exported model in bytes; the scales are those of the inputs."""
    from posology.index.embedders.onnx.quantisation import observe, quantise

    # ONNX Runtime takes each input in its own type
    feeds: list[dict[str, Any]] = []
    for at in range(0, len(inputs), 8):
        ids, mask, segments = padded(inputs[at : at + 8])
        feeds.append({"embeddings": words[ids], "attention_mask": mask, "token_type_ids": segments})
    return quantise(exact, observe(exact, feeds), bits=bits)


def taught(found: Sequence[Lesson]) -> list[Lesson]:
    """Return the training lessons, those of small sets more than once."""
    return [one for one in found if one.part == "train" for _ in range(TIMES.get(one.origin, 1))]


def main() -> None:
    """Train; write the packaged file with ``--write``."""
    parser = argparse.ArgumentParser(
        prog="training.reader",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--work", type=Path, default=WORK / "reader")
    for name in ("near_steps", "all_steps"):
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=int, default=getattr(Recipe(), name), help="at most"
        )
    parser.add_argument(
        "--without", nargs="*", default=(), metavar="SET", help="sets that are not learned"
    )
    parser.add_argument("--limit", type=int, help="lessons, for a trial; not with --write")
    parser.add_argument("--bits", type=int, default=7, help="of a weight; 8 saturates old CPUs")
    parser.add_argument("--write", action="store_true", help="replace the packaged file")
    given = parser.parse_args()
    if given.write and (given.limit is not None or given.without):
        parser.error("--limit and --without train a trial only: omit --write")
    given.work.mkdir(parents=True, exist_ok=True)
    recipe = Recipe(near_steps=given.near_steps, all_steps=given.all_steps)
    all_lessons = [one for one in lessons(given.data) if one.origin not in given.without]
    learned = taught(all_lessons)
    learned += strangers(learned)
    if given.limit is not None:
        learned = learned[:: max(1, len(learned) // given.limit)]
    examples = [example(one) for one in learned]
    print(f"{len(examples)} lessons, {sum(len(e.pair.ids) for e in examples)} tokens", flush=True)
    words = word_vectors()
    model = make(recipe.seed)
    train(model, examples, words, recipe, given.work)
    observed = [examples[i].pair for i in observable(len(examples))]
    file = quantised(export(model), observed, words, given.bits)
    file, report = calibrated(file, [one for one in all_lessons if one.part == "dev"])
    print(json.dumps(report, indent=1))
    (given.work / FILE).write_bytes(file)
    if given.write:
        MODELS.mkdir(exist_ok=True)
        (MODELS / FILE).write_bytes(file)


if __name__ == "__main__":
    main()
