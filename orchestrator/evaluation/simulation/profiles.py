"""The profiles of simulated models, read from the packaged file of fitted parameters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from orchestrator.evaluation.simulation.curves import Curve, Refusals

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
