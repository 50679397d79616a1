"""Routers by name, where a test looks at their parts."""

from __future__ import annotations

from policies.qtable import QTable
from policies.router import Router
from policies.specs import RouterSpec, parse


def router_spec(text: str) -> RouterSpec:
    spec = parse(text)
    assert isinstance(spec, RouterSpec)
    return spec


def router(text: str, table: QTable | None = None) -> Router:
    return router_spec(text).policy(table)
