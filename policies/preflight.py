"""Preflight: whether the key document is likely to be buried in the middle of the retrieved passages.

Zhang et al. (BriefContext, sections 2.5 and 5.2) let two rankings of the same passages vote: where their
first places agree, the key document is assumed to be among them, and the passages can be read in one call.
:class:`Published` is their rule. :class:`Calibrated` learned from questions whose key document is known; it
uses more features of the rankings, and returns a probability. Figures: ``policies/models/README.md``.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Protocol

from policies.preflight_features import ORDERS, OTHER_ORDER, PLACES, PREFIX, SPOTLIGHT, observe
from posology.errors import BadArtefact, InvalidRecord

__all__ = [
    "ORDERS",
    "OTHER_ORDER",
    "PLACES",
    "PREDICTORS",
    "PREFIX",
    "SPOTLIGHT",
    "Calibrated",
    "Model",
    "Prediction",
    "Predictor",
    "Published",
    "Term",
    "observe",
    "packaged",
    "read",
    "write",
]

_FORMAT = 1
_DIGEST = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """Whether the key document is expected beyond the first places, which a model reads well."""

    issue: bool
    #: probability of that, 0 to 1; ``None``: the predictor returns none
    probability: float | None
    #: sentence with the numbers that it is based on
    reason: str


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
        return _digest({"rule": self.name, "n": self.n, "threshold": float(self.threshold)})

    def __call__(self, features: Mapping[str, Any]) -> Prediction:
        """See :class:`Predictor`."""
        measured = _number(features, f"iou_{self.n}")
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
class Term:
    """Contribution of one feature: ``weight · (value − mean) / scale``."""

    feature: str
    weight: float
    mean: float
    scale: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """A standardised logistic regression for one order of showing."""

    intercept: float
    #: least probability at which the key document is expected to be buried
    threshold: float
    terms: tuple[Term, ...]

    def probability(self, features: Mapping[str, Any]) -> float:
        """Return the probability that the key document is buried, 0 to 1."""
        score = self.intercept + math.fsum(
            term.weight * (_number(features, term.feature) - term.mean) / term.scale
            for term in self.terms
        )
        # exp of a large positive number overflows
        odds = math.exp(-abs(score))
        return 1 / (1 + odds) if score >= 0 else odds / (1 + odds)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Calibrated:
    """A logistic regression, learned from questions whose key document is known.

    It has a model for each order of showing passages, since each has other documents beyond the first places. For
    other orders it applies the published rule.
    """

    #: order of showing, one of :data:`ORDERS` → model
    models: Mapping[str, Model]
    #: description of its training data
    trained: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """``calibrated``."""
        return "calibrated"

    @property
    def version(self) -> str:
        """Digest of its models."""
        return _digest({"rule": self.name, "models": _plain(self.models)})

    def __call__(self, features: Mapping[str, Any]) -> Prediction:
        """See :class:`Predictor`."""
        order = features.get(PREFIX + "order")
        if order not in (*ORDERS, OTHER_ORDER):
            raise InvalidRecord(
                f"{PREFIX}order must be the name of an order (got {order!r}): decide anew",
                field=PREFIX + "order",
            )
        model = self.models.get(order)
        if model is None:
            plain = Published()(features)
            return Prediction(
                issue=plain.issue,
                probability=None,
                reason=f"passages in {order} order were not learned from: {plain.reason}",
            )
        passages = _number(features, "passages")
        if passages <= SPOTLIGHT:
            return Prediction(
                issue=False,
                probability=0.0,
                reason=f"of {passages:g} passages none is beyond place {SPOTLIGHT}",
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


def write(predictor: Calibrated) -> str:
    """Write a calibrated predictor as text: one readable JSON object."""
    content = {
        "posology": "preflight",
        "format": _FORMAT,
        "digest": predictor.version,
        "trained": dict(predictor.trained),
        "models": _plain(predictor.models),
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def read(text: str, *, path: str) -> Calibrated:
    """Read a calibrated predictor.

    Args:
        text: text by :func:`write`.
        path: path of the file, for messages.

    Raises:
        BadArtefact: not a predictor, of another format, or changed since it was written.
    """
    try:
        content = json.loads(text)
        if content["posology"] != "preflight" or content["format"] != _FORMAT:
            raise BadArtefact(
                f"not a preflight model of format {_FORMAT}: train it again", path=path
            )
        predictor = Calibrated(
            models=MappingProxyType({name: _model(of) for name, of in content["models"].items()}),
            trained=MappingProxyType(content["trained"]),
        )
        digest = content["digest"]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadArtefact(f"damaged: {error!r}", path=path) from None
    if digest != predictor.version:
        raise BadArtefact(
            "the digest does not match the content: the file was changed or truncated", path=path
        )
    return predictor


@cache
def packaged() -> Calibrated:
    """Return the calibrated predictor that comes with Posology.

    Raises:
        BadArtefact: the installation is damaged.
    """
    file = files("policies") / "models" / "preflight.json"
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise BadArtefact(f"cannot be read: {error.strerror}", path=str(file)) from error
    return read(text, path=str(file))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Suited:
    """The calibrated predictor for vectors of the embedder that it learned with, else the published rule.

    The router adds the embedder as feature ``embedder``; if it is unknown, the packaged embedder is assumed.
    """

    calibrated: Calibrated
    published: Published = field(default_factory=Published)

    @property
    def name(self) -> str:
        """``auto``."""
        return "auto"

    @property
    def version(self) -> str:
        """Digest of both."""
        return _digest({"rule": self.name, "of": [self.calibrated.version, self.published.version]})

    def __call__(self, features: Mapping[str, Any]) -> Prediction:
        """See :class:`Predictor`."""
        trained = self.calibrated.trained.get("embedder")
        suits = features.get("embedder") in (None, trained)
        return self.calibrated(features) if suits else self.published(features)


@cache
def _suited() -> Suited:
    return Suited(calibrated=packaged())


#: name → function that returns the predictor
PREDICTORS: Mapping[str, Callable[[], Predictor]] = MappingProxyType(
    {"auto": _suited, "calibrated": packaged, "published": Published}
)


def _plain(models: Mapping[str, Model]) -> dict[str, Any]:
    return {
        order: {
            "intercept": model.intercept,
            "threshold": model.threshold,
            "terms": {term.feature: [term.weight, term.mean, term.scale] for term in model.terms},
        }
        for order, model in models.items()
    }


def _model(content: Mapping[str, Any]) -> Model:
    terms = tuple(
        Term(feature=feature, weight=float(weight), mean=float(mean), scale=float(scale))
        for feature, (weight, mean, scale) in content["terms"].items()
    )
    model = Model(
        intercept=float(content["intercept"]), threshold=float(content["threshold"]), terms=terms
    )
    if not all(term.scale > 0 for term in terms):
        raise ValueError("a scale must be > 0")
    return model


def _number(features: Mapping[str, Any], name: str) -> float:
    value = features.get(PREFIX + name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidRecord(
            f"{PREFIX}{name} must be a number (got {value!r}): the record lacks a feature of preflight, decide "
            "anew",
            field=PREFIX + name,
        )
    return value


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST // 2).hexdigest()
