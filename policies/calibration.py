"""Calibrations of preflight: logistic regressions by order of showing, and their text.

A calibration holds for the vectors of one embedder. The packaged one is described in ``policies/models/README.md``;
``posology policy calibrate`` makes others.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from policies.preflight_features import PREFIX
from posology.errors import BadArtefact, InvalidRecord

#: kind of artefact
KIND = "preflight"
_FORMAT = 1
_DIGEST = 16


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
            term.weight * (number(features, term.feature) - term.mean) / term.scale
            for term in self.terms
        )
        # exp of a large positive number overflows
        odds = math.exp(-abs(score))
        return 1 / (1 + odds) if score >= 0 else odds / (1 + odds)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Calibration:
    """Models of the orders of one embedder's index. Each order has other documents beyond its first places."""

    #: name of the order of showing, see :attr:`posology.types.Retrieval.order` → model
    models: Mapping[str, Model]
    #: how it was made: ``embedder``, ``questions``, and by order the measured ``reach``
    trained: Mapping[str, Any] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """Digest of its models."""
        return digest({"rule": "calibrated", "models": _plain(self.models)})

    @property
    def embedder(self) -> str | None:
        """Name of the embedder of its questions and passages; ``None``: unknown."""
        return self.trained.get("embedder")


def write(calibration: Calibration) -> str:
    """Write a calibration as text: one readable JSON object."""
    content = {
        "posology": KIND,
        "format": _FORMAT,
        "digest": calibration.version,
        "trained": dict(calibration.trained),
        "models": _plain(calibration.models),
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def read(text: str, *, path: str) -> Calibration:
    """Read a calibration.

    Args:
        text: text by :func:`write`.
        path: path of the file, for messages.

    Raises:
        BadArtefact: not a calibration, of another format, or changed since it was written.
    """
    try:
        content = json.loads(text)
        if content["posology"] != KIND or content["format"] != _FORMAT:
            raise BadArtefact(
                f"not a preflight model of format {_FORMAT}: train it again", path=path
            )
        calibration = Calibration(
            models=MappingProxyType({name: _model(of) for name, of in content["models"].items()}),
            trained=MappingProxyType(dict(content["trained"])),
        )
        written = content["digest"]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadArtefact(f"damaged: {error!r}", path=path) from None
    if written != calibration.version:
        raise BadArtefact(
            "the digest does not match the content: the file was changed or truncated", path=path
        )
    return calibration


@cache
def packaged() -> Calibration:
    """Return the calibration that comes with Posology.

    Raises:
        BadArtefact: the installation is damaged.
    """
    file = files("policies") / "models" / "preflight.json"
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise BadArtefact(f"cannot be read: {error.strerror}", path=str(file)) from error
    return read(text, path=str(file))


def number(features: Mapping[str, Any], name: str) -> float:
    """Return a feature of preflight.

    Raises:
        InvalidRecord: it is missing, or not a finite number.
    """
    value = features.get(PREFIX + name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidRecord(
            f"{PREFIX}{name} must be a number (got {value!r}): the record lacks a feature of preflight, decide "
            "anew",
            field=PREFIX + name,
        )
    return value


def digest(content: Mapping[str, Any]) -> str:
    """Return the digest of JSON content."""
    text = json.dumps(content, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST // 2).hexdigest()


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
