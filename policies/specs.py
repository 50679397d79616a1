"""Policies by name, with settings: ``router``, ``doubling:start=1``, ``fixed:strategy=briefcontext``.

:data:`POLICIES` is the one registry. Importing this module loads no Q-table and no NumPy.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from policies.affordable import STEP_DOWN, WHOLE
from policies.doubling import Doubling
from policies.fixed import NAME as FIXED
from policies.fixed import Fixed
from policies.preflight import PREDICTORS
from posology.errors import InvalidQuery
from posology.types import Dose

if TYPE_CHECKING:
    from policies.calibration import Calibration
    from policies.qtable import QTable
    from policies.router import Router
    from posology.seams import Policy

#: preflight predictor of policies that have one
PREFLIGHT = "auto"
#: More likely than not: BriefContext costs twice what direct RAG over the same passages does, and ten times a ladder
#: that ends at its first call. Figures: ``python -m evals.policy.router``
ISSUE = 0.5
#: Passages that the router's ladder begins with, as Adaptive RAG's does, and the factor of its steps: 2, then 8. The
#: cheapest for simulated models of the ladders that show more than one passage (``python -m evals.policy``). With a
#: Q-table, which may leave a few sentences of 2 passages, ``start=4,factor=2`` is wrong less often
START, FACTOR = 2, 4
#: form of a compressor's name, a cascade's included; the caller checks that it exists
_PART = r"[a-z][a-z0-9_]*(:[0-9.]+|:[a-z]+=[a-z]+)?"
_NAME = re.compile(rf"{_PART}(\+{_PART})*")
#: value of a share: the compressor's own choice
OWN = "own"
_OFF, _ON = frozenset({"off", "no", "false", "0"}), frozenset({"on", "yes", "true", "1"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Spec(ABC):
    """A policy's name and settings, and how to build it."""

    #: name with settings, as written
    text: str
    #: name of the compressor to use; ``None``: the policy's own, or the configured one
    compressor: str | None = None

    @abstractmethod
    def policy(
        self,
        table: QTable | None = None,
        *,
        embedder: str | None = None,
        compressor: str | None = None,
        calibration: Calibration | None = None,
    ) -> Policy:
        """Build the policy.

        Args:
            table: the loaded Q-table; ``None``: there is none.
            embedder: name of the embedder of the index's vectors; ``None``: unknown.
            compressor: name of the configured compressor; ``None``: unknown.
            calibration: the user's own calibration of preflight; ``None``: the packaged one alone.
        """


