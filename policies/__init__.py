"""Policies: which strategy answers a question. Pure functions of a situation; no I/O, no model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from policies import fixed
from posology.seams import Policy

#: name → how to make it
POLICIES: Mapping[str, Callable[..., Policy]] = MappingProxyType({fixed.NAME: fixed.Fixed})
