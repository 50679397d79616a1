"""The judge as it is shipped: layers in bytes, calibrated on the documents set aside for that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from posology.index.embedders.onnx.export import traced
from posology.index.embedders.onnx.forward import WordVectors
from posology.reading.judge import Calibration, Judge
from training.judge.cases import UNSUPPORTED, Lesson
from training.judge.training import JudgeModel, read
from training.reader.calibration import even, softmax, with_calibration
from training.reader.model import sample_batch
from training.reader.training import observable, quantised

if TYPE_CHECKING:
    from numpy.typing import NDArray


def packaged(
    model: JudgeModel,
    learned: Sequence[Lesson],
    dev: Sequence[Lesson],
    words: WordVectors | NDArray[np.float32],
    bits: int,
) -> bytes:
    """Return the content of the file.

    Args:
        model: trained.
        learned: lessons it was trained with.
        dev: lessons that it is calibrated on; each set counts the same, whatever its size.
        words: vectors of words.
        bits: of a weight; 8 saturates old CPUs.
    """
    exact = traced(
        model.eval(), sample_batch(int(model.encoder.config.hidden_size)), {"stances": {0: "rows"}}
    )
    observed = [read(learned[i]) for i in observable(len(learned))]
    file = quantised(exact, observed, words, bits)
    return with_calibration(file, fitted(Judge(file), dev).dump())


def fitted(judge: Judge, dev: Sequence[Lesson]) -> Calibration:
    """Return the calibration of a judge by lessons set aside for it."""
    known = [one for one in dev if one.stance < UNSUPPORTED]
    logits = judge.logits([read(one) for one in known])
    stances = np.array([one.stance for one in known])
    temperature, offsets = softmax(logits, stances, even([one.origin for one in known]))
    return Calibration(temperature=temperature, offsets=offsets)
