"""The ledger's Lua scripts: files under ``lua``, each with the same beginning."""

from __future__ import annotations

from functools import cache

from posology.store.lua import lua

_PACKAGE = "posology.budget.ledger"
#: maximum models of a tenant with figures of their own
MODELS = 200
#: name for all other models
OTHER = "other"
#: milliseconds after which a waiting ticket without a new request is removed
QUEUED = 5_000
#: milliseconds for which an orphaned reservation can still be settled
REMEMBERED = 86_400_000


@cache
def library() -> str:
    """Return the beginning of every script that changes budgets, also in other packages."""
    constants = (
        f"local MODELS, OTHER, QUEUED, REMEMBERED = {MODELS}, '{OTHER}', {QUEUED}, {REMEMBERED}\n"
    )
    return constants + lua(_PACKAGE, "_money")


@cache
def source(name: str) -> str:
    """Return the whole text of a script."""
    return library() + lua(_PACKAGE, name)
