"""Preflight: whether the key document is likely to be buried in the middle of the retrieved passages.

Zhang et al. (BriefContext, sections 2.5 and 5.2) let two rankings of the same passages vote: where their
first places agree, the key document is assumed to be among them, and the passages can be read in one call.
:class:`Published` is their rule. :class:`Calibrated` uses more features of the rankings and returns a probability; its
models are learned for one embedder and one order of showing each (:mod:`policies.calibration`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from policies.calibration import Calibration, Model, digest, number, packaged
from policies.preflight_features import ORDERS, OTHER_ORDER, PLACES, PREFIX, SPOTLIGHT, observe
from posology.errors import InvalidRecord

__all__ = [
    "ORDERS",
    "OTHER_ORDER",
    "PLACES",
    "PREDICTORS",
    "PREFIX",
    "SPOTLIGHT",
    "Calibrated",
    "Prediction",
    "Predictor",
    "Published",
    "observe",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """Whether the key document is expected beyond the first places, which a model reads well."""

    issue: bool
    #: probability of that, 0 to 1; ``None``: the predictor returns none
    probability: float | None
    #: sentence with the numbers that it is based on
    reason: str
    #: whether an issue without a probability suffices for BriefContext at once
    certain: bool = True


class Predictor(Protocol):
    """Predicts from features alone, so that the prediction can be replayed from a record."""

    @property
    def name(self) -> str:
        """Name in :data:`PREDICTORS`."""
        ...

    @property
    def version(self) -> str:
        """Digest of its settings and learned weights: equal versions predict alike."""
        ...

    def __call__(self, features: Mapping[str, Any]) -> Prediction:
        """Predict.

        Args:
            features: features by :func:`observe`, and any others.

        Raises:
            InvalidRecord: a feature that it uses is missing or invalid.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """The paper's rule: the key document is buried if the first ``n`` of two rankings hardly overlap.

    Source: Zhang et al. (BriefContext), equation 1; ``n`` and threshold from sections 2.5 and 5.3.
    """

    #: one of :data:`PLACES`
    n: int = 3
    #: largest IoU at which the key document is expected to be buried
    threshold: float = 0.2

    def __post_init__(self) -> None:
        if self.n not in PLACES:
            raise ValueError(f"n must be one of {PLACES} (got {self.n})")
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold must be from 0 to 1 (got {self.threshold})")

    @property
    def name(self) -> str:
        """``published``."""
        return "published"

    @property
    def version(self) -> str:
        """Digest of its settings."""
        return digest({"rule": self.name, "n": self.n, "threshold": float(self.threshold)})

    def __call__(self, features: Mapping[str, Any]) -> Prediction:
        """See :class:`Predictor`."""
        measured = number(features, f"iou_{self.n}")
        issue = measured <= self.threshold
        compared = f"of the first {self.n} by meaning and by words is {measured:.2f}"
        if issue:
            reason = (
                f"the IoU {compared}, no more than {self.threshold:g}: "
                "the key passage may be lost in the middle"
            )
        else:
            reason = (
                f"the IoU {compared}, above {self.threshold:g}: "
                "the key passage is taken to be among the first"
            )
        return Prediction(issue=issue, probability=None, reason=reason)


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibrated:
    """A model of the embedder and the order of showing; without one, the published rule as a hint.

    The hint never leads to BriefContext at once: its reasons are right in one case of eight (fused order, 16 passages).
    """

    #: calibrations, the first that has a model for a question decides
    calibrations: tuple[Calibration, ...]
    #: whether a calibration is used for vectors of its own embedder alone; an unknown embedder counts as its own
    own_embedder: bool = True
    published: Published = Published()

    @property
    def name(self) -> str:
        """``auto``; ``calibrated`` if the embedder does not matter."""
        return "auto" if self.own_embedder else "calibrated"

    @property
    def version(self) -> str:
        """Digest of its models and its rule."""
        of = [*(one.version for one in self.calibrations), self.published.version]
        return digest({"rule": self.name, "of": of})

    def __call__(self, features: Mapping[str, Any]) -> Prediction:
        """See :class:`Predictor`.

        The router adds the name of the embedder as feature ``embedder``.
        """
        order = features.get(PREFIX + "order")
        if not isinstance(order, str) or not order:
            raise InvalidRecord(
                f"{PREFIX}order must be the name of an order (got {order!r}): decide anew",
                field=PREFIX + "order",
            )
        passages = number(features, "passages")
        if passages <= SPOTLIGHT:
            return Prediction(
                issue=False,
                probability=0.0,
                reason=f"of {passages:g} passages none is beyond place {SPOTLIGHT}",
            )
        model = self.model(order, features.get("embedder"))
        if model is None:
            plain = self.published(features)
            return Prediction(
                issue=plain.issue,
                probability=None,
                reason=f"no calibration for passages in {order} order: {plain.reason}",
                certain=False,
            )
        probability = model.probability(features)
        issue = probability >= model.threshold
        compared = "no less than" if issue else "below"
        return Prediction(
            issue=issue,
            probability=probability,
            reason=(
                f"the key passage is beyond place {SPOTLIGHT} of the {order} order with probability "
                f"{probability:.3f}, {compared} {model.threshold:.3f}"
            ),
        )

    def model(self, order: str, embedder: str | None) -> Model | None:
        """Return the model that decides; ``None``: there is none.

        Args:
            order: name of the order of showing.
            embedder: name of the embedder of the vectors; ``None``: unknown.
        """
        for one in self.calibrations:
            fits = not self.own_embedder or None in (embedder, one.embedder)
            if order in one.models and (fits or embedder == one.embedder):
                return one.models[order]
        return None


def _auto(own: Calibration | None) -> Calibrated:
    return Calibrated(calibrations=_known(own))


def _calibrated(own: Calibration | None) -> Calibrated:
    return Calibrated(calibrations=_known(own), own_embedder=False)


def _published(own: Calibration | None) -> Published:  # noqa: ARG001 - the rule has nothing to calibrate
    return Published()


def _known(own: Calibration | None) -> tuple[Calibration, ...]:
    return (packaged(),) if own is None else (own, packaged())


#: name → function that returns the predictor, given the user's own calibration or ``None``
PREDICTORS: Mapping[str, Callable[[Calibration | None], Predictor]] = MappingProxyType(
    {"auto": _auto, "calibrated": _calibrated, "published": _published}
)
