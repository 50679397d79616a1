"""Calibration of the cross-encoder on dev documents: scores to probabilities, kept in the file's metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from posology.reading.crossencoder import (
    ABSENT,
    CALIBRATION,
    RELEVANT,
    Calibration,
    CrossEncoder,
    sentence_means,
)
from posology.reading.pairs import Pair, pairs
from training.reader.cases import Lesson

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: sets whose sentences people marked; the others are made by rules
_HUMAN = ("squad", "trials", "covid", "bioasq", "scifact", "pubmedqa", "written")


def calibrated(file: bytes, dev: Sequence[Lesson]) -> tuple[bytes, dict[str, Any]]:
    """Return the file with its calibration, and what was fitted.

    Each set counts the same, whatever its size.
    """
    model = CrossEncoder(file)
    asked = [one for one in dev if one.origin in _HUMAN]
    sentence, passage = _odds(model, asked)
    fitted = Calibration(sentence=_platt(*sentence), passage=_platt(*passage))
    report = {"sentence": fitted.sentence, "passage": fitted.passage}
    return with_calibration(file, fitted.dump()), report


def with_calibration(file: bytes, calibration: str) -> bytes:
    """Return a model's file with its calibration, as JSON, in the metadata."""
    import onnx

    made: Any = onnx.load_from_string(file)
    onnx.helper.set_model_props(made, {CALIBRATION: calibration})
    content: bytes = made.SerializeToString()
    return content


def _first(one: Lesson) -> Pair:
    return pairs(one.asked, one.text, one.sentences, heading=one.heading)[0]


def _odds(model: CrossEncoder, asked: Sequence[Lesson]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return log-odds, labels and weights of sentences, and of passages."""
    scores = model.scores([_first(one) for one in asked])
    sentences: list[tuple[float, bool, str]] = []
    passages: list[tuple[float, bool, str]] = []
    for one, seen in zip(asked, scores, strict=True):
        means = sentence_means(_first(one), seen.tokens[:, RELEVANT], len(one.sentences))
        odds = means - seen.text[ABSENT]
        sentences += [
            (float(odds[k]), k in one.gold, one.origin)
            for k in range(len(odds))
            if np.isfinite(odds[k]) and k not in one.open
        ]
        if np.isfinite(odds).any():
            passages.append((float(np.nanmax(odds)), bool(one.gold), one.origin))
    return _columns(sentences), _columns(passages)


def _columns(rows: Sequence[tuple[float, bool, str]]) -> tuple[Any, ...]:
    odds, right, origins = zip(*rows, strict=True)
    return np.array(odds), np.array(right, float), even(origins)


def even(origins: Sequence[str]) -> NDArray[np.float64]:
    """Return weights that give each set the same total."""
    names, places, counts = np.unique(list(origins), return_inverse=True, return_counts=True)
    weights: NDArray[np.float64] = 1 / counts[places] / len(names)
    return weights


def _platt(odds: Any, right: Any, weights: Any) -> tuple[float, float]:
    """Fit slope and offset of log-odds by likelihood (Platt 1999)."""
    from scipy.optimize import minimize  # type: ignore[import-untyped]

    def cost(line: Any) -> float:
        z = line[0] * odds + line[1]
        return float((weights * (np.logaddexp(0, z) - right * z)).sum())

    slope, offset = minimize(cost, np.array([1.0, 0.0]), method="Nelder-Mead").x
    return float(slope), float(offset)


def softmax(logits: Any, stances: Any, weights: Any) -> tuple[float, tuple[float, float, float]]:
    """Fit temperature and offsets of logits by likelihood."""
    from scipy.optimize import minimize

    def cost(given: Any) -> float:
        z = logits / np.exp(given[0]) + np.array([given[1], given[2], 0.0])
        z = z - z.max(axis=1, keepdims=True)
        likely = z[np.arange(len(z)), stances] - np.log(np.exp(z).sum(axis=1))
        return float(-(weights * likely).sum())

    log_t, a, b = minimize(cost, np.zeros(3), method="Nelder-Mead").x
    return float(np.exp(log_t)), (float(a), float(b), 0.0)
