"""A larger judge, all-mpnet-base-v2 with every layer trained but the lowest, from which the packaged one learns.

It reads ``<s> claim </s></s> text </s>``, has the packaged judge's head, and learns plain inference (SNLI) once, then what
people wrote. No file of it is shipped.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from posology.errors import InputError
from posology.reading.pairs import LIMIT, MOST_ASKED
from posology.types import Stance
from training.judge.cases import GENERAL, Lesson
from training.judge.training import JudgeModel, Recipe
from training.kept import Kept, key_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: layers that keep the published weights, from the bottom
FROZEN = 4
#: lessons that are judged at a time
_ROWS = 32
#: widths of inputs are multiples of it: torch prepares each product of another shape anew, and keeps it
_WIDTH = 16
#: what the teacher said of the packaged judge's lessons
SAID = Path(__file__).with_name("teacher.npz")
RECIPE = Recipe(passes=2, rate=5e-5, head_rate=5e-4)


class Teacher:
    """The model and its tokenizer.

    Args:
        folder: of all-mpnet-base-v2, as sentence-transformers keeps it.
        seed: of the head.
    """

    def __init__(self, folder: Path, seed: int = RECIPE.seed) -> None:
        from transformers import MPNetModel

        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        encoder: Any = MPNetModel.from_pretrained(
            str(folder), add_pooling_layer=False, dtype=torch.float32
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.model = _Model(encoder)
        for part in (encoder.embeddings, *encoder.encoder.layer[:FROZEN]):
            for weights in part.parameters():
                weights.requires_grad = False

    @staticmethod
    def taught(learned: Sequence[Lesson]) -> list[Lesson]:
        """Return the lessons that it learns itself: SNLI of the general sets, and all that people wrote."""
        return [one for one in learned if one.origin == "snli" or one.origin not in GENERAL]

    def inputs(self, lessons: Sequence[Lesson]) -> tuple[Tensor, Tensor, Tensor]:
        """Return token ids, mask and segments, shape ``(rows, width)`` each."""
        pad, start, end = (self._tokenizer.token_to_id(name) for name in ("<pad>", "<s>", "</s>"))
        rows: list[list[Any]] = []
        firsts: list[int] = []
        for one in lessons:
            claim, text = (
                self._tokenizer.encode(part, add_special_tokens=False).ids
                for part in (one.claim, one.text)
            )
            before = [start, *claim[:MOST_ASKED], end, end]
            rows.append([*before, *text[: LIMIT - len(before) - 1], end])
            firsts.append(len(before))
        width = -(-max(map(len, rows)) // _WIDTH) * _WIDTH
        ids, segments = np.full((len(rows), width), pad, np.int64), np.zeros((len(rows), width))
        mask = np.zeros((len(rows), width), np.int64)
        for k, (row, first) in enumerate(zip(rows, firsts, strict=True)):
            ids[k, : len(row)], mask[k, : len(row)] = row, 1
            segments[k, first : len(row)] = 1
        return torch.from_numpy(ids), torch.from_numpy(mask), torch.from_numpy(segments).long()

    @torch.inference_mode()
    def judge(self, lessons: Sequence[Lesson], store: Kept) -> NDArray[np.float32]:
        """Return the probabilities of the stances, shape ``(lessons, 3)``; what is stored is not made again. Blocking."""
        self.model.eval()
        about = hashlib.sha256()
        for weights in self.model.stances.parameters():
            about.update(weights.numpy().tobytes())
        keys = [key_of(about.hexdigest(), one.claim, one.text) for one in lessons]
        missing = sorted(
            (k for k, key in enumerate(keys) if store.get(key) is None),
            key=lambda k: len(lessons[k].claim) + len(lessons[k].text),
        )
        for at in range(0, len(missing), _ROWS):
            some = missing[at : at + _ROWS]
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logits = self.model(*self.inputs([lessons[k] for k in some]))
            said = torch.softmax(logits.float(), dim=1).numpy()
            store.put(*((keys[k], row.tobytes()) for k, row in zip(some, said, strict=True)))
        content = b"".join(store.get(key) or b"" for key in keys)
        return np.frombuffer(content, np.float32).reshape(len(lessons), len(Stance))


class _Model(JudgeModel):
    """The judge's head on layers that read token ids and know no segments."""

    def read(self, embeddings: Tensor, mask: Tensor, segments: Tensor) -> Tensor:  # noqa: ARG002
        """Return the vectors of tokens, by their ids, shape ``(rows, width, dim)``."""
        found: Tensor = self.encoder(input_ids=embeddings, attention_mask=mask).last_hidden_state
        return found


def packed(lessons: Sequence[Lesson], said: NDArray[np.float32]) -> bytes:
    """Return what a teacher said of lessons, a byte a probability."""
    content = io.BytesIO()
    np.savez_compressed(content, about=_about(lessons), said=np.rint(said * 255).astype(np.uint8))
    return content.getvalue()


def with_said(lessons: Sequence[Lesson], content: bytes) -> list[Lesson]:
    """Return lessons with what a teacher said of them.

    Raises:
        InputError: it is of other lessons.
    """
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        about, said = str(file["about"]), file["said"].astype(np.float32)
    if about != _about(lessons):
        raise InputError("What the teacher said is of other lessons. Train it anew: --teacher DIR.")
    said /= said.sum(axis=1, keepdims=True)
    return [
        replace(one, taught=(a, b, c))
        for one, (a, b, c) in zip(lessons, said.tolist(), strict=True)
    ]


def _about(lessons: Sequence[Lesson]) -> str:
    about = hashlib.sha256()
    for one in lessons:
        about.update(repr((one.claim, one.text)).encode())
    return about.hexdigest()
