"""Preflight: whether the key document is likely to be lost in the middle of what was retrieved.

Zhang et al. (BriefContext, sections 2.5 and 5.2) let two rankings of the same passages vote: where their
first places agree, the key document is taken to be among them, and the passages can be read in one call.
:class:`Published` is their rule. :class:`Calibrated` learned from questions whose key document is known; it
weighs more of what the rankings say, and gives a probability. Figures: ``policies/models/README.md``.
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
    """Whether the key document is expected beyond the places that a model reads well."""

    issue: bool
    #: of the issue, 0 to 1; ``None``: the predictor gives none
    probability: float | None
    #: a sentence with the numbers that it rests on
    reason: str


class Predictor(Protocol):
    """Predicts from features alone, so that a record of them predicts the same way again."""

    @property
    def name(self) -> str:
        """What it is chosen by."""
        ...

    @property
    def version(self) -> str:
        """Digest of its settings and of what it learned: equal versions predict alike."""
        ...

    def __call__(self, features: Mapping[str, Any]) -> Prediction:
        """Predict.

        Args:
            features: those of :func:`observe`, and any others.

        Raises:
            InvalidRecord: a feature that it looks at is missing, or is none.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Published:
    """The paper's rule: the issue is expected where the first ``n`` of two rankings hardly meet.

    Source: Zhang et al. (BriefContext), equation 1; ``n`` and threshold from sections 2.5 and 5.3.
    """

    #: one of :data:`PLACES`
    n: int = 3
    #: the largest IoU at which the issue is expected
    threshold: float = 0.2

    def __post_init__(self) -> None:
        if self.n not in PLACES:
            raise ValueError(f"the first {self.n} places are not compared: choose of {PLACES}")
        if not 0 <= self.threshold <= 1:
            raise ValueError(f"an IoU is between 0 and 1, not {self.threshold}")

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
    """What one feature contributes: ``weight · (value − mean) / scale``."""

    feature: str
    weight: float
    mean: float
    scale: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    """A standardised logistic regression for one order of showing."""

    intercept: float
    #: the least probability at which the issue is expected
    threshold: float
    terms: tuple[Term, ...]

    def probability(self, features: Mapping[str, Any]) -> float:
        """Of the issue, 0 to 1."""
        score = self.intercept + math.fsum(
            term.weight * (_number(features, term.feature) - term.mean) / term.scale
            for term in self.terms
        )
        # of a negative number: exp of a large one overflows
        odds = math.exp(-abs(score))
        return 1 / (1 + odds) if score >= 0 else odds / (1 + odds)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Calibrated:
    """A logistic regression, learned from questions whose key document is known.

    It has a model for each order in which passages are shown, since in each other documents are beyond the
    first places. Passages in another order get the published rule.
    """

    #: by the order of showing, one of :data:`ORDERS`
    models: Mapping[str, Model]
    #: what it was trained on, for people
    trained: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """``calibrated``."""
        return "calibrated"

    @property
    def version(self) -> str:
        """Digest of its models."""
        return _digest({"rule": self.name, "models": _said(self.models)})

    def __call__(self, features: Mapping[str, Any]) -> Prediction:
        """See :class:`Predictor`."""
        order = features.get(PREFIX + "order")
        if order not in (*ORDERS, OTHER_ORDER):
            raise InvalidRecord(
                f"{PREFIX}order is {order!r}, and not the name of an order: decide anew",
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
    """A calibrated predictor as text, one JSON object that people can read."""
    said = {
        "posology": "preflight",
        "format": _FORMAT,
        "digest": predictor.version,
        "trained": dict(predictor.trained),
        "models": _said(predictor.models),
    }
    return json.dumps(said, indent=1, ensure_ascii=False) + "\n"


def read(text: str, *, path: str) -> Calibrated:
    """The predictor that was written.

    Args:
        text: of :func:`write`.
        path: where it was found, for messages.

    Raises:
        BadArtefact: it is none, of another format, or was changed since it was written.
    """
    try:
        said = json.loads(text)
        if said["posology"] != "preflight" or said["format"] != _FORMAT:
            raise BadArtefact("it is no preflight model of this format: train it again", path=path)
        predictor = Calibrated(
            models=MappingProxyType({name: _model(of) for name, of in said["models"].items()}),
            trained=MappingProxyType(said["trained"]),
        )
        digest = said["digest"]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadArtefact(f"it is damaged: {error!r}", path=path) from None
    if digest != predictor.version:
        raise BadArtefact("its digest is of another content: it was changed or cut", path=path)
    return predictor


@cache
def packaged() -> Calibrated:
    """The calibrated predictor that comes with Posology.

    Raises:
        BadArtefact: the installation is damaged.
    """
    file = files("policies") / "models" / "preflight.json"
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise BadArtefact(f"it cannot be read: {error.strerror}", path=str(file)) from error
    return read(text, path=str(file))


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Suited:
    """The calibrated predictor for vectors of the embedder that it learned from, else the published rule.

    Whose vectors they are is the feature ``embedder``, which the router adds; where nobody said, they are taken
    to be of the packaged embedder.
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


#: name → how to get it
PREDICTORS: Mapping[str, Callable[[], Predictor]] = MappingProxyType(
    {"auto": _suited, "calibrated": packaged, "published": Published}
)


def _said(models: Mapping[str, Model]) -> dict[str, Any]:
    return {
        order: {
            "intercept": model.intercept,
            "threshold": model.threshold,
            "terms": {term.feature: [term.weight, term.mean, term.scale] for term in model.terms},
        }
        for order, model in models.items()
    }


def _model(said: Mapping[str, Any]) -> Model:
    terms = tuple(
        Term(feature=feature, weight=float(weight), mean=float(mean), scale=float(scale))
        for feature, (weight, mean, scale) in said["terms"].items()
    )
    model = Model(
        intercept=float(said["intercept"]), threshold=float(said["threshold"]), terms=terms
    )
    if not all(term.scale > 0 for term in terms):
        raise ValueError("a scale must be above 0")
    return model


def _number(features: Mapping[str, Any], name: str) -> float:
    value = features.get(PREFIX + name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidRecord(
            f"{PREFIX}{name} is {value!r}, and not a number: this record lacks what preflight looks "
            "at; decide anew",
            field=PREFIX + name,
        )
    return value


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST // 2).hexdigest()
