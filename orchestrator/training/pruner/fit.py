"""Trains a pruner from labels, step by step, and goes on where it was interrupted."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrator.training.pruner.examples import held_aside
from orchestrator.training.pruner.rows import read_examples
from posology.devices import find_device
from posology.errors import BadFile, InputError
from posology.published.training import Loss, PrunerOutput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from orchestrator.training.pruner.trainer import Lesson, Losses, Recipe, Trainer

#: where the state of an unfinished training is, in the folder of the model
_STATE, _NEW = ".training", ".training.new"


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What is to be trained."""

    #: file of labels
    labels: Path
    #: the re-ranker to begin with
    init: str
    #: folder of the model
    out: Path
    recipe: Recipe
    #: share of the questions that is kept aside
    held: float
    #: ``cpu`` or ``cuda``; ``None``: the accelerator where there is one
    device: str | None
    #: steps between two states that are kept
    save_every: int


def train(wanted: Wanted, tell: Callable[[int, int, Losses | None], None]) -> PrunerOutput:
    """Train to the end. Blocking.

    Args:
        wanted: what.
        tell: is told after each step how many there are, of how many, and what the last came to.

    Raises:
        PosologyError: labels or model cannot be read; or the folder holds something else.
    """
    from orchestrator.training.pruner.trainer import Trainer
    from strategies.compression.provence.checkpoint import load, save

    started = time.monotonic()
    recipe = wanted.recipe
    examples = read_examples(wanted.labels)
    learned, held = held_aside(examples, wanted.held, recipe.seed)
    about = _about(wanted, len(learned))
    _check(wanted.out, about)
    device = find_device(wanted.device)
    checkpoint = load(wanted.init, device=device, seed=recipe.seed)
    if recipe.weight and not checkpoint.ranks:
        raise InputError(
            f"{wanted.init} has not learned to rank, so it has no scores to keep: begin with a re-ranker, or with "
            "--lambda 0"
        )
    trainer = Trainer(checkpoint, recipe, device=device)
    lessons = [trainer.lesson(one) for one in learned]
    aside = [trainer.lesson(one) for one in held]
    state = _State.read(wanted.out, about)
    if state is None:
        state = _State(
            about=about,
            teacher=trainer.scores(lessons),
            held_teacher=trainer.scores(aside),
            losses=[],
            before=None,
        )
        if aside:
            state.before = _loss(trainer.look(aside, state.held_teacher))
    else:
        state.restore(trainer, wanted.out)
    resumed = len(state.losses)
    _steps(trainer, lessons, state, wanted, tell)
    after = _loss(trainer.look(aside, state.held_teacher)) if aside else None
    save(
        checkpoint.model,
        checkpoint.tokenizer,
        wanted.out,
        about | {"kind": "provence", "steps": len(state.losses)},
    )
    shutil.rmtree(wanted.out / _STATE, ignore_errors=True)
    tenth = max(1, len(state.losses) // 10)
    return PrunerOutput(
        labels=str(wanted.labels),
        init=wanted.init,
        out=str(wanted.out),
        learned=len(learned),
        held=len(held),
        steps=len(state.losses),
        resumed_at=resumed,
        first=_mean(state.losses[:tenth]),
        last=_mean(state.losses[-tenth:]),
        held_before=state.before,
        held_after=after,
        seconds=time.monotonic() - started,
    )


def _steps(
    trainer: Trainer,
    lessons: Sequence[Lesson],
    state: _State,
    wanted: Wanted,
    tell: Callable[[int, int, Losses | None], None],
) -> None:
    epochs = wanted.recipe.epochs
    batches = [one for epoch in range(epochs) for one in trainer.order(len(lessons), epoch)]
    tell(len(state.losses), len(batches), None)
    for number in range(len(state.losses), len(batches)):
        places = batches[number]
        losses = trainer.step([lessons[i] for i in places], state.teacher[places], number=number)
        state.losses.append(_loss(losses))
        tell(number + 1, len(batches), losses)
        if (number + 1) % wanted.save_every == 0 and number + 1 < len(batches):
            state.keep(trainer, wanted.out)


@dataclass(kw_only=True, slots=True, eq=False)
class _State:
    """All that a training needs to go on as if it had not been interrupted."""

    #: what is trained, from what
    about: dict[str, Any]
    #: scores of the model before the first step, one a lesson
    teacher: NDArray[np.float32]
    held_teacher: NDArray[np.float32]
    #: of each step so far
    losses: list[Loss]
    #: of what is kept aside, before the first step; ``None``: nothing is
    before: Loss | None

    @classmethod
    def read(cls, out: Path, about: dict[str, Any]) -> _State | None:
        """The state that is kept in a folder; ``None``: there is none."""
        if not (out / _STATE).exists() and (out / _NEW / "state.json").exists():
            # it was written to its end, and then the process was killed
            (out / _NEW).rename(out / _STATE)
        path = out / _STATE / "state.json"
        if not path.exists():
            return None
        try:
            said = json.loads(path.read_text(encoding="utf-8"))
            scores = np.load(out / _STATE / "teacher.npz", allow_pickle=False)
            before = said["before"]
            state = cls(
                about=said["about"],
                teacher=scores["learned"],
                held_teacher=scores["held"],
                losses=[Loss(pruning=a, ranking=b) for a, b in said["losses"]],
                before=None if before is None else Loss(**before),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadFile(
                f"it is no state of a training: remove {out / _STATE} to begin anew ({error})",
                path=str(path),
            ) from None
        if state.about != about:
            raise InputError(
                f"{out} holds a training from other labels or with other settings: finish that one, or remove "
                f"{out / _STATE}"
            )
        return state

    def keep(self, trainer: Trainer, out: Path) -> None:
        """Write the state; a kill leaves the one before or this one."""
        import torch

        new, old = out / _NEW, out / _STATE
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        torch.save(trainer.checkpoint.model.state_dict(), new / "model.pt")
        torch.save(trainer.optimizer.state_dict(), new / "optimizer.pt")
        np.savez(new / "teacher.npz", learned=self.teacher, held=self.held_teacher)
        said = {
            "about": self.about,
            "losses": [[one.pruning, one.ranking] for one in self.losses],
            "before": None if self.before is None else self.before.model_dump(),
        }
        # last, since it says that the others are whole
        (new / "state.json").write_text(json.dumps(said), encoding="utf-8")
        shutil.rmtree(old, ignore_errors=True)
        new.rename(old)

    def restore(self, trainer: Trainer, out: Path) -> None:
        """Bring model and optimiser to where they were."""
        import torch

        try:
            for part, name in (
                (trainer.checkpoint.model, "model.pt"),
                (trainer.optimizer, "optimizer.pt"),
            ):
                part.load_state_dict(
                    torch.load(out / _STATE / name, map_location="cpu", weights_only=True)
                )
        # damaged files surface as whatever the reader raises
        except Exception as error:
            raise BadFile(
                f"it is damaged: remove {out / _STATE} to begin anew ({error})",
                path=str(out / _STATE / name),
            ) from error


def _about(wanted: Wanted, learned: int) -> dict[str, Any]:
    digest = hashlib.sha256(wanted.labels.read_bytes()).hexdigest()[:16]
    return {
        "init": wanted.init,
        "labels": digest,
        "examples": learned,
        "held": wanted.held,
        **asdict(wanted.recipe),
    }


def _check(out: Path, about: dict[str, Any]) -> None:
    """Find out early whether the model can be written.

    Raises:
        BadFile: it cannot, or the folder is somebody else's.
        InputError: it holds the state of another training.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(out)) from None
    if not os.access(out, os.W_OK | os.X_OK):
        raise BadFile("the folder cannot be written", path=str(out))
    _State.read(out, about)
    if not any((out / name).exists() for name in (_STATE, _NEW, "posology.json")) and any(
        out.iterdir()
    ):
        raise BadFile("the folder holds something else: name a new one", path=str(out))


def _loss(losses: Losses) -> Loss:
    return Loss(pruning=losses.pruning, ranking=losses.ranking)


def _mean(losses: Sequence[Loss]) -> Loss:
    return Loss(
        pruning=sum(one.pruning for one in losses) / len(losses),
        ranking=sum(one.ranking for one in losses) / len(losses),
    )
