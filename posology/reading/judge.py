"""A judge of support: whether a text supports a claim, contradicts it, or is silent on it.

One model for one task, every layer trained on claims that people wrote (``python -m training.judge``).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from posology.reading.crossencoder import CALIBRATION, MODELS
from posology.reading.pair_model import PairModel, tempered
from posology.reading.pairs import Pair, claimed
from posology.types import Stance

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILE = "judge.onnx"


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
        """Return the packaged judge; its file is read once a process."""
        with _LOADING:
            return _packaged()

    @property
    def name(self) -> str:
        """Return its name with the digest of its file."""
        return self._model.name

    def judge(self, given: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Judge pairs of a claim and a text, see :class:`~posology.seams.SupportJudge`. Blocking."""
        return self.probabilities([claimed(claim, text) for claim, text in given])

    def probabilities(self, inputs: Sequence[Pair]) -> NDArray[np.float32]:
        """Return the calibrated probabilities of the stances, shape ``(len(inputs), 3)``."""
        kept = self._calibration
        return tempered(self.logits(inputs), kept.temperature, kept.offsets)

    def logits(self, inputs: Sequence[Pair]) -> NDArray[np.float32]:
        """Return the logits of the stances, shape ``(len(inputs), 3)``."""
        found = np.zeros((len(inputs), len(Stance)), np.float32)
        for row, (logits,) in zip(found, self._model.run(inputs, ("stances",)), strict=True):
            row[:] = logits
        return found


#: it is loaded once, also by threads
_LOADING = threading.Lock()


@cache
def _packaged() -> Judge:
    return Judge((MODELS / FILE).read_bytes())
