"""Training of a pruner from labels; an interrupted training resumes from its checkpoint."""

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

from orchestrator.training.forms import Losses, PrunerOutput
from orchestrator.training.pruner.examples import held_aside
from orchestrator.training.pruner.rows import read_examples
from posology.devices import find_device
from posology.errors import BadFile, InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from orchestrator.training.pruner.trainer import Lesson, Recipe, Trainer

#: folders of the checkpoint, in the model's folder
_STATE, _NEW = ".training", ".training.new"


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """A training: labels, initial model and settings."""

    #: file of labels
    labels: Path
    #: initial re-ranker
    init: str
    #: folder of the model
    out: Path
    recipe: Recipe
    #: held-out share of the questions
    held: float
    #: ``cpu`` or ``cuda``; ``None``: the accelerator, if there is one
    device: str | None
    #: steps between two checkpoints
    save_every: int


def train(wanted: Wanted, tick: Callable[[int, int, Losses | None], None]) -> PrunerOutput:
    """Train to the end. Blocking.

    Args:
        wanted: the training.
        tick: called after each step with the finished steps, all steps and the last losses.

    Raises:
        PosologyError: labels or model cannot be read, or the folder holds other files.
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
            f"{wanted.init} has no ranking head, so it has no scores to keep. Use a re-ranker with --init, or set "
            "--lambda 0."
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
            state.before = trainer.look(aside, state.held_teacher)
    else:
        state.restore(trainer, wanted.out)
    resumed = len(state.losses)
    _steps(trainer, lessons, state, wanted, tick)
    after = trainer.look(aside, state.held_teacher) if aside else None
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
    tick: Callable[[int, int, Losses | None], None],
) -> None:
    epochs = wanted.recipe.epochs
    batches = [one for epoch in range(epochs) for one in trainer.order(len(lessons), epoch)]
    tick(len(state.losses), len(batches), None)
    for number in range(len(state.losses), len(batches)):
        places = batches[number]
        losses = trainer.step([lessons[i] for i in places], state.teacher[places], number=number)
        state.losses.append(losses)
        tick(number + 1, len(batches), losses)
        if (number + 1) % wanted.save_every == 0 and number + 1 < len(batches):
            state.keep(trainer, wanted.out)


@dataclass(kw_only=True, slots=True, eq=False)
class _State:
    """Checkpoint: everything that an interrupted training needs to resume."""

    #: settings and digest of the labels
    about: dict[str, Any]
    #: scores of the initial model, one per lesson
    teacher: NDArray[np.float32]
    held_teacher: NDArray[np.float32]
    #: of each step so far
    losses: list[Losses]
    #: losses of the held-out pairs before the first step; ``None``: there are none
    before: Losses | None

    @classmethod
    def read(cls, out: Path, about: dict[str, Any]) -> _State | None:
        """Read the checkpoint of a folder; ``None``: there is none.

        Raises:
            BadFile: it is damaged.
            InputError: it is of another training.
        """
        if not (out / _STATE).exists() and (out / _NEW / "state.json").exists():
            # the process was killed after the last write
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
                losses=[Losses(pruning=a, ranking=b) for a, b in said["losses"]],
                before=None if before is None else Losses(**before),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise BadFile(
                f"the checkpoint is damaged ({error}). Remove {out / _STATE} to start again.",
                path=str(path),
            ) from None
        if state.about != about:
            raise InputError(
                f"{out} holds a checkpoint of other labels or other settings. Repeat those settings, or remove "
                f"{out / _STATE}."
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
            "before": None if self.before is None else asdict(self.before),
        }
        # written last: it marks the checkpoint as complete
        (new / "state.json").write_text(json.dumps(said), encoding="utf-8")
        shutil.rmtree(old, ignore_errors=True)
        new.rename(old)

    def restore(self, trainer: Trainer, out: Path) -> None:
        """Restore model and optimizer.

        Raises:
            BadFile: the checkpoint is damaged.
        """
        import torch

        try:
            for part, name in (
                (trainer.checkpoint.model, "model.pt"),
                (trainer.optimizer, "optimizer.pt"),
            ):
                part.load_state_dict(
                    torch.load(out / _STATE / name, map_location="cpu", weights_only=True)
                )
        # the reader raises any class for damaged files
        except Exception as error:
            raise BadFile(
                f"the checkpoint is damaged ({error}). Remove {out / _STATE} to start again.",
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
    """Check that the model can be written.

    Raises:
        BadFile: the folder cannot be written or holds other files.
        InputError: the folder holds the checkpoint of another training.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadFile(error.strerror or str(error), path=str(out)) from None
    if not os.access(out, os.W_OK | os.X_OK):
        raise BadFile("the folder is not writable", path=str(out))
    _State.read(out, about)
    if not any((out / name).exists() for name in (_STATE, _NEW, "posology.json")) and any(
        out.iterdir()
    ):
        raise BadFile("the folder holds other files. Choose a new folder.", path=str(out))


def _mean(losses: Sequence[Losses]) -> Losses:
    return Losses(
        pruning=sum(one.pruning for one in losses) / len(losses),
        ranking=sum(one.ranking for one in losses) / len(losses),
    )