@dataclass(frozen=True, kw_only=True, slots=True)
class RouterSpec(Spec):
    """Parts and settings of a :class:`~policies.router.Router`."""

    #: name in :data:`~policies.preflight.PREDICTORS`; ``None``: no preflight
    preflight: str | None = None
    #: whether a loaded Q-table decides
    qtable: bool = False
    #: ``None``: one call
    doubling: Doubling | None = None
    #: share to keep without a table, 0 to 1; 1: direct RAG; :data:`OWN`; ``None``: :data:`OWN` if a compressor is
    #: named, else 1
    keep: float | str | None = None
    #: whether a compressor that costs more than it saves is skipped
    saving: bool = True
    #: least probability of a buried passage for BriefContext at once
    issue: float = 0.0
    #: shares that are tried if the budget is short, falling; empty: only the share that is kept anyway
    step_down: tuple[float, ...] = STEP_DOWN
    #: whether a dose follows after every step of a ladder was refused
    escalate: bool = True
    #: whether that dose reads passages of a second search
    search: bool = False

    def policy(
        self,
        table: QTable | None = None,
        *,
        embedder: str | None = None,
        compressor: str | None = None,
        calibration: Calibration | None = None,
    ) -> Router:
        """Build the router, see :meth:`Spec.policy`."""
        from policies.router import Router

        keep = self.keep
        if keep is None:
            # a named compressor is meant to be used
            keep = 1.0 if self.compressor is None else OWN
        return Router(
            name=self.text,
            preflight=PREDICTORS[self.preflight](calibration) if self.preflight else None,
            table=table if self.qtable else None,
            doubling=self.doubling,
            keep=None if isinstance(keep, str) else keep,
            compressor=self.compressor,
            saving=self.saving,
            configured=compressor,
            issue=self.issue,
            step_down=self.step_down,
            escalate=self.escalate,
            search=self.search,
            embedder=embedder,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class FixedSpec(Spec):
    """Settings of a :class:`~policies.fixed.Fixed`."""

    strategy: str = WHOLE
    #: share that the compressor keeps, 0 to 1; ``None``: its own choice
    keep: float | None = None
    #: passages to read, best first; ``None``: all
    passages: int | None = None

    def policy(
        self,
        table: QTable | None = None,  # noqa: ARG002 - every question gets the same
        *,
        embedder: str | None = None,  # noqa: ARG002
        compressor: str | None = None,  # noqa: ARG002
        calibration: Calibration | None = None,  # noqa: ARG002
    ) -> Fixed:
        """Build the policy of one dose."""
        return Fixed(
            dose=Dose(
                strategy=self.strategy,
                passages=self.passages,
                keep=self.keep,
                compressor=self.compressor,
            )
        )


#: applies the value of a setting to a spec
Apply = Callable[[Any, str], Spec]


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """A registered policy."""

    #: the policy without settings
    spec: Spec
    #: name of each setting → how to apply its value, which raises :class:`ValueError` for a wrong one
    settings: Mapping[str, Apply] = field(default_factory=dict)


def at_once(text: str) -> float | None:
    """Return the least probability of a buried passage at which a policy gives BriefContext at once; ``None``: never.

    Raises:
        InvalidQuery: no such policy, setting or value.
    """
    spec = parse(text)
    return spec.issue if isinstance(spec, RouterSpec) and spec.preflight else None


def searches_again(text: str | None) -> bool:
    """Return whether a policy may search for passages a second time; ``None``, no policy, does not.

    Raises:
        InvalidQuery: no such policy, setting or value.
    """
    spec = None if text is None else parse(text)
    return isinstance(spec, RouterSpec) and spec.escalate and spec.search


def parse(text: str) -> Spec:
    """Read a policy's name and settings, ``NAME:SETTING=VALUE,SETTING=VALUE``.

    Settings of the router and its presets: ``preflight`` (a predictor, or off), ``qtable`` (on or off), ``doubling``
    (on or off), ``start``, ``factor``, ``rounds`` (or ``all``) and ``overlapping`` of the doubling, ``keep`` (share to
    keep without a table, or ``own``: the compressor's choice), ``compressor`` (its name), ``saving`` (on or off: skip a
    compressor that costs more than it saves), ``issue`` (least probability of a buried passage for BriefContext at
    once), ``step_down`` (shares to try if the budget is short, falling, separated by slashes, or off), ``escalate`` (on:
    BriefContext after a refused ladder; search: a second search; or off). Settings of ``fixed``: ``strategy``, ``keep``, ``passages``, ``compressor``.

    Raises:
        InvalidQuery: no such policy, setting or value.
    """
    name, _, settings = text.strip().partition(":")
    if name not in POLICIES:
        raise _invalid(f"unknown policy {name!r}: choose one of {', '.join(POLICIES)}")
    entry = POLICIES[name]
    spec = entry.spec
    for setting in filter(None, settings.split(",")):
        key, equals, value = (part.strip() for part in setting.partition("="))
        if not equals or key not in entry.settings:
            known = ", ".join(entry.settings) or "none"
            raise _invalid(
                f"unknown setting {setting!r} of policy {name}: write NAME=VALUE, with NAME one of {known}"
            )
        try:
            spec = entry.settings[key](spec, value)
        except ValueError as error:
            raise _invalid(f"{key}={value}: {error}") from None
    return replace(spec, text=text.strip())


def _invalid(message: str) -> InvalidQuery:
    return InvalidQuery(message, field="policy")


def _switch(value: str) -> bool:
    if value.lower() not in _ON | _OFF:
        raise ValueError("must be on or off")
    return value.lower() in _ON


def _preflight(spec: RouterSpec, value: str) -> RouterSpec:
    if value.lower() in _OFF:
        return replace(spec, preflight=None)
    if value not in PREDICTORS:
        raise ValueError(f"must be one of {', '.join(PREDICTORS)}, off")
    return replace(spec, preflight=value)


def _doubling(spec: RouterSpec, value: str) -> RouterSpec:
    return replace(spec, doubling=(spec.doubling or Doubling()) if _switch(value) else None)


def _steps(spec: RouterSpec, **changed: Any) -> RouterSpec:
    return replace(spec, doubling=replace(spec.doubling or Doubling(), **changed))


def _share(value: str) -> float:
    share = float(value)
    if not 0 <= share <= 1:
        raise ValueError("must be a number from 0 to 1")
    return share


def _passages(value: str) -> int:
    if (passages := int(value)) < 1:
        raise ValueError("must be at least 1")
    return passages


def _keep(spec: RouterSpec, value: str) -> RouterSpec:
    return replace(spec, keep=OWN if value.lower() == OWN else _share(value))


def _step_down(spec: RouterSpec, value: str) -> RouterSpec:
    shares = () if value.lower() in _OFF else tuple(map(float, value.split("/")))
    if not all(larger > share for larger, share in pairwise((1.0, *shares, 0.0))):
        raise ValueError("must be falling shares between 1 and 0, such as 0.4/0.2, or off")
    return replace(spec, step_down=shares)


def _escalate(spec: RouterSpec, value: str) -> RouterSpec:
    search = value.lower() == "search"
    try:
        return replace(spec, search=search, escalate=search or _switch(value))
    except ValueError:
        raise ValueError("must be on, search or off") from None


def _compressor(spec: Spec, value: str) -> Spec:
    if not _NAME.fullmatch(value):
        raise ValueError("must be the name of a compressor")
    return replace(spec, compressor=value)


_ROUTER: Mapping[str, Apply] = MappingProxyType(
    {
        "preflight": _preflight,
        "qtable": lambda spec, value: replace(spec, qtable=_switch(value)),
        "doubling": _doubling,
        "start": lambda spec, value: _steps(spec, start=int(value)),
        "factor": lambda spec, value: _steps(spec, factor=float(value)),
        "rounds": lambda spec, value: _steps(spec, rounds=None if value == "all" else int(value)),
        "overlapping": lambda spec, value: _steps(spec, overlapping=_switch(value)),
        "keep": _keep,
        "compressor": _compressor,
        "saving": lambda spec, value: replace(spec, saving=_switch(value)),
        "issue": lambda spec, value: replace(spec, issue=_share(value)),
        "step_down": _step_down,
        "escalate": _escalate,
    }
)
_FIXED: Mapping[str, Apply] = MappingProxyType(
    {
        "strategy": lambda spec, value: replace(spec, strategy=value),
        "keep": lambda spec, value: replace(spec, keep=_share(value)),
        "passages": lambda spec, value: replace(spec, passages=_passages(value)),
        "compressor": _compressor,
    }
)


def _router(text: str, **parts: Any) -> Entry:
    return Entry(spec=RouterSpec(text=text, **parts), settings=_ROUTER)


#: name → policy, in the order in which they are listed
POLICIES: dict[str, Entry] = {
    "router": _router(
        "router",
        preflight=PREFLIGHT,
        issue=ISSUE,
        qtable=True,
        doubling=Doubling(start=START, factor=FACTOR),
    ),
    "preflight": _router("preflight", preflight=PREFLIGHT),
    "qtable": _router("qtable", qtable=True),
    "doubling": _router("doubling", doubling=Doubling()),
    "affordable": _router("affordable"),
    FIXED: Entry(spec=FixedSpec(text=FIXED), settings=_FIXED),
}
