"""Policies by name, with settings: ``router``, ``doubling:start=1``, ``router:preflight=published,qtable=off``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from policies.doubling import Doubling
from policies.preflight import PREDICTORS
from policies.qtable import QTable
from policies.router import STEP_DOWN, Router
from posology.errors import InvalidQuery

#: the preflight predictor of policies that have one
PREFLIGHT = "auto"
#: More likely than not: BriefContext costs twice what direct RAG over the same passages does, and ten times a ladder
#: that ends at its first call. Figures: ``python -m evals.router``
ISSUE = 0.5
#: Passages that the router's ladder begins with. Adaptive RAG begins with 2, of which a Q-table may leave a few
#: sentences: from 4 a right answer costs the same, and a quarter fewer answers are wrong (``python -m evals.router``)
START = 4
#: a compressor's name, a cascade's included; whether there is one of that name, others know
_NAME = re.compile(r"[a-z][a-z0-9_]*(:[0-9.]+)?(\+[a-z][a-z0-9_]*(:[0-9.]+)?)*")
#: as a share: as much as the compressor finds right
OWN = "own"
_OFF, _ON = frozenset({"off", "no", "false", "0"}), frozenset({"on", "yes", "true", "1"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Spec:
    """Which parts a policy has."""

    #: as it was written
    text: str
    #: of :data:`~policies.preflight.PREDICTORS`; ``None``: none
    preflight: str | None = None
    #: whether the Q-table at hand decides, where there is one
    qtable: bool = False
    #: ``None``: one call
    doubling: Doubling | None = None
    #: share that is kept without a table; 1: direct RAG; :data:`OWN`; ``None``: :data:`OWN` where a compressor is
    #: named, else 1
    keep: float | str | None = None
    #: name of the compressor; ``None``: the Q-table's, or the configured one
    compressor: str | None = None
    #: whether a compressor is skipped that costs more than it saves
    saving: bool = True
    #: probability of the issue from which on BriefContext is given at once
    issue: float = 0.0
    #: shares that are tried where money allows no more, falling; empty: only what is kept anyway
    step_down: tuple[float, ...] = STEP_DOWN
    escalate: bool = True

    def policy(
        self,
        table: QTable | None = None,
        *,
        embedder: str | None = None,
        compressor: str | None = None,
    ) -> Router:
        """The policy.

        Args:
            table: the Q-table at hand.
            embedder: name of the one whose vectors the index holds; ``None``: not known.
            compressor: name of the configured one; ``None``: not known.
        """
        keep = self.keep
        if keep is None:
            # who names a compressor wants it to be used
            keep = 1.0 if self.compressor is None else OWN
        return Router(
            name=self.text,
            preflight=PREDICTORS[self.preflight]() if self.preflight else None,
            table=table if self.qtable else None,
            doubling=self.doubling,
            keep=None if isinstance(keep, str) else keep,
            compressor=self.compressor,
            saving=self.saving,
            configured=compressor,
            issue=self.issue,
            step_down=self.step_down,
            escalate=self.escalate,
            embedder=embedder,
        )


#: name → the parts that it has
PRESETS: Mapping[str, Spec] = MappingProxyType(
    {
        "router": Spec(
            text="router",
            preflight=PREFLIGHT,
            issue=ISSUE,
            qtable=True,
            doubling=Doubling(start=START),
        ),
        "preflight": Spec(text="preflight", preflight=PREFLIGHT),
        "qtable": Spec(text="qtable", qtable=True),
        "doubling": Spec(text="doubling", doubling=Doubling()),
        "affordable": Spec(text="affordable"),
    }
)


def parse(text: str) -> Spec:
    """Read the name of a policy and its settings.

    Settings: ``preflight`` (a predictor, or off), ``qtable`` (on or off), ``doubling`` (on or off), ``start``,
    ``factor``, ``rounds`` (or ``all``) and ``overlapping`` of the doubling, ``keep`` (share that is kept
    without a table, or ``own``: the compressor's own), ``compressor`` (its name), ``saving`` (on or off: whether a
    compressor is skipped that costs more than it saves), ``issue`` (probability from which on BriefContext is given at once),
    ``step_down`` (shares that are tried where money allows no more, falling and parted by slashes, or off),
    ``escalate`` (on or off).

    Raises:
        InvalidQuery: no such policy, setting or value.
    """
    name, _, settings = text.strip().partition(":")
    if name not in PRESETS:
        raise _wrong(f"no policy {name!r}: choose one of {', '.join(PRESETS)}")
    spec = PRESETS[name]
    for setting in filter(None, settings.split(",")):
        key, equals, value = (part.strip() for part in setting.partition("="))
        if not equals or key not in _SETTINGS:
            raise _wrong(
                f"no setting {setting!r} of a policy: write NAME=VALUE, of {', '.join(_SETTINGS)}"
            )
        try:
            spec = _SETTINGS[key](spec, value)
        except ValueError as error:
            raise _wrong(f"{key}={value}: {error}") from None
    return replace(spec, text=text.strip())


def _wrong(said: str) -> InvalidQuery:
    return InvalidQuery(said, field="policy")


def _switch(value: str) -> bool:
    if value.lower() not in _ON | _OFF:
        raise ValueError("say on or off")
    return value.lower() in _ON


def _preflight(spec: Spec, value: str) -> Spec:
    if value.lower() in _OFF:
        return replace(spec, preflight=None)
    if value not in PREDICTORS:
        raise ValueError(f"choose one of {', '.join(PREDICTORS)}, off")
    return replace(spec, preflight=value)


def _doubling(spec: Spec, value: str) -> Spec:
    return replace(spec, doubling=(spec.doubling or Doubling()) if _switch(value) else None)


def _rung(spec: Spec, **changed: Any) -> Spec:
    return replace(spec, doubling=replace(spec.doubling or Doubling(), **changed))


def _share(value: str) -> float:
    share = float(value)
    if not 0 <= share <= 1:
        raise ValueError("say a number from 0 to 1")
    return share


def _keep(spec: Spec, value: str) -> Spec:
    return replace(spec, keep=OWN if value.lower() == OWN else _share(value))


def _step_down(spec: Spec, value: str) -> Spec:
    shares = () if value.lower() in _OFF else tuple(map(float, value.split("/")))
    if not all(larger > share for larger, share in pairwise((1.0, *shares, 0.0))):
        raise ValueError("say falling shares between 1 and 0, such as 0.4/0.2, or off")
    return replace(spec, step_down=shares)


def _compressor(spec: Spec, value: str) -> Spec:
    if not _NAME.fullmatch(value):
        raise ValueError("say a compressor's name")
    return replace(spec, compressor=value)


_SETTINGS: Mapping[str, Callable[[Spec, str], Spec]] = MappingProxyType(
    {
        "preflight": _preflight,
        "qtable": lambda spec, value: replace(spec, qtable=_switch(value)),
        "doubling": _doubling,
        "start": lambda spec, value: _rung(spec, start=int(value)),
        "factor": lambda spec, value: _rung(spec, factor=float(value)),
        "rounds": lambda spec, value: _rung(spec, rounds=None if value == "all" else int(value)),
        "overlapping": lambda spec, value: _rung(spec, overlapping=_switch(value)),
        "keep": _keep,
        "compressor": _compressor,
        "saving": lambda spec, value: replace(spec, saving=_switch(value)),
        "issue": lambda spec, value: replace(spec, issue=_share(value)),
        "step_down": _step_down,
        "escalate": lambda spec, value: replace(spec, escalate=_switch(value)),
    }
)
