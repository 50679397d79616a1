"""The packaged judge of support: whether a text supports a claim, contradicts it, or is silent on it.

One model for one task, every layer trained on claims that people wrote. How it was trained and what it reaches:
``posology/reading/models/JUDGE_CARD.md``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from posology.reading.crossencoder import MODELS
from posology.reading.pair_model import PairModel
from posology.reading.pairs import Pair, pairs
from posology.types import Sentence, Stance

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILE = "judge.onnx"
#: key of the calibration in the model's metadata
CALIBRATION = "posology.calibration"


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """Temperature and offsets that turn logits into probabilities, fitted on documents set aside for it."""

    temperature: float = 1.0
    #: of the logits, in the order of :class:`~posology.types.Stance`
    offsets: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def dump(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Calibration:
        """Read what :meth:`dump` wrote."""
        given = json.loads(text)
        return cls(temperature=float(given["temperature"]), offsets=tuple(given["offsets"]))

    def probabilities(self, logits: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return probabilities of logits, both of shape ``(n, 3)``."""
        scaled = logits / self.temperature + np.array(self.offsets, np.float32)
        odds = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        found: NDArray[np.float32] = (odds / odds.sum(axis=1, keepdims=True)).astype(np.float32)
        return found


class Judge:
    """:class:`~posology.seams.SupportJudge` by an ONNX model with the output ``stances``. Thread-safe.

    Args:
        model: content of the file.
        threads: of a pass; ``None``: one a core.
    """

    def __init__(self, model: bytes, *, threads: int | None = None) -> None:
        self._model = PairModel(model, "judge", threads=threads)
        kept = self._model.metadata.get(CALIBRATION)
        self._calibration = Calibration.parse(kept) if kept else Calibration()

    @classmethod
    def packaged(cls) -> Judge:
        """Return the packaged model; its file is read once a process."""
        return _packaged()

    @property
    def name(self) -> str:
        """Return its name with the digest of its file."""
        return self._model.name

    def judge(self, given: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Judge pairs of a claim and a text, see :class:`~posology.seams.SupportJudge`. Blocking."""
        return self.probabilities([judged(claim, text) for claim, text in given])

    def probabilities(self, inputs: Sequence[Pair]) -> NDArray[np.float32]:
        """Return the calibrated probabilities of the stances, shape ``(len(inputs), 3)``."""
        return self._calibration.probabilities(self.logits(inputs))

    def logits(self, inputs: Sequence[Pair]) -> NDArray[np.float32]:
        """Return the logits of the stances, shape ``(len(inputs), 3)``."""
        found = np.zeros((len(inputs), len(Stance)), np.float32)
        for row, (logits,) in zip(found, self._model.run(inputs, ("stances",)), strict=True):
            row[:] = logits
        return found


def judged(claim: str, text: str) -> Pair:
    """Return a claim and a text as model input; of a text that is too long, the beginning."""
    return pairs(claim, text, [Sentence(start=0, end=len(text))])[0]


@cache
def _packaged() -> Judge:
    return Judge((MODELS / FILE).read_bytes())
