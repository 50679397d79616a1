"""Matching of a provider's names of models with ours.

We ask for ``gpt-4o-mini``; the provider's account names what served it, ``gpt-4o-mini-2024-07-18``, and
Anthropic's Console names models as people do, ``Claude Sonnet 4.5``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

#: a snapshot: a day, or the month and day of older models
_SNAPSHOT = re.compile(r"[-@](20\d\d-\d\d-\d\d|20\d{6}|\d{4})$")
_TUNED = re.compile(r"ft[:-]([^:]+)(?::.*)?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Naming:
    """Names that were compared as one model."""

    #: name in the report
    label: str
    ours: tuple[str, ...]
    theirs: tuple[str, ...]


def dated(name: str) -> bool:
    """Whether a name is of a snapshot."""
    return bool(_SNAPSHOT.search(_written(name)))


def family(name: str) -> str:
    """Return the common part of all names of a model."""
    written = _written(name)
    if tuned := _TUNED.fullmatch(written):
        return f"ft-{family(tuned[1])}"
    base = _SNAPSHOT.sub("", written).removesuffix("-latest")
    if not base.startswith("claude"):
        return base
    # claude-3-5-haiku, and Claude Haiku 3.5; claude-opus-4-0 is an alias of a snapshot of claude-opus-4
    parts = base.removesuffix("-0").split("-")
    return "-".join([p for p in parts if not p.isdigit()] + [p for p in parts if p.isdigit()])


def resolve(ours: Iterable[str], theirs: Iterable[str]) -> tuple[Mapping[str, str], list[Naming]]:
    """Return the name that each name is compared as.

    If a name of a family is not a snapshot's, it may be served by any snapshot, so the family is compared as one. If
    all names are snapshots', each is compared with itself.

    Returns:
        The label of each name, and the names that were combined under another label.
    """
    sides = dict.fromkeys(ours, 0), dict.fromkeys(theirs, 1)
    families: dict[str, tuple[set[str], set[str]]] = {}
    for side in sides:
        for name, place in side.items():
            families.setdefault(family(name), (set(), set()))[place].add(name)
    labels: dict[str, str] = {}
    together = []
    for common, (asked, served) in families.items():
        if all(map(dated, asked | served)):
            labels |= {name: _written(name) for name in asked | served}
            continue
        label = min(asked) if asked else common
        labels |= dict.fromkeys(asked | served, label)
        if asked | served != {label}:
            naming = Naming(label=label, ours=tuple(sorted(asked)), theirs=tuple(sorted(served)))
            together.append(naming)
    return labels, sorted(together, key=lambda naming: naming.label)


def _written(name: str) -> str:
    lower = name.strip().lower()
    return re.sub(r"[ ._]+", "-", lower) if lower.startswith("claude") else lower
