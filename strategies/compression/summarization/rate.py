"""How far a passage will be compressed, before it is (TCRA-LLM, section 5.6).

A linear regression on three figures of the passage: its length, the mean information of its words, and the sum of it.
The paper calls the information of a word ``-log2 p(word)``, by the words' frequency in the corpus, its entropy
(section 5.4), and finds a correlation of 0.31, an R² of 9.6 % and an RMSE of 11.4 % for its 30 % model.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORD = re.compile(r"[^\W_]+(?:[-'’.,][^\W_]+)*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Features:
    """What a rate is predicted from."""

    #: words
    length: int
    #: bits, mean over the words; 0 where there are none
    mean: float
    #: bits, of all words together
    total: float

    @property
    def row(self) -> tuple[float, float, float]:
        """The three as numbers, in this order."""
        return float(self.length), self.mean, self.total


class WordEntropy:
    """What each word tells, by how often the words of a corpus come; case is no difference.

    A word that did not come counts as half of one that came once.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        """Count.

        Raises:
            ValueError: there is no word.
        """
        self._counts = Counter(word for text in texts for word in _words(text))
        self._total = self._counts.total()
        if not self._total:
            raise ValueError("there is no word to count")

    def of(self, word: str) -> float:
        """Bits of a word."""
        return -math.log2((self._counts[word.lower()] or 0.5) / self._total)

    def features(self, text: str) -> Features:
        """Length, mean and sum of a text."""
        bits = [self.of(word) for word in _words(text)]
        total = math.fsum(bits)
        return Features(length=len(bits), mean=total / len(bits) if bits else 0.0, total=total)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """How well rates are predicted; on other passages than it was fitted on, R² can be negative."""

    #: explained share of the variance
    r2: float
    #: in shares of the length
    rmse: float
    #: Pearson's, of predicted and true rates; ``None``: one of them does not vary
    correlation: float | None
    #: passages
    n: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RateModel:
    """A fitted regression: words left of a passage, as a share."""

    #: at :attr:`centre`
    intercept: float
    #: for each of the three figures, in units of :attr:`scale`
    weights: tuple[float, float, float]
    #: mean of each figure
    centre: tuple[float, float, float]
    #: standard deviation of each figure; 1 where it does not vary
    scale: tuple[float, float, float]

    def __call__(self, features: Features) -> float:
        """The predicted share of the words that is left, 0 to 1."""
        return float(np.clip(self._raw([features])[0], 0.0, 1.0))

    def test(self, features: Sequence[Features], rates: Sequence[float]) -> Fit:
        """How well it predicts the rates of passages.

        Raises:
            ValueError: there is none, or not one rate for each.
        """
        _paired(features, rates)
        said, true = self._raw(features), np.asarray(rates, np.float64)
        errors = true - said
        spread = float(((true - true.mean()) ** 2).sum())
        vary = float(said.std()) > 1e-12 and spread > 1e-12
        return Fit(
            r2=1 - float((errors**2).sum()) / spread if spread > 1e-12 else 0.0,
            rmse=float(np.sqrt((errors**2).mean())),
            correlation=float(np.corrcoef(said, true)[0, 1]) if vary else None,
            n=len(true),
        )

    def _raw(self, features: Sequence[Features]) -> NDArray[np.float64]:
        table = (_table(features) - self.centre) / self.scale
        return np.asarray(self.intercept + table @ np.array(self.weights), np.float64)


def fit(features: Sequence[Features], rates: Sequence[float]) -> RateModel:
    """The regression of least squared error; where figures do not vary, the smallest weights.

    Args:
        features: of passages.
        rates: of each, the share of its words that was left.

    Raises:
        ValueError: there is none, or not one rate for each.
    """
    _paired(features, rates)
    table = _table(features)
    centre, scale = table.mean(axis=0), table.std(axis=0)
    scale[scale < 1e-12] = 1.0
    true = np.asarray(rates, np.float64)
    weights, *_ = np.linalg.lstsq((table - centre) / scale, true - true.mean(), rcond=1e-10)
    return RateModel(
        intercept=float(true.mean()),
        weights=_three(weights),
        centre=_three(centre),
        scale=_three(scale),
    )


def _paired(features: Sequence[Features], rates: Sequence[float]) -> None:
    if not features or len(features) != len(rates):
        raise ValueError(f"{len(rates)} rates are not one for each of {len(features)} passages")


def _table(features: Sequence[Features]) -> NDArray[np.float64]:
    """Shape ``(len(features), 3)``."""
    return np.array([one.row for one in features], np.float64)


def _three(values: NDArray[np.float64]) -> tuple[float, float, float]:
    a, b, c = map(float, values)
    return a, b, c


def _words(text: str) -> list[str]:
    return [match[0].lower() for match in _WORD.finditer(text)]
