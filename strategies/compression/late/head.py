"""Head of the pruner: the mean of a few small networks over the sentences of a passage.

Each network sees a sentence, its neighbours, the maximum and mean of the passage, and the distance to the best
sentence of the retrieval. One pass gives the sentences' scores and the passage's.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from strategies.compression.late.codec import MODELS
from strategies.compression.late.features import NAMES, Weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILE = "late-pruner.npz"
FORMAT = 1
#: Features that are also compared with the best of the retrieval.
COMPARED = ("maxsim_idf", "maxsim_before", "cosine", "answers", "reverse", "coverage")
_PLACES = [NAMES.index(name) for name in COMPARED]
#: Limit of standardised features.
_CUT = 5.0
_LAYERS = ("w1", "b1", "w2", "b2", "w3", "b3", "w4", "b4", "skip", "p1", "c1", "p2", "c2")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Head:
    """Trained scorer of sentences and passages."""

    #: digest of its file
    version: str
    #: name of the codec that it was trained on
    codec: str
    #: minimum probability of a kept sentence
    threshold: float
    #: measured share of the characters that the threshold leaves of five retrieved passages
    left: float
    #: slope and offset from scores to logits
    calibration: tuple[float, float]
    #: weights of the features
    weights: Weights
    #: mean and deviation of the features, shape ``(features + 6,)``, float32
    mean: NDArray[np.float32]
    deviation: NDArray[np.float32]
    #: stacked weights of the networks by name, each of shape ``(networks, …)``, float32
    layers: dict[str, NDArray[np.float32]]

    @classmethod
    def packaged(cls) -> Head:
        """Return the packaged head; its file is read once."""
        return _packaged()

    @classmethod
    def read(cls, content: bytes) -> Head:
        """Read a head from the bytes of its file.

        Raises:
            ValueError: the file has another format or other features.
        """
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            if int(file["format"]) != FORMAT or tuple(file["features"].tolist()) != NAMES:
                raise ValueError(
                    f"pruner file must have format {FORMAT} and features of this version (got other features)"
                )
            slope, offset = file["calibration"].tolist()
            return cls(
                version=hashlib.sha256(content).hexdigest()[:12],
                codec=str(file["codec"]),
                threshold=float(file["threshold"]),
                left=float(file["left"]),
                calibration=(slope, offset),
                weights=Weights(
                    idf=file["idf"].astype(np.float32),
                    digits=file["digits"],
                    **{n: file[n] for n in ("token", "question", "echo", "bias", "out")},
                ),
                mean=file["mean"],
                deviation=file["deviation"],
                layers={name: file[name] for name in _LAYERS},
            )

    def __call__(
        self, features: NDArray[np.float32], sizes: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Score sentences and passages.

        Args:
            features: features of all sentences, see :func:`strategies.compression.late.features.observe`.
            sizes: sentences of each passage, at least 1.

        Returns:
            The probability that a sentence bears the answer, shape ``(sentences,)``; and a score of each passage,
            shape ``(passages,)``, higher is better. Both float32.
        """
        first = np.cumsum(sizes) - sizes
        passage = np.repeat(np.arange(len(sizes)), sizes)
        compared = features[:, _PLACES]
        x = np.column_stack([features, compared - compared.max(axis=0)])
        x = np.clip((x - self.mean) / self.deviation, -_CUT, _CUT)
        w = self.layers
        hidden = _relu(_relu(x @ w["w1"] + w["b1"]) @ w["w2"] + w["b2"])
        best = np.maximum.reduceat(hidden, first, axis=1)
        mean = np.add.reduceat(hidden, first, axis=1) / sizes[:, None].astype(np.float32)
        before, after = np.roll(hidden, 1, axis=1), np.roll(hidden, -1, axis=1)
        before[:, first] = 0
        after[:, first + sizes - 1] = 0
        joined = np.concatenate(
            [hidden, before + after, best[:, passage], mean[:, passage]], axis=2
        )
        logits = _relu(joined @ w["w3"] + w["b3"]) @ w["w4"] + w["b4"] + x @ w["skip"]
        pooled = np.concatenate([best, mean], axis=2)
        of_passages = _relu(pooled @ w["p1"] + w["c1"]) @ w["p2"] + w["c2"]
        slope, offset = self.calibration
        score = logits.mean(axis=0)[:, 0]
        probabilities = 1 / (1 + np.exp(-(slope * score + offset)))
        return probabilities.astype(np.float32), of_passages.mean(axis=0)[:, 0].astype(np.float32)


def _relu(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.maximum(values, 0, out=values)


@cache
def _packaged() -> Head:
    return Head.read((MODELS / FILE).read_bytes())
