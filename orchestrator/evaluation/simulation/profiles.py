"""The profiles of simulated models, read from the packaged file of fitted parameters."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """Probability that a model takes in a key passage, by its place and by the length of the context.

    With B passages before the key passage and A after it, the probability is ``(1 + A + B) ** -dilution`` times
    ``1 - depth * (1 - max(exp(-B / primacy), recency * exp(-A / fading)))``: it falls with length, dips behind the
    beginning, and recovers towards the end. A passage that is shown in part counts as that part.
    """

    #: how fast it falls with length, 0: not at all
    dilution: float
    #: how far it falls in the middle, 0 to 1
    depth: float
    #: passages in which the advantage of the beginning fades
    primacy: float
    #: share of the dip that the last place is spared, 0 to 1
    recency: float
    #: passages in which the advantage of the end fades
    fading: float

    def __call__(self, before: float, after: float) -> float:
        """Return the probability, 0 to 1.

        Args:
            before: passages before the key passage.
            after: passages after it.
        """
        spared = max(
            math.exp(-before / self.primacy), self.recency * math.exp(-after / self.fading)
        )
        length = (1 + before + after) ** -self.dilution
        return float(length * (1 - self.depth * (1 - spared)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusals:
    """Probability that a model that took nothing in refuses, and does not answer from another passage.

    Logistic in the binary logarithm of the passages shown.
    """

    #: log odds with one passage
    one: float
    #: what each doubling of the passages adds to the log odds
    doubling: float

    def __call__(self, passages: float) -> float:
        """Return the probability, 0 to 1, with so many passages (at least 1) shown."""
        odds = self.one + self.doubling * math.log2(max(passages, 1.0))
        return 1 / (1 + math.exp(-odds))


#: published figures, and what ``python -m evals.simulation --write`` fitted to them
PUBLISHED, FITTED = "published.json", "fitted.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Profile:
    """How one kind of model reads; every rate is a probability, 0 to 1."""

    name: str
    #: of taking the key passage in
    takes_in: Curve
    #: of refusing when nothing was taken in
    refuses: Refusals
    #: of a right answer from a key passage that was taken in
    reads: float
    #: of refusing in spite of a key passage that was taken in
    shy: float
    #: of a finding in a partition that holds no key passage, or none that was taken in
    misled: float
    #: of a right answer when findings disagree
    resolves: float


def read(name: str) -> dict[str, Any]:
    """Return the content of :data:`PUBLISHED` or :data:`FITTED`."""
    text = (files(__package__) / name).read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


@cache
def profiles() -> Mapping[str, Profile]:
    """Return the profiles by name."""
    return MappingProxyType(
        {row["name"]: parse(row) for row in read(FITTED)["profiles"]},
    )


def parse(row: Mapping[str, Any]) -> Profile:
    """Return the profile of a row of the file; ``basis`` is for its readers."""
    return Profile(
        name=row["name"],
        takes_in=Curve(**row["takes_in"]),
        refuses=Refusals(**row["refuses"]),
        **{name: row[name] for name in ("reads", "shy", "misled", "resolves")},
    )
